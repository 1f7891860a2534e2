"""Verifies a sidecar: its own structure, against its Parquet file's footer, and against the decoded values.

Each check yields the problems it finds as errors with their place, and continues; nothing is repaired.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from underlay.errors import Damaged, Inconsistent, Malformed, UnderlayError, from_os_error
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.tail import TAIL_BYTES, LoadedFooter, read_tail
from underlay.pm.convert.build import read_blooms
from underlay.pm.convert.footer import convert
from underlay.pm.file import read_sidecar
from underlay.pm.format.blocks import bloom_places, inline_bloom
from underlay.pm.format.checksum import COVERAGE_BEGIN, resume_checksum
from underlay.pm.format.footers import walk
from underlay.pm.format.layout import BLOCK_HEAD_BYTES, CHUNK, DESCRIPTOR, HEADER, StatFlag
from underlay.pm.format.sidecar import Sidecar, checksum_mismatch, decode
from underlay.pm.format.statistics import SIDES, byte_bounds
from underlay.pm.format.types import Tag, tag_of
from underlay.pm.prune.prune import chunk_ranges
from underlay.pm.verify_values import check_values
from underlay.values.physical import Codec, PhysicalType


def verify(
    path: str | os.PathLike[str], parquet: str | os.PathLike[str] | None = None, *, deep: bool = False
) -> list[UnderlayError]:
    """All problems of the sidecar at `path`, empty when it is sound.

    With `parquet` its newest version is compared with that file's footer, with `deep` with the values as well.
    Raises only what keeps it from looking at all, such as a missing file.
    """
    try:
        sidecar = read_sidecar(path, check=False)
        problems = list(check_structure(sidecar))
        if parquet is not None and not problems:
            problems += check_against_parquet(sidecar, Path(parquet), deep=deep)
    except Damaged as error:
        return [error]
    return problems


def check_structure(newest: Sidecar) -> Iterator[UnderlayError]:
    """Checksums of all versions in one pass, and everything in the newest that decoding leaves for later."""
    data = newest.data
    footers = list(walk(data, newest.size))[::-1]
    computed, at = 0, COVERAGE_BEGIN
    for footer in footers:
        computed = resume_checksum(computed, memoryview(data)[at : footer.crc_offset])
        at = footer.crc_offset
        stored = int.from_bytes(data[at : at + 4], "little")
        if stored != computed:
            yield checksum_mismatch(footer, expected=computed, found=stored)
            return
    for footer in footers:
        decode(data, size=footer.size, check=False)
    yield from _check_overlap(newest)
    yield from _check_columns(newest)


def _check_overlap(sidecar: Sidecar) -> Iterator[UnderlayError]:
    """No two blocks share bytes."""
    order = np.argsort(sidecar.block_offsets)
    ordered = sidecar.block_offsets[order]
    block_bytes = BLOCK_HEAD_BYTES + CHUNK.size_bytes * sidecar.column_count
    for i in np.flatnonzero(ordered[1:] - ordered[:-1] < block_bytes).tolist():
        yield Malformed(
            f"block {order[i + 1]} overlaps block {order[i]}",
            place=f"byte {ordered[i + 1]}",
            expected=f"byte {ordered[i] + block_bytes} or later",
            found=int(ordered[i + 1]),
        )


def _check_columns(sidecar: Sidecar) -> Iterator[UnderlayError]:
    for index, column in enumerate(sidecar.columns):
        place = f"column {index} ({column.name})"
        if column.physical_type > max(PhysicalType):
            at = HEADER.size_bytes + DESCRIPTOR.size_bytes * index + DESCRIPTOR.offset("physical_type")
            yield Malformed(
                "no such physical type", place=f"{place}, byte {at}", expected="0 to 7", found=column.physical_type
            )
        chunks = sidecar.column_chunks(index)
        for row_group in np.flatnonzero(chunks["codec"] > max(Codec)).tolist():
            at = int(sidecar.block_offsets[row_group]) + BLOCK_HEAD_BYTES + CHUNK.size_bytes * index
            yield Malformed(
                "no such codec",
                place=f"row group {row_group}, {place}, byte {at}",
                expected="0 to 7",
                found=int(chunks["codec"][row_group]),
            )


def check_against_parquet(sidecar: Sidecar, path: Path, *, deep: bool) -> Iterator[UnderlayError]:
    """The sidecar against the footer that it was made from, and with `deep` against the values."""
    try:
        with path.open("rb") as file:
            loaded = _footer_of_version(file, sidecar)
            blooms = read_blooms(file, loaded)
        made = decode(convert(loaded.footer, loaded.tail.footer_offset, blooms=blooms), check=False)
        _check_shape(sidecar, made)
        chunk_ranges(sidecar, range(sidecar.row_group_count))
        yield from _check_chunks(sidecar, made)
        yield from _check_blooms(sidecar, made)
        yield from _check_external_blooms(sidecar, loaded.footer)
        if deep:
            yield from check_values(sidecar, path, loaded.footer)
    except UnderlayError as error:
        yield error.at(str(path))
    except OSError as error:
        yield from_os_error(error, str(path))


def _footer_of_version(file: BinaryIO, sidecar: Sidecar) -> LoadedFooter:
    """The Parquet footer that ends where the sidecar's version of the file ends; later bytes do not matter."""
    size, available = sidecar.parquet_size, file.seek(0, os.SEEK_END)
    if available < size:
        raise Inconsistent("the file is shorter than the sidecar's version of it", expected=size, found=available)
    file.seek(size - TAIL_BYTES)
    tail = read_tail(file.read(TAIL_BYTES), size)
    stored = (sidecar.footer.parquet_footer_offset, sidecar.footer.parquet_footer_length)
    if tail != stored:
        raise Inconsistent(
            "the footer is not where the sidecar says (offset, length)", expected=stored, found=tuple(tail)
        )
    file.seek(tail.footer_offset)
    raw = file.read(tail.footer_length)
    return LoadedFooter(Footer.parse(raw), raw, tail, size)


