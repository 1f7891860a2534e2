"""A segment's directory: where each of its pieces lies, with its checksum. It is packed in the root's SegmentRef.

A piece is an Arrow IPC stream of one record batch and begins at a multiple of 64 bytes.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from underlay.errors import Malformed
from underlay.index.sealed_json import UNDECODED
from underlay.values.ranges import ByteRange

ALIGNMENT_BYTES = 64
NO_FIELD = -1


class PieceKind(IntEnum):
    """What a piece holds."""

    FILES = 0
    """One row for each file: all of it but its columns."""
    BLOCKS = 1
    """The rows of each block."""
    STATISTICS = 2
    """Bounds, null counts and flags of one leaf, a row for each block."""
    PLACES = 3
    """Where the chunks of one leaf lie, a row for each block."""


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """One piece. `field` is the leaf's id, -1 for files and blocks; `type` that of its bounds when it was written."""

    kind: int
    field: int
    begin: int
    size_bytes: int
    crc: int
    type: str = ""

    @property
    def range(self) -> ByteRange:
        """Where it lies in the segment."""
        return ByteRange(self.begin, self.begin + self.size_bytes)

    @property
    def name(self) -> str:
        """Its name in messages."""
        name = PieceKind(self.kind).name.lower()
        return name if self.field == NO_FIELD else f"{name} of field {self.field}"


PieceKey = tuple[PieceKind, int]

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Piece])


def encode_directory(pieces: list[Piece]) -> bytes:
    """The packed directory."""
    return _ENCODER.encode(pieces)


def decode_directory(data: bytes, size_bytes: int) -> dict[PieceKey, Piece]:
    """The pieces by kind and field, each within the segment's `size_bytes`. Raises Malformed."""
    try:
        pieces = _DECODER.decode(data)
    except UNDECODED as error:
        raise Malformed(f"not a directory of pieces: {error}", place="directory") from error
    found: dict[PieceKey, Piece] = {}
    for piece in pieces:
        if not 0 <= piece.kind <= PieceKind.PLACES:
            continue  # a kind that a newer Underlay added
        key = (PieceKind(piece.kind), piece.field)
        if piece.begin < 0 or piece.size_bytes < 0 or piece.begin + piece.size_bytes > size_bytes:
            raise Malformed(f"the {piece.name} lies outside the segment", place="directory", found=piece.begin)
        if key in found:
            raise Malformed(f"the {piece.name} occurs twice", place="directory")
        found[key] = piece
    for kind in (PieceKind.FILES, PieceKind.BLOCKS):
        if (kind, NO_FIELD) not in found:
            raise Malformed(f"there is no piece of {kind.name.lower()}", place="directory")
    return found
