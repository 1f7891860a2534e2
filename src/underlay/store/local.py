"""A directory as a store, durable and safe for many processes.

An object is a regular file. It is written under a temporary name in its own folder, synced, and then published whole:
by a hard link, which fails when the name is taken, or by a rename, which replaces. The folder is synced last, and a
folder that is new to this process is synced into its parent before anything is published in it. So a reader sees a
whole object or none, and an object whose creation was acknowledged survives a power cut. A crash can leave a
temporary file, which is not an object.

Every path is walked from the root without following symbolic links: a link below the root is not an object, and no key
leads out of the root. The root itself may be one. Folders stay when their last object is deleted.

The etag is size, modification time and inode: it changes when a file is replaced or written to, and when a lake is
copied. A write within the file system's timestamp granularity that leaves the size as it is is not noticed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

from underlay.errors import InvalidRequest, NotFound, Replaced, Unavailable, UnderlayError, os_hint
from underlay.runtime.locks import cached_property
from underlay.store.coalesce import check_size, cut, join, past_the_end
from underlay.store.directory import (
    FolderMaker,
    entries,
    existing_folder,
    is_folder,
    is_taken,
    open_below,
    read,
    temporary_file,
)
from underlay.store.key import check_folder, check_key, is_key
from underlay.store.publish import UnclearFailure, link_new
from underlay.store.store import Data, Outcome, Store, StoredObject
from underlay.values.ranges import ByteRange

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ABSENT = (FileNotFoundError, NotADirectoryError)
"""The way to an object ends early: nothing there, or a file or symbolic link where a folder should be."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LocalStore(Store):
    """The objects below the directory `root`, which the first put makes."""

    gap_bytes = 4096

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).absolute()
        self._folders = FolderMaker(self.root)

    @cached_property
    def url(self) -> str:
        """The root as a file URL."""
        return self.root.as_uri()

    def create(self, key: str, data: Data) -> Outcome:
        """See Store. Costs one sync of the file and one of its folder; a refusal costs the latter, so that the existing
        object is durable when the caller reads it."""
        *folders, name = check_key(key).split("/")
        with self._errors_of(key, is_write=True), self._folders.folder(folders) as folder:
            is_new = False
            if not is_taken(folder, name):  # spares the write when the name is taken
                with temporary_file(folder, data) as temporary:
                    try:
                        is_new = link_new(folder, temporary, name)
                    except UnclearFailure:
                        return Outcome.UNKNOWN
            if not is_new and is_folder(folder, name):
                raise InvalidRequest("a folder already has this name", place=self._place(key))
            try:
                os.fsync(folder)
            except OSError:
                return Outcome.UNKNOWN
            return Outcome.DONE if is_new else Outcome.REFUSED

    def put(self, key: str, data: Data) -> None:
        """See Store. Costs one sync of the file and one of its folder."""
        *folders, name = check_key(key).split("/")
        with self._errors_of(key, is_write=True), self._folders.folder(folders) as folder:
            with temporary_file(folder, data) as temporary:
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)

    def get(self, key: str, *, if_match: str | None = None) -> tuple[memoryview, StoredObject]:
        """See Store."""
        with self._opened(key, if_match) as (descriptor, found):
            return memoryview(read(descriptor, ByteRange(0, found.size_bytes))), found

    def get_all(self, keys: Sequence[str]) -> Iterator[memoryview]:
        """See Store. Neighbouring keys of one folder are opened from its descriptor."""
        for place, some in groupby(keys, lambda key: check_key(key).rpartition("/")[0]):
            with self._errors_of(place), existing_folder(self.root, place.split("/") if place else []) as folder:
                for key in some:
                    with self._opened(key, None, folder) as (descriptor, found):
                        data = read(descriptor, ByteRange(0, found.size_bytes))
                    yield memoryview(data)

    def get_ranges(
        self,
        key: str,
        ranges: Sequence[ByteRange],
        *,
        if_match: str | None = None,
        size_bytes: int | None = None,
        gap_bytes: int | None = None,
    ) -> Sequence[memoryview]:
        """See Store. All ranges are read through one descriptor, and are of one state of the file or Replaced."""
        joined = join(ranges, self.gap_bytes if gap_bytes is None else gap_bytes)
        with self._opened(key, if_match) as (descriptor, found):
            check_size(found.size_bytes, size_bytes, lambda: self._place(key))
            beyond = next((wanted for wanted in joined if wanted.end > found.size_bytes), None)
            if beyond is not None:  # before allocating memory for it
                raise past_the_end(beyond, found.size_bytes).at(self._place(key))
            fetched = [memoryview(read(descriptor, wanted)) for wanted in joined]
        try:
            return cut(fetched, joined, ranges)
        except UnderlayError as e:
            raise e.at(self._place(key)) from None

    def get_tail(self, key: str, size_bytes: int) -> tuple[memoryview, StoredObject]:
        """See Store."""
        with self._opened(key, None) as (descriptor, found):
            tail = ByteRange(max(found.size_bytes - size_bytes, 0), found.size_bytes)
            return memoryview(read(descriptor, tail)), found

    def head(self, key: str) -> StoredObject | None:
        """See Store. One stat."""
        *folders, name = check_key(key).split("/")
        with self._errors_of(key):
            try:
                with existing_folder(self.root, folders) as folder:
                    return _described(key, os.stat(name, dir_fd=folder, follow_symlinks=False))
            except _ABSENT:
                return None

    def list_objects(self, folder: str = "", *, after: str | None = None) -> Iterator[StoredObject]:
        """See Store. Reads one folder at a time."""
        folder = check_folder(folder)
        return self._walk(folder.split("/") if folder else [], check_key(after) if after else "")

    def list_folders(self, folder: str = "") -> Sequence[str]:
        """See Store. Reads one folder."""
        folder = check_folder(folder)
        segments = folder.split("/") if folder else []
        with self._errors_of(folder), suppress(*_ABSENT), existing_folder(self.root, segments) as descriptor:
            return sorted("/".join([*segments, name]) for name, is_inner in entries(descriptor) if is_inner)
        return []

    def delete(self, keys: Iterable[str]) -> None:
        """See Store. One sync of each folder that lost an object."""
        names_by_folder: dict[tuple[str, ...], list[str]] = {}
        for key in keys:
            *folders, name = check_key(key).split("/")
            names_by_folder.setdefault(tuple(folders), []).append(name)
        for segments, names in names_by_folder.items():
            with (
                self._errors_of("/".join(segments)),
                suppress(*_ABSENT),
                existing_folder(self.root, segments) as folder,
            ):
                for name in names:
                    with suppress(FileNotFoundError, IsADirectoryError):
                        os.unlink(name, dir_fd=folder)
                os.fsync(folder)

    def now(self) -> datetime:
        """The file system's clock: the modification time of a new file."""
        with (
            self._errors_of("", is_write=True),
            self._folders.folder([]) as folder,
            temporary_file(folder, b"") as temporary,
        ):
            return _moment(os.stat(temporary, dir_fd=folder).st_mtime_ns)

    @contextmanager
    def _opened(self, key: str, if_match: str | None, folder: int | None = None) -> Iterator[tuple[int, StoredObject]]:
        """A descriptor of an object; Replaced when it is not `if_match`, or not the same at the end as at the start.
        `folder` is a descriptor of its folder, if there is one."""
        segments = check_key(key).split("/")
        try:
            if folder is None:
                descriptor = open_below(self.root, segments, _READ)
            else:
                descriptor = os.open(segments[-1], _READ, dir_fd=folder)
            try:
                status = os.fstat(descriptor)
                found = _described(key, status)
                if found is None:
                    raise NotFound("is not a regular file", place=self._place(key))
                if if_match is not None and if_match != found.etag:
                    raise self._replaced(key, if_match, found.etag)
                yield descriptor, found
                later = os.fstat(descriptor)
                if (later.st_mtime_ns, later.st_size) != (status.st_mtime_ns, status.st_size):
                    after = _described(key, later)
                    raise self._replaced(key, found.etag, after.etag if after else None)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise self._explained(error, key) from error

    def _walk(self, segments: list[str], after: str) -> Iterator[StoredObject]:
        with self._errors_of("/".join(segments)), suppress(*_ABSENT), existing_folder(self.root, segments) as folder:
            # A folder sorts as its keys do: by its name with the '/'.
            for sort_name, is_inner in sorted((n + "/" if f else n, f) for n, f in entries(folder)):
                name = sort_name.removesuffix("/")
                key = "/".join([*segments, name])
                if is_inner:
                    if f"{key}/" > after or after.startswith(f"{key}/"):
                        yield from self._walk([*segments, name], after)
                elif key > after and is_key(key):
                    with suppress(FileNotFoundError):
                        found = _described(key, os.stat(name, dir_fd=folder, follow_symlinks=False))
                        if found is not None:
                            yield found

    def _place(self, key: str) -> str:
        return str(self.root / key)

    def _replaced(self, key: str, expected: str | None, found: str | None) -> Replaced:
        return Replaced(
            "the file changed since it was described", place=self._place(key), expected=expected, found=found
        )

    @contextmanager
    def _errors_of(self, key: str, *, is_write: bool = False) -> Iterator[None]:
        """Errors of the operating system as ours."""
        try:
            yield
        except OSError as error:
            raise self._explained(error, key, is_write=is_write) from error

    def _explained(self, error: OSError, key: str, *, is_write: bool = False) -> UnderlayError:
        place = self._place(key)
        is_absent = isinstance(error, (*_ABSENT, IsADirectoryError)) or error.errno == errno.ELOOP
        if is_absent and not is_write:
            return NotFound("no such object", place=place)
        if is_absent and not isinstance(error, FileNotFoundError):
            return InvalidRequest("the key leads through a file, or names a folder", place=place)
        return Unavailable(error.strerror or str(error), place=place, hint=os_hint(error))


def _described(key: str, status: os.stat_result) -> StoredObject | None:
    """The object with this status; None when it is not a regular file."""
    if not stat.S_ISREG(status.st_mode):
        return None
    return StoredObject(
        key=key,
        size_bytes=status.st_size,
        etag=f'"{status.st_size:x}-{status.st_mtime_ns:x}-{status.st_ino:x}"',
        modified=_moment(status.st_mtime_ns),
    )


def _moment(nanoseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