def _check_shape(sidecar: Sidecar, made: Sidecar) -> None:
    """Raise Inconsistent unless columns and row groups are the same: else nothing more can be compared."""
    _same("columns (name, type, physical type, length, levels)", _stored_as(made), _stored_as(sidecar))
    _same("row groups (rows)", made.num_rows.tolist(), sidecar.num_rows.tolist())
    for what in ("designated_timestamp", "sorting"):
        stored, wanted = getattr(sidecar.header, what), getattr(made.header, what)
        if stored != wanted:
            raise Inconsistent(f"another {what}", place="header", expected=wanted, found=stored)


def _same(what: str, expected: Sequence[object], found: Sequence[object]) -> None:
    if len(expected) != len(found):
        raise Inconsistent(f"the wrong number of {what}", expected=len(expected), found=len(found))
    for at, (wanted, stored) in enumerate(zip(expected, found, strict=True)):
        if wanted != stored:
            raise Inconsistent(f"different {what}, first at {at}", expected=wanted, found=stored)


def _stored_as(sidecar: Sidecar) -> list[tuple[object, ...]]:
    return [
        (c.name, c.type, c.physical_type, c.fixed_byte_length, c.max_def_level, c.max_rep_level)
        for c in sidecar.columns
    ]


_EXACT_FIELDS = ("codec", "encodings", "num_values", "begin", "size")
_COUNTS = (("null_count", StatFlag.NULL_COUNT), ("distinct_count", StatFlag.DISTINCT_COUNT))


def _check_chunks(sidecar: Sidecar, made: Sidecar) -> Iterator[UnderlayError]:
    for index, column in enumerate(sidecar.columns):
        found, expected = sidecar.column_chunks(index), made.column_chunks(index)
        for field in _EXACT_FIELDS:
            for row_group in np.flatnonzero(found[field] != expected[field]).tolist():
                yield _differs(field, row_group, column.name, expected[field][row_group], found[field][row_group])
        for field, flag in _COUNTS:
            has, wanted = (found["stat_flags"] & int(flag)) != 0, (expected["stat_flags"] & int(flag)) != 0
            for row_group in np.flatnonzero((has != wanted) | (found[field] != expected[field])).tolist():
                numbers = (
                    int(chunks[field][row_group]) if there[row_group] else "none"
                    for chunks, there in ((expected, wanted), (found, has))
                )
                yield _differs(field, row_group, column.name, *numbers)
        yield from _check_bounds(sidecar, made, index)


def _check_bounds(sidecar: Sidecar, made: Sidecar, index: int) -> Iterator[UnderlayError]:
    column = sidecar.columns[index]
    is_backfilled = index == sidecar.header.designated_timestamp and tag_of(column.type) is Tag.TIMESTAMP
    for side in SIDES:
        found, expected = (byte_bounds(s, index, side).to_pylist() for s in (sidecar, made))
        for row_group, (stored, wanted) in enumerate(zip(found, expected, strict=True)):
            if stored != wanted and not (wanted is None and is_backfilled):
                yield _differs(side, row_group, column.name, *(v.hex() if v else "none" for v in (wanted, stored)))


def _check_blooms(sidecar: Sidecar, made: Sidecar) -> Iterator[UnderlayError]:
    """Inlined filters are the Parquet file's own."""
    for index in sidecar.header.bloom_columns.tolist():
        for row_group in np.flatnonzero(bloom_places(sidecar, index).begins >= 0).tolist():
            wanted = inline_bloom(made, row_group, index)
            if wanted is not None and inline_bloom(sidecar, row_group, index) != wanted:
                yield Inconsistent(
                    "the bloom filter is not the Parquet file's: rows would be missed",
                    place=f"row group {row_group}, column {sidecar.columns[index].name}",
                )


def _check_external_blooms(sidecar: Sidecar, footer: Footer) -> Iterator[UnderlayError]:
    """Filters that the sidecar points to lie where the Parquet footer says."""
    columns = sidecar.header.bloom_columns.tolist()
    for row_group, row in enumerate(sidecar.version_fields().external_blooms):
        for column, place in zip(columns, row, strict=True):
            offset, length = footer.chunks.bloom_filter_offset, footer.chunks.bloom_filter_length
            wanted = (int(offset[row_group, column]), int(length[row_group, column]))
            if place not in (wanted, (0, 0)):
                yield _differs("the place of the bloom filter", row_group, sidecar.columns[column].name, wanted, place)


def _differs(field: str, row_group: int, name: str, expected: object, found: object) -> UnderlayError:
    return Inconsistent(
        f"{field} differs from the Parquet footer",
        place=f"row group {row_group}, column {name}",
        expected=expected,
        found=found,
    )
