"""Deletion vectors of Delta Lake as ours.

| storage | where |
|---|---|
| `i` | inline, in the letters of Z85 |
| `u` | in the table's folder: an optional folder, then 20 letters of Z85 that are a UUID |
| `p` | at an absolute path |

In a file: a byte 1, then at an offset the length (4 bytes, big-endian), the vector, and its CRC-32 (likewise). A vector
is a number (4 bytes, little-endian), a count of bitmaps (8), and each bitmap's upper half (4) and its bytes.
"""

from __future__ import annotations

import struct
from base64 import b85decode
from collections.abc import Iterable, Mapping
from uuid import UUID

from deflate import crc32
from pyroaring import BitMap

from underlay.errors import ChecksumMismatch, Malformed, NotFound, Unsupported
from underlay.index import deletion_vectors as bitmaps
from underlay.interop.from_delta.log import DeletionVector
from underlay.interop.imports.source_folder import SourceFolder, locate_uri
from underlay.runtime.threads import side_by_side
from underlay.scan.read.file_stores import ObjectPlace
from underlay.values.ranges import ByteRange

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)
_MAGIC = 1681511377
_UUID_LETTERS = 20
_HEAD = struct.Struct("<iQ")
_READERS = 8


def read_vectors(folder: SourceFolder, vectors: Mapping[str, DeletionVector]) -> dict[str, bytes]:
    """Deleted rows by the keys of `vectors`. One request for each file of vectors. Raises Malformed, NotFound."""
    inline = {name: one for name, one in vectors.items() if one.storage_type == "i"}
    found = {name: _unpacked(_decode_z85(one.path_or_inline_dv), one, folder.url) for name, one in inline.items()}
    by_place: dict[ObjectPlace, list[str]] = {}
    for name, one in vectors.items():
        if name not in inline:
            by_place.setdefault(_place(folder, one), []).append(name)

    def read(place: ObjectPlace) -> dict[str, bytes]:
        return _read_file(place, {name: vectors[name] for name in by_place[place]})

    for some in side_by_side(read, list(by_place), _READERS):
        found |= some
    return found


def _place(folder: SourceFolder, vector: DeletionVector) -> ObjectPlace:
    text = vector.path_or_inline_dv
    if vector.storage_type == "p":
        found = locate_uri(text, folder.stores, is_quoted=True)
        if found is not None:
            return found
    elif vector.storage_type == "u" and len(text) >= _UUID_LETTERS:
        prefix, name = text[:-_UUID_LETTERS], UUID(bytes=_decode_z85(text[-_UUID_LETTERS:]))
        return folder.place(f"{f'{prefix}/' if prefix else ''}deletion_vector_{name}.bin")
    raise Malformed("not the place of a deletion vector", place=folder.url, found=f"{vector.storage_type} {text}")


def _read_file(place: ObjectPlace, vectors: Mapping[str, DeletionVector]) -> dict[str, bytes]:
    where = place.store.place_of(place.key)
    ranges = [ByteRange(one.offset or 1, (one.offset or 1) + one.size_in_bytes + 8) for one in vectors.values()]
    try:
        parts: Iterable[memoryview] = place.store.get_ranges(place.key, ranges)
    except NotFound as error:
        error.problem = f"a deletion vector of the source is missing: {error.problem}"
        error.hint = "Its rows cannot be told apart any longer. The source's VACUUM may have deleted it: sync again."
        raise
    found = {}
    for (name, vector), part in zip(vectors.items(), parts, strict=True):
        data = bytes(part)
        if int.from_bytes(data[:4], "big") != vector.size_in_bytes:
            raise Malformed("a deletion vector has another length than the log says", place=where)
        body = data[4:-4]
        if crc32(body) != int.from_bytes(data[-4:], "big"):
            raise ChecksumMismatch("a deletion vector is damaged", place=where)
        found[name] = _unpacked(body, vector, where)
    return found


def _unpacked(data: bytes, vector: DeletionVector, place: str) -> bytes:
    if len(data) < _HEAD.size or _HEAD.unpack_from(data)[0] != _MAGIC:
        raise Malformed("not a deletion vector of Delta Lake", place=place)
    count = _HEAD.unpack_from(data)[1]
    if count > 1 or (count == 1 and data[_HEAD.size : _HEAD.size + 4] != bytes(4)):
        raise Unsupported("a deletion vector reaches beyond row 2^32 of a file", place=place)
    try:
        rows = BitMap.deserialize(data[_HEAD.size + 4 :]) if count else BitMap()
    except (ValueError, IndexError) as error:
        raise Malformed(f"not a Roaring bitmap: {error}", place=place) from error
    if len(rows) != vector.cardinality:
        raise Malformed(
            "a deletion vector has another number of rows than the log says",
            place=place,
            expected=vector.cardinality,
            found=len(rows),
        )
    return bitmaps.pack(rows)


def _decode_z85(text: str) -> bytes:
    try:
        return b85decode(text.translate(_TO_B85))
    except ValueError as error:
        raise Malformed(f"not Z85: {error}", found=text) from error
