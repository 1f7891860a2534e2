"""Files that only this user, or root, can have written: settings that say where credentials are sent, tokens, queues.

Such a file belongs to this user or to root, nobody else may write to it, and nobody else may put another in its place:
the same holds for every folder above it, but for those with the sticky bit, such as /tmp, where files can only be
replaced by their owners. A group that has no other member, as many Linux systems give each user, is the user.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from underlay.errors import InvalidRequest, from_os_error
from underlay.runtime.posix import open_flags

_READ = open_flags("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
MAX_BYTES = 1 << 20
"""Settings are small, and a file found at this path may be anything."""


def read_small_file(path: Path) -> tuple[bytes, str | None]:
    """The bytes of a file, and who else may have written them; None when nobody else can have.

    Symbolic links are followed first, and what they lead to is judged. Raises NotFound, Unavailable, and InvalidRequest
    for one of more than `MAX_BYTES`.
    """
    try:
        real = path.resolve(strict=True)
        descriptor = os.open(real, _READ)
        try:
            status = os.fstat(descriptor)
            if status.st_size > MAX_BYTES:
                raise InvalidRequest("the file is too large", place=str(path), expected=f"at most {MAX_BYTES} bytes")
            data = os.read(descriptor, MAX_BYTES)
        finally:
            os.close(descriptor)
        return data, _stranger(real, status) or others_above(real)
    except OSError as error:
        raise from_os_error(error, str(path)) from None


def others_above(path: Path) -> str | None:
    """Who else may replace what is at this absolute path, which has no links; None when nobody can. Raises OSError."""
    for folder in path.parents:
        status = folder.stat()
        if status.st_mode & stat.S_ISVTX and status.st_uid in _trusted_users():
            continue
        found = _stranger(folder, status)
        if found is not None:
            return found
    return None


def write_own_file(path: Path, data: bytes) -> None:
    """Write a file that only this user can read, whole or not at all; make its folder if it is missing. Raises
    Unavailable."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}-{os.urandom(8).hex()}")
        flags = open_flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY")
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(data)
        temporary.replace(path)
    except OSError as error:
        raise from_os_error(error, str(path)) from None


def _stranger(path: Path, status: os.stat_result) -> str | None:
    """Who else may write to a file or folder, in words."""
    if not hasattr(os, "geteuid"):
        return None  # Windows: home folders are private there, and modes say nothing
    if status.st_uid not in _trusted_users():
        return f"{path} belongs to {_user_name(status.st_uid)}"
    if status.st_mode & stat.S_IWOTH:
        return f"everybody may write to {path}"
    if status.st_mode & stat.S_IWGRP and not _is_private_group(status.st_gid):
        return f"the group {_group_name(status.st_gid)} may write to {path}"
    return None


def _trusted_users() -> tuple[int, int]:
    return os.geteuid(), 0


def _user_name(number: int) -> str:
    import pwd  # which Windows lacks

    try:
        return f"the user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"the user number {number}"


def _group_name(number: int) -> str:
    import grp  # which Windows lacks

    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _is_private_group(number: int) -> bool:
    """Whether the group is root's, or this user's own: of the same name, and without other members."""
    import grp
    import pwd

    if number == 0:
        return True
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(number)
    except KeyError:
        return False
    return number == user.pw_gid and group.gr_name == user.pw_name and not set(group.gr_mem) - {user.pw_name}
