"""One file of the disk cache: some bytes of an object, and of which object they are.

    |  0 |  8 | bytes | magic        | `ULPIECE1`                                                |
    |  8 |  4 | u32   | crc          | CRC-32 of every byte from 12 to the end                   |
    | 12 |  4 | u32   | key_size     | bytes of the key                                          |
    | 16 |  8 | u64   | content_size | bytes of the content                                      |
    | 24 |    | bytes | key          | which bytes of which object these are, as JSON            |
    |    |    | zeros | padding      | so that the content begins at a multiple of 64, as Arrow likes it |
    |    |    | bytes | content      |                                                           |

A file that is not exactly this, for the key it was opened by, is no entry: whatever damaged it, the bytes are fetched
again.
"""

from __future__ import annotations

import mmap
import os
import struct

import msgspec
from deflate import crc32

from underlay.values.ranges import ByteRange

_HEAD = struct.Struct("<8sIIQ")
_MAGIC = b"ULPIECE1"
_COVERED_FROM = 12
_ALIGNMENT = 64
_MAP_FROM = 64 << 10
"""Bytes from which on a file is mapped. A process may have some 65,000 maps, so that small files are read."""


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


def read_file(path: str | os.PathLike[str]) -> memoryview:
    """The bytes of a file, mapped when they are many. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        if size < _MAP_FROM:
            return memoryview(os.read(descriptor, size))
        return memoryview(mmap.mmap(descriptor, size, access=mmap.ACCESS_READ))
    finally:
        os.close(descriptor)
