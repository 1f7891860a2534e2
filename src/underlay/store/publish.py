"""Give a finished file its name unless the name is taken: the atomic step of `create` on a local disk."""

from __future__ import annotations

import ctypes
import errno
import os

from underlay.errors import Unsupported

_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""The errors of a file system without hard links; EMLINK means that it allows a single name."""
_SURELY_NOT_DONE = {errno.EACCES, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENAMETOOLONG, errno.ENOENT}
_NO_SUCH_RENAME = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}
_RENAME_NOREPLACE = 1

_LIBC = ctypes.CDLL(None, use_errno=True)


class UnclearFailure(Exception):
    """The name may or may not have been given."""


def link_new(folder: int, temporary: str, name: str) -> bool:
    """Name the file `temporary` of the directory `folder` also `name`; False when the name is taken.

    Raises OSError when certainly nothing was done, Unsupported when the file system can do neither a hard link nor a
    rename that refuses to replace, UnclearFailure for the rest.
    """
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        # A network file system repeats a request whose response was lost, and then meets its own link.
        try:
            return os.stat(temporary, dir_fd=folder).st_nlink == 2
        except OSError as e:
            raise UnclearFailure from e
    except OSError as e:
        if e.errno in _NO_HARD_LINKS:
            return _rename_new(folder, temporary, name)
        if e.errno in _SURELY_NOT_DONE:
            raise
        raise UnclearFailure from e
    return True


def _rename_new(folder: int, temporary: str, name: str) -> bool:
    """As `link_new`, by `renameat2(RENAME_NOREPLACE)`, which Linux has."""
    rename = getattr(_LIBC, "renameat2", None)
    if rename is None:
        raise _unsupported()
    if rename(folder, os.fsencode(temporary), folder, os.fsencode(name), _RENAME_NOREPLACE) == 0:
        return True
    code = ctypes.get_errno()
    if code == errno.EEXIST:
        return False
    if code in _NO_SUCH_RENAME:
        raise _unsupported()
    if code in _SURELY_NOT_DONE or code == errno.EPERM:
        raise OSError(code, os.strerror(code))
    raise UnclearFailure(os.strerror(code))


def _unsupported() -> Unsupported:
    return Unsupported(
        "the file system has neither hard links nor renameat2(RENAME_NOREPLACE), so two writers could both commit",
        hint="Put the lake on a file system such as ext4, xfs, btrfs, zfs or apfs, or on an object store.",
    )
