"""A segment's bytes, and the reference to it that a root holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from deflate import crc32

from underlay.errors import InvalidRequest, Malformed
from underlay.index.entry import FileEntry
from underlay.index.root import SegmentBound, SegmentRef
from underlay.index.segment.arrays import Arrays, FileArrays
from underlay.index.segment.bounds import segment_bound
from underlay.index.segment.directory import ALIGNMENT_BYTES, NO_FIELD, Piece, PieceKind, encode_directory
from underlay.index.segment.entries import EntryArrays
from underlay.index.segment.piece import encode_blocks, encode_files, encode_places, encode_statistics
from underlay.schema.table_schema import TableSchema


def write_segment(
    entries: Sequence[FileEntry], schema: TableSchema, *, segment_id: str, bounded_fields: Iterable[int]
) -> tuple[bytes, SegmentRef]:
    """The segment of these files. Bounds of `bounded_fields` over all of it go into the reference.

    The entries' bounds have the schema's types; leaves that the schema does not have are left out.
    """
    return encode_segment(EntryArrays(entries, schema), segment_id=segment_id, bounded_fields=bounded_fields)


def encode_segment(arrays: Arrays, *, segment_id: str, bounded_fields: Iterable[int]) -> tuple[bytes, SegmentRef]:
    """The segment with these arrays."""
    parts: list[bytes] = []
    pieces: list[Piece] = []
    at = 0
    for kind, field, scalar, data in _encoded_pieces(arrays):
        pieces.append(Piece(kind, field, at, len(data), crc32(data), scalar))
        padding = -len(data) % ALIGNMENT_BYTES
        parts += [data, bytes(padding)]
        at += len(data) + padding
    content = b"".join(parts)
    files = arrays.files
    return content, SegmentRef(
        id=segment_id,
        size_bytes=len(content),
        crc=crc32(content),
        file_count=files.file_count,
        block_count=len(arrays.block_rows),
        row_count=int(arrays.block_rows.sum()),
        data_bytes=int(files.size_bytes.sum()),
        deleted_rows=int(files.deleted_rows.sum()),
        pieces=encode_directory(pieces),
        bounds=tuple(_bounds(arrays, bounded_fields)),
        spec=_only_spec(files),
    )


def _only_spec(files: FileArrays) -> int:
    specs = set(files.specs.tolist())
    if len(specs) > 1:
        raise InvalidRequest("a segment has files of one partition spec", found=sorted(specs))
    return specs.pop() if specs else 0


def _encoded_pieces(arrays: Arrays) -> Iterator[tuple[PieceKind, int, str, bytes]]:
    """Files and blocks, then all statistics, then all places: what a planner fetches together lies together."""
    yield PieceKind.FILES, NO_FIELD, "", encode_files(arrays.files)
    yield PieceKind.BLOCKS, NO_FIELD, "", encode_blocks(arrays.block_rows)
    fields = sorted(arrays.files.fields)
    for field in fields:
        if (statistics := arrays.statistics(field)) is None:
            raise Malformed("a leaf of some file lacks statistics", place=f"field {field}")
        yield PieceKind.STATISTICS, field, str(statistics.type), encode_statistics(statistics)
    for field in fields:
        if (places := arrays.places(field)) is None:
            raise Malformed("a leaf of some file lacks places", place=f"field {field}")
        yield PieceKind.PLACES, field, "", encode_places(places)


def _bounds(arrays: Arrays, fields: Iterable[int]) -> Iterator[SegmentBound]:
    for field in dict.fromkeys(fields):
        places, statistics = arrays.places(field), arrays.statistics(field)
        if statistics is not None and places is not None and places.value_counts is None:
            bound = segment_bound(field, statistics, arrays.block_rows)
            if bound is not None:
                yield bound
