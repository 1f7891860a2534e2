"""A bounded disk cache for bytes of remote objects, shared without locks by all processes of a user.

An entry is one file, named by a digest of its key. It is written under a temporary name and renamed, never changed, and
checked whenever it is opened, so that whatever another process, a crash or a damaged disk does, the answer is the right
bytes or none. The least recently used entry is evicted first: each read sets the modification time.

A process lists the folder when it has written a sixteenth of the bound, and when it reaches the bound; then it deletes
down to seven eighths. So one process alone keeps the bound, and each further one may exceed it by a sixteenth. When a
write fails, as on a full disk, in another user's folder or through a symbolic link inside the folder, the process stops
writing and continues to read.
"""

from __future__ import annotations

import errno
import os
import re
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from threading import Lock

import msgspec
from deflate import crc32

from underlay.errors import ChecksumMismatch
from underlay.runtime.fork import start_afresh_after_fork
from underlay.store.store import Store
from underlay.values.ranges import ByteRange

# One file of the disk cache: some bytes of an object, and the key that identifies them.
#
#     |  0 |  8 | bytes | magic        | `ULPIECE1`                                                |
#     |  8 |  4 | u32   | crc          | CRC-32 of every byte from 12 to the end                   |
#     | 12 |  4 | u32   | key_size     | bytes of the key                                          |
#     | 16 |  8 | u64   | content_size | bytes of the content                                      |
#     | 24 |    | bytes | key          | which bytes of which object these are, as JSON            |
#     |    |    | zeros | padding      | so that the content begins at a multiple of 64, as Arrow likes it |
#     |    |    | bytes | content      |                                                           |
#
# A file that is not exactly this, for the key it was opened by, is not an entry: whatever damaged it, the bytes are
# fetched again.

_HEAD = struct.Struct("<8sIIQ")
_MAGIC = b"ULPIECE1"
_COVERED_FROM = 12
_ALIGNMENT = 64


class PieceKey(msgspec.Struct, frozen=True, array_like=True):
    """Some bytes of one state of an object. `version` is its etag or checksum, or an id that is in its name."""

    store_url: str
    key: str
    version: str
    begin: int
    end: int

    @staticmethod
    def of(store_url: str, key: str, version: str, wanted: ByteRange) -> PieceKey:
        """The key of a range."""
        return PieceKey(store_url, key, version, wanted.begin, wanted.end)

    def encode(self) -> bytes:
        """The key's bytes, different for different keys."""
        return msgspec.json.encode(self)


def encode_entry(key: bytes, content: memoryview) -> list[bytes | memoryview]:
    """The file's bytes, in parts, so that the content is not copied."""
    padding = bytes(-(_HEAD.size + len(key)) % _ALIGNMENT)
    sizes = _HEAD.pack(_MAGIC, 0, len(key), len(content))[_COVERED_FROM:]
    crc = crc32(content, crc32(sizes + key + padding))
    return [_HEAD.pack(_MAGIC, crc, len(key), len(content)), key, padding, content]


def decode_entry(data: memoryview, key: bytes) -> memoryview | None:
    """The content of an entry of this key, None when `data` is not exactly that."""
    if len(data) < _HEAD.size:
        return None
    magic, crc, key_size, content_size = _HEAD.unpack_from(data)
    key_end = _HEAD.size + len(key)
    begin = key_end + -key_end % _ALIGNMENT
    if magic != _MAGIC or key_size != len(key) or len(data) != begin + content_size:
        return None
    if data[_HEAD.size : key_end] != key or crc != crc32(data[_COVERED_FROM:]):
        return None
    return data[begin:]


Fetch = Callable[[Sequence[ByteRange]], Sequence[memoryview]]
"""The bytes of each range of one object."""

