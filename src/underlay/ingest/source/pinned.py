"""Reads a source that must not change: if it does, reading raises an error and returns no byte of the new content."""

from __future__ import annotations

import io
import os
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

import xxhash

from underlay.errors import InvalidRequest, NotFound, Replaced, from_os_error
from underlay.ingest.source.source import Source, local_identity, local_path, store_of
from underlay.runtime.posix import need_posix
from underlay.store.open import Option
from underlay.store.store import Store
from underlay.values.ranges import ByteRange

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

LOCAL_BYTES = 1 << 20
REMOTE_BYTES = 8 << 20
"""Bytes per request of a remote store."""
_HASH = "xxh3"


def open_pinned(found: Source, options: Mapping[str, Option] | None = None) -> io.BufferedReader:
    """Open a source as a seekable file. Raises NotFound.

    Raises Replaced, here or from any read, when the object is not the one that was found, or has changed since: a local
    file is read through one descriptor and checked after each read, and each request for a remote object is
    conditional.
    """
    path = local_path(found.uri)
    if path is not None:
        return io.BufferedReader(_LocalFile(found, path), LOCAL_BYTES)
    store, key = store_of(found.uri, options)
    return io.BufferedReader(_RemoteObject(found, store, key), REMOTE_BYTES)


def content_of(file: io.BufferedReader) -> str | None:
    """Size and hash of a file from `open_pinned` that the caller has read. Bytes of a local file that were not read are
    read now; for a remote object that was not read to its end, this is None.
    """
    raw = file.raw
    return raw.content() if isinstance(raw, _Pinned) else None


def hash_content(found: Source, options: Mapping[str, Option] | None = None) -> str | None:
    """The same for a source that is read only for this; None when it is gone or changes meanwhile."""
    try:
        with open_pinned(found, options) as file:
            while file.read(LOCAL_BYTES):
                pass
            return content_of(file)
    except (NotFound, Replaced):
        return None


def may_be_content(content: str | None, found: Source) -> bool:
    """Whether a source has the size of this content. Unknown content never matches."""
    return content is not None and content.startswith(f"{_HASH}:{found.size_bytes:x}-")


class _Pinned(io.RawIOBase):
    """A position in an object of known size. Bytes that are read in sequence are hashed."""

    may_read_again = False
    """Whether reads are cheap enough to read everything again for its hash."""

    def __init__(self, found: Source) -> None:
        self._found = found
        self._at = 0
        self._hash = xxhash.xxh3_128()
        self._hashed_bytes = 0

    @property
    def name(self) -> str:
        """The uri."""
        return self._found.uri

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._found.size_bytes}[whence]
        if begin + offset < 0:
            raise InvalidRequest("a place before the beginning", place=self._found.uri, found=begin + offset)
        self._at = begin + offset
        return self._at

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill the buffer as far as there are bytes."""
        view = memoryview(buffer).cast("B")
        wanted = ByteRange(self._at, min(self._at + len(view), self._found.size_bytes))
        if wanted.size_bytes <= 0:
            return 0
        count = self._fill(view[: wanted.size_bytes], wanted)
        if self._at <= self._hashed_bytes < self._at + count:
            self._hash.update(view[self._hashed_bytes - self._at : count])
            self._hashed_bytes = self._at + count
        self._at += count
        return count

    def content(self) -> str | None:
        """Size and hash of all bytes, see `content_of`."""
        if self._hashed_bytes < self._found.size_bytes and self.may_read_again:
            self.seek(self._hashed_bytes)
            buffer = bytearray(LOCAL_BYTES)
            while self.readinto(buffer):
                pass
        if self._hashed_bytes < self._found.size_bytes:
            return None
        return f"{_HASH}:{self._found.size_bytes:x}-{self._hash.hexdigest()}"

    @abstractmethod
    def _fill(self, view: memoryview, wanted: ByteRange) -> int:
        """Copy these bytes into a view of their size. Returns how many there were."""

    def _replaced(self, identity: str | None) -> Replaced:
        return Replaced(
            "the source changed since it was found",
            place=self._found.uri,
            expected=self._found.identity,
            found=identity,
            hint="Retry once nobody writes to it.",
        )


class _LocalFile(_Pinned):
    may_read_again = True

    def __init__(self, found: Source, path: str) -> None:
        super().__init__(found)
        need_posix("sources on a local disk")
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise from_os_error(error, found.uri) from None
        try:
            self._check()
        except BaseException:
            self.close()
            raise

    def _fill(self, view: memoryview, wanted: ByteRange) -> int:
        try:
            count = os.preadv(self._descriptor, [view], wanted.begin)
        except OSError as error:
            raise from_os_error(error, self._found.uri) from None
        self._check()
        return count

    def _check(self) -> None:
        identity = local_identity(os.fstat(self._descriptor))
        if identity != self._found.identity:
            raise self._replaced(identity)

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


class _RemoteObject(_Pinned):
    def __init__(self, found: Source, store: Store, key: str) -> None:
        super().__init__(found)
        self._store, self._key = store, key

    def _fill(self, view: memoryview, wanted: ByteRange) -> int:
        size, etag = self._found.size_bytes, self._found.identity
        (data,) = self._store.get_ranges(self._key, [wanted], if_match=etag, size_bytes=size)
        view[: len(data)] = data
        return len(data)
