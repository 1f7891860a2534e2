"""The directory of a local store: walked without following symbolic links, made and written durably."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from underlay.errors import from_os_error
from underlay.runtime.posix import open_flags
from underlay.store.key import TEMPORARY, check_key
from underlay.store.store import Data
from underlay.values.ranges import ByteRange

_FOLDER = open_flags("O_RDONLY", "O_DIRECTORY", "O_CLOEXEC")
_INNER = _FOLDER | open_flags("O_NOFOLLOW")
_WRITE_NEW = open_flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW", "O_CLOEXEC")


@contextmanager
def existing_folder(root: Path, segments: Sequence[str]) -> Iterator[int]:
    """A descriptor of the folder `segments` below `root`. The root may be a symbolic link, the segments may not."""
    descriptor = _open_folder(root, segments)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_below(root: Path, segments: Sequence[str], flags: int) -> int:
    """A descriptor of what the last of `segments` names, in the folder that the others lead to, without links."""
    folder = _open_folder(root, segments[:-1])
    try:
        return os.open(segments[-1], flags, dir_fd=folder)
    finally:
        os.close(folder)


def _open_folder(root: Path, segments: Sequence[str]) -> int:
    # O_NOFOLLOW applies only to the last part of a path, so the root needs no descriptor of its own
    descriptor = os.open(f"{root}/{segments[0]}", _INNER) if segments else os.open(root, _FOLDER)
    for segment in segments[1:]:
        try:
            inner = os.open(segment, _INNER, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


class FolderMaker:
    """Makes folders below `root`, and remembers which are durable.

    A folder that another process made a moment ago may not be synced yet, so each is synced into its parent once.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._synced: set[tuple[int, int]] = set()

    @contextmanager
    def folder(self, segments: Sequence[str]) -> Iterator[int]:
        """A descriptor of the folder `segments`, made where it is missing, durable up to the root."""
        _make_durable(self._root)
        descriptor = os.open(self._root, _FOLDER)
        try:
            for segment in segments:
                inner = self._step(descriptor, segment)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    def _step(self, parent: int, segment: str) -> int:
        is_made = _make(segment, parent)
        descriptor = os.open(segment, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
        try:
            status = os.fstat(descriptor)
            if is_made or (status.st_dev, status.st_ino) not in self._synced:
                os.fsync(parent)
                self._synced.add((status.st_dev, status.st_ino))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


def _make(segment: str, parent: int) -> bool:
    """Whether the folder had to be made."""
    try:
        os.stat(segment, dir_fd=parent, follow_symlinks=False)
        return False
    except FileNotFoundError:
        with suppress(FileExistsError):
            os.mkdir(segment, dir_fd=parent)
        return True


def _make_durable(directory: Path) -> None:
    """Make `directory` and its parents where they are missing, each synced into its own parent."""
    if directory.is_dir():
        return
    _make_durable(directory.parent)
    with suppress(FileExistsError):
        os.mkdir(directory)
    descriptor = os.open(directory.parent, _FOLDER)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def temporary_file(folder: int, data: Data) -> Iterator[str]:
    """The name of a synced file with `data` in `folder`. The name is removed at the end, whatever became of the
    file."""
    name = f"{TEMPORARY}{os.urandom(12).hex()}"
    descriptor = os.open(name, _WRITE_NEW, 0o666, dir_fd=folder)
    try:
        try:
            view = memoryview(data).cast("B")
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        yield name
    finally:
        # A temporary file that cannot be removed is not an object and does no harm; the outcome is already decided.
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)


def entries(folder: int) -> list[tuple[str, bool]]:
    """The name of each entry that is not a temporary file, and whether it is a folder. A symbolic link is not a
    folder."""
    with os.scandir(folder) as found:
        return [
            (entry.name, entry.is_dir(follow_symlinks=False)) for entry in found if not entry.name.startswith(TEMPORARY)
        ]


def is_taken(folder: int, name: str) -> bool:
    """Whether there is something of this name in `folder`."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def is_folder(folder: int, name: str) -> bool:
    """Whether `name` in `folder` is a folder itself."""
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def read(descriptor: int, wanted: ByteRange) -> bytes:
    """The bytes of the range, fewer at the end of the file."""
    data = os.pread(descriptor, wanted.size_bytes, wanted.begin)
    if len(data) == wanted.size_bytes:
        return data
    pieces = [data]
    at = wanted.begin + len(data)
    while data and at < wanted.end:
        data = os.pread(descriptor, wanted.end - at, at)
        pieces.append(data)
        at += len(data)
    return b"".join(pieces)


def local_root(url: str) -> Path | None:
    """The directory of a local store's URL, None for any other store."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def is_same_directory(url: str, other: str) -> bool:
    """Whether two URLs name the same local store, perhaps through a link or `..`."""
    root, other_root = local_root(url), local_root(other)
    return root is not None and other_root is not None and os.path.realpath(root) == os.path.realpath(other_root)


def sync_file(path: Path) -> None:
    """Sync a file that any program on this machine wrote. Raises NotFound, Unavailable."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise from_os_error(error, str(path)) from error


def take_over(root: Path, folder: str, names: Mapping[Path, str]) -> None:
    """Make synced files objects of the store without copying them: a rename each, then one sync of the folder.

    The names must be new: an object of the same name is replaced. Raises NotFound, Unavailable; some files may be
    moved by then.
    """
    segments = check_key(folder).split("/")
    try:
        with existing_folder(root, segments) as descriptor:
            for path, name in names.items():
                os.rename(path, check_key(name), dst_dir_fd=descriptor)
            os.fsync(descriptor)
    except OSError as error:
        raise from_os_error(error, str(root / folder)) from error