_TEMPORARY = ".tmp-"
_FOLDER_NAME = re.compile("[0-9a-f]{2}")
_FILE_NAME = re.compile(r"[0-9a-f]{38}|\.tmp-[0-9a-f]{16}")
_TEMPORARY_AGE_NS = 3600 * 10**9
"""The age at which a temporary file has certainly been left behind by its writer."""
_LOOK_AFTER = 16
"""The fraction of the bound that is written between two listings of the folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskStats:
    """What this process has done with a disk cache so far."""

    hits: int
    misses: int
    written_bytes: int
    evictions: int
    is_writing: bool


class DiskCache:
    """At most `bound_bytes` of files in `folder`, which the first write creates. For many threads and processes."""

    def __init__(self, folder: Path, bound_bytes: int, *, clock: Callable[[], int] = time.time_ns) -> None:
        self._folder = folder
        self._bound_bytes = bound_bytes
        self._clock = clock
        self.start_afresh()
        start_afresh_after_fork(self)

    def start_afresh(self) -> None:
        """Count from zero, as after a fork. The files stay."""
        self._lock = Lock()
        self._is_writing = self._bound_bytes > 0
        self._size_bytes: int | None = None
        self._unseen_bytes = 0
        self._hits = self._misses = self._written_bytes = self._evictions = 0

    def fetch_ranges(
        self,
        store: Store,
        key: str,
        version: str,
        ranges: Sequence[ByteRange],
        crcs: Sequence[int] | None = None,
        *,
        checksum: Callable[[memoryview], int] = crc32,
        fetch: Fetch | None = None,
    ) -> list[memoryview]:
        """The bytes of each range of the object, whose state `version` names. Missing ranges are fetched in one call of
        `fetch`, or of `store.get_ranges`, and kept. If `crcs` are given, bytes whose `checksum` differs raise
        ChecksumMismatch."""
        keys = [PieceKey.of(store.url, key, version, wanted) for wanted in ranges]
        found = [self.read(piece) for piece in keys]
        if crcs is not None:
            found = [v if v is None or checksum(v) == crc else None for v, crc in zip(found, crcs, strict=True)]
        missing = [i for i, view in enumerate(found) if view is None]
        if missing:
            wanted = [ranges[i] for i in missing]
            fetched = fetch(wanted) if fetch is not None else store.get_ranges(key, wanted)
            for i, view in zip(missing, fetched, strict=True):
                if crcs is not None and (found_crc := checksum(view)) != crcs[i]:
                    place = f"{store.place_of(key)}: bytes {ranges[i].begin} to {ranges[i].end}"
                    raise ChecksumMismatch("damaged", place=place, expected=crcs[i], found=found_crc)
                self.write(keys[i], view)
                found[i] = view
        return [view for view in found if view is not None]

    def read(self, key: PieceKey) -> memoryview | None:
        """The bytes, None when they are not here. A file of this name that is not a sound entry is deleted."""
        encoded = key.encode()
        path = self._path(encoded)
        content = None
        with suppress(OSError):
            content = decode_entry(memoryview(path.read_bytes()), encoded)
            if content is None or len(content) != key.end - key.begin:
                content = None
                path.unlink()
            else:
                now = self._clock()
                os.utime(path, ns=(now, now))
        with self._lock:
            self._hits += content is not None
            self._misses += content is None
        return content

    def write(self, key: PieceKey, content: memoryview) -> None:
        """Keep the bytes, unless they are more than an eighth of the bound or cannot be written."""
        encoded = key.encode()
        parts = encode_entry(encoded, content)
        size = sum(map(len, parts))
        if not self._is_writing or size > self._bound_bytes // 8:
            return
        try:
            self._make_room(size)
            self._publish(self._path(encoded), parts)
        except FileNotFoundError:
            # Another process deleted the folder; the next write makes it again.
            return
        except OSError:
            self._is_writing = False
            return
        with self._lock:
            self._written_bytes += size

    def stats(self) -> DiskStats:
        """What this process has done."""
        with self._lock:
            return DiskStats(
                hits=self._hits,
                misses=self._misses,
                written_bytes=self._written_bytes,
                evictions=self._evictions,
                is_writing=self._is_writing,
            )

    def _path(self, encoded_key: bytes) -> Path:
        digest = blake2b(encoded_key, digest_size=20).hexdigest()
        return self._folder / digest[:2] / digest[2:]

    def _publish(self, path: Path, parts: Sequence[bytes | memoryview]) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.parent.is_symlink():
            raise OSError(errno.ELOOP, "a symbolic link in place of a folder of the cache", str(path.parent))
        temporary = path.with_name(f"{_TEMPORARY}{os.urandom(8).hex()}")
        try:
            with temporary.open("xb") as file:
                file.writelines(parts)
            now = self._clock()
            os.utime(temporary, ns=(now, now))
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise

    def _make_room(self, size: int) -> None:
        """Make room for `size` bytes that are about to be written, and count them."""
        with self._lock:
            is_due = self._unseen_bytes + size > self._bound_bytes // _LOOK_AFTER
            if self._size_bytes is None or is_due or self._size_bytes + size > self._bound_bytes:
                self._size_bytes = self._evict(self._bound_bytes - size)
                self._unseen_bytes = 0
            self._size_bytes += size
            self._unseen_bytes += size

    def _evict(self, most_bytes: int) -> int:
        """The bytes in the folder, after deletion when they are more than `most_bytes`."""
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        if total <= most_bytes:
            return total
        for _, size, path in files:
            if total <= most_bytes - self._bound_bytes // 8:
                break
            with suppress(OSError):
                os.unlink(path)
                self._evictions += 1
            total -= size
        return total

    def _files(self) -> Iterator[tuple[int, int, str]]:
        """Time of last use, size and path of each of our files, except those that vanish meanwhile.

        Only names that this cache gives count: the folder may hold other things as well.
        """
        oldest = self._clock() - _TEMPORARY_AGE_NS
        for folder in _entries(str(self._folder), _FOLDER_NAME):
            for entry in _entries(folder.path, _FILE_NAME):
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    is_left = entry.name.startswith(_TEMPORARY) and status.st_mtime_ns < oldest
                    yield 0 if is_left else status.st_mtime_ns, status.st_size, entry.path


def _entries(folder: str, name: re.Pattern[str]) -> list[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as found:
        return [entry for entry in found if name.fullmatch(entry.name)]
    return []
