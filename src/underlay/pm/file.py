"""Sidecars on a local disk: lock-free readers, one writer.

A reader takes the committed size from the first bytes, then exactly that many bytes; the file's length is never a
boundary, so it does not matter what a writer is appending. A writer appends the tail, syncs it, publishes the new size
in one aligned 8-byte write and syncs again: a crash before that write leaves bytes that nobody reads.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from underlay.errors import Busy, InvalidRequest, Truncated, UnderlayError, from_os_error
from underlay.parquet.footer.tail import MAGIC as PARQUET_MAGIC
from underlay.pm.format.encode import append
from underlay.pm.format.layout import HEADER
from underlay.pm.format.sidecar import Sidecar, decode
from underlay.pm.format.values import SidecarBlock, VersionFields
from underlay.runtime.posix import need_posix, open_flags

_U64 = struct.Struct("<Q")
_OPEN = open_flags("O_RDONLY", "O_CLOEXEC", "O_NONBLOCK")  # a pipe in place of a file is an error, not an endless wait


def read_sidecar(
    path: str | os.PathLike[str],
    *,
    size: int | None = None,
    parquet_size: int | None = None,
    check: bool = True,
) -> Sidecar:
    """A version of the sidecar at `path` (see `decode`). Takes no lock; costs one open and two reads."""
    data = read_committed(path)
    try:
        return decode(data, size=len(data) if size is None else size, parquet_size=parquet_size, check=check)
    except UnderlayError as e:
        raise e.at(os.fspath(path)) from None


def read_committed(path: str | os.PathLike[str]) -> bytes:
    """The bytes of all published versions, unchecked. They are read, since a map of a file that somebody cuts short
    kills its reader."""
    need_posix("sidecars on a local disk")
    try:
        descriptor = os.open(path, _OPEN)
    except OSError as e:
        raise from_os_error(e, os.fspath(path)) from e
    try:
        return _committed_bytes(descriptor)
    except UnderlayError as e:
        raise e.at(os.fspath(path)) from None
    except OSError as e:
        raise from_os_error(e, os.fspath(path)) from e
    finally:
        os.close(descriptor)


def _committed_bytes(descriptor: int) -> bytes:
    head = os.pread(descriptor, HEADER.size_bytes, 0)
    if len(head) < HEADER.size_bytes:
        raise Truncated(
            "too short for a header", place="header at byte 0", expected=f"{HEADER.size_bytes} bytes", found=len(head)
        )
    (size,) = _U64.unpack_from(head)
    if size <= os.fstat(descriptor).st_size:  # before allocating memory for it
        data = os.pread(descriptor, size, 0)
        if len(data) == size:
            return data
    if head.startswith(PARQUET_MAGIC):
        raise InvalidRequest("this is a Parquet file, not a sidecar", hint='"underlay pm build" makes its sidecar.')
    raise Truncated(
        "the file is shorter than its committed size",
        place="header, committed_size at byte 0",
        expected=f"{size} bytes",
        found=os.fstat(descriptor).st_size,
    )


def create_sidecar(path: str | os.PathLike[str], data: bytes, *, replace: bool = False) -> None:
    """Put a new sidecar in place, whole and durable or not at all.

    Without `replace` an existing file is left alone and InvalidRequest is raised.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            _write_all(descriptor, data, 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if replace:
            os.replace(temporary, path)
        else:
            os.link(temporary, path)
        _sync_directory(path.parent)
    except FileExistsError:
        raise InvalidRequest("the file exists already", place=str(path), hint="Choose another name.") from None
    except OSError as e:
        raise from_os_error(e, os.fspath(path)) from e
    finally:
        temporary.unlink(missing_ok=True)


class SidecarWriter:
    """The one writer of a sidecar: holds the exclusive lock `<path>.lock` from entry to exit.

    The lock is the operating system's, on a file that stays behind; it ends with the process, however that ends.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock: int | None = None

    def __enter__(self) -> Self:
        need_posix("sidecars on a local disk")
        import fcntl  # which Windows lacks

        name = f"{self.path}.lock"
        try:
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as e:
            raise from_os_error(e, os.fspath(name)) from e
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            os.close(descriptor)
            if e.errno not in (errno.EAGAIN, errno.EACCES):
                raise from_os_error(e, os.fspath(name)) from e
            raise Busy(
                "another writer holds the lock", place=str(self.path), hint="Try again when it is done."
            ) from None
        self._lock = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def append(
        self, blocks: Sequence[int | SidecarBlock], version: VersionFields, *, parquet_size: int | None = None
    ) -> int:
        """Add a version after the one for `parquet_size` (the newest when None); returns its committed size.

        Give `parquet_size` when a transaction log says what was committed: then a version that was published but never
        committed is skipped. Costs one write and sync of the new bytes, and one of the size.
        """
        if self._lock is None:
            raise InvalidRequest('the lock is not held: use "with SidecarWriter(path) as writer"', place=str(self.path))
        anchor = read_sidecar(self.path, parquet_size=parquet_size, check=False)
        state = "Nothing was published."
        try:
            tail = append(anchor, blocks, version, base=len(anchor.data))
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                _write_all(descriptor, tail.data, tail.begin)
                os.fsync(descriptor)
                os.pwrite(descriptor, _U64.pack(tail.size), 0)
                state = "The version is published, but it may not survive a crash of the machine."
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except UnderlayError as e:
            raise e.at(str(self.path)) from None
        except OSError as e:
            raise from_os_error(e, str(self.path), hint=state) from e
        return tail.size


def _write_all(descriptor: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, at)
        at += written
        view = view[written:]


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
