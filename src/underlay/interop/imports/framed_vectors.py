"""Deletion vectors of Delta Lake and Iceberg as ours: the same Roaring bitmaps behind a short frame.

A vector is a number (4 bytes), a count of bitmaps (8), and each bitmap's upper half (4) and its bytes, little-endian.
Its frame is the length before it and a CRC-32 behind it, 4 bytes each, big-endian.
"""

from __future__ import annotations

import struct

from deflate import crc32
from pyroaring import BitMap

from underlay.errors import ChecksumMismatch, Malformed, Unsupported
from underlay.index import deletion_vectors as bitmaps

FRAME_BYTES = 8
_MAGIC = 1681511377
_HEAD = struct.Struct("<iQ")


def unpack_framed(data: bytes, cardinality: int | None, place: str) -> bytes:
    """A vector in its frame, packed as ours. Raises Malformed, ChecksumMismatch, Unsupported."""
    if int.from_bytes(data[:4], "big") != len(data) - FRAME_BYTES:
        raise Malformed("a deletion vector has another length than the metadata says", place=place)
    if crc32(data[4:-4]) != int.from_bytes(data[-4:], "big"):
        raise ChecksumMismatch("a deletion vector is damaged", place=place)
    return unpack_vector(data[4:-4], cardinality, place)


def unpack_vector(data: bytes, cardinality: int | None, place: str) -> bytes:
    """A vector without its frame, packed as ours. Raises Malformed, Unsupported."""
    if len(data) < _HEAD.size or _HEAD.unpack_from(data)[0] != _MAGIC:
        raise Malformed("not a deletion vector", place=place)
    count = _HEAD.unpack_from(data)[1]
    if count > 1 or (count == 1 and data[_HEAD.size : _HEAD.size + 4] != bytes(4)):
        raise Unsupported("a deletion vector reaches beyond row 2^32 of a file", place=place)
    try:
        rows = BitMap.deserialize(data[_HEAD.size + 4 :]) if count else BitMap()
    except (ValueError, IndexError) as error:
        raise Malformed(f"not a Roaring bitmap: {error}", place=place) from error
    if cardinality is not None and len(rows) != cardinality:
        raise Malformed(
            "a deletion vector has another number of rows than the metadata says",
            place=place,
            expected=cardinality,
            found=len(rows),
        )
    return bitmaps.pack(rows)
