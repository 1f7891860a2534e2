"""Deletion vectors of Delta Lake as ours.

| storage | where |
|---|---|
| `i` | inline, in the letters of Z85 |
| `u` | in the table's folder: an optional folder, then 20 letters of Z85 that are a UUID |
| `p` | at an absolute path |

A file has a byte 1, then framed vectors at their offsets: see `imports.framed_vectors`.
"""

from __future__ import annotations

from base64 import b85decode
from collections.abc import Iterable, Mapping
from uuid import UUID

from underlay.errors import Malformed, NotFound
from underlay.interop.from_delta.log import DeletionVector
from underlay.interop.imports.framed_vectors import unpack_framed, unpack_vector
from underlay.interop.imports.source_folder import SourceFolder, locate_uri
from underlay.runtime.threads import side_by_side
from underlay.scan.read.file_stores import ObjectPlace
from underlay.values.ranges import ByteRange

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)
_UUID_LETTERS = 20
_READERS = 8


def read_vectors(folder: SourceFolder, vectors: Mapping[str, DeletionVector]) -> dict[str, bytes]:
    """Deleted rows by the keys of `vectors`. One request for each file of vectors. Raises Malformed, NotFound."""
    inline = {name: one for name, one in vectors.items() if one.storage_type == "i"}
    found = {
        name: unpack_vector(_decode_z85(one.path_or_inline_dv), one.cardinality, folder.url)
        for name, one in inline.items()
    }
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
        found[name] = unpack_framed(bytes(part), vector.cardinality, where)
    return found


def _decode_z85(text: str) -> bytes:
    try:
        return b85decode(text.translate(_TO_B85))
    except ValueError as error:
        raise Malformed(f"not Z85: {error}", found=text) from error
