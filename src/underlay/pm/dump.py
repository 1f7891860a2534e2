"""Dumps a sidecar: every byte that a version references, as offset, field and value."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from enum import IntFlag
from typing import NamedTuple

from underlay.pm.format.blocks import bloom_places
from underlay.pm.format.footers import SidecarFooter, walk
from underlay.pm.format.layout import (
    BLOCK_HEAD_BYTES,
    CHUNK,
    DESCRIPTOR,
    FOOTER,
    HEADER,
    ColumnFlag,
    Encoding,
    FooterFlag,
    HeaderFlag,
    RecordLayout,
    StatFlag,
)
from underlay.pm.format.sidecar import Sidecar, decode
from underlay.pm.format.statistics import SIDES, bound_spans
from underlay.pm.format.types import describe
from underlay.pm.format.values import Buffer
from underlay.values.physical import Codec, PhysicalType


class Line(NamedTuple):
    """`size` bytes at `offset` are `field`; `value` is what they say."""

    offset: int
    size: int
    field: str
    value: str


def dump(newest: Sidecar) -> list[Line]:
    """All versions from `newest` back to the first, in file order; bytes that none of them refers to are `unused`."""
    versions = [decode(newest.data, size=footer.size, check=False) for footer in walk(newest.data, newest.size)]
    lines = set(_header_lines(newest))
    for sidecar in versions:
        lines.update(_footer_lines(sidecar))
        for column in range(sidecar.column_count):
            lines.update(_chunk_lines(sidecar, column))
        for at, rows in zip(sidecar.block_offsets.tolist(), sidecar.num_rows.tolist(), strict=True):
            lines.add(Line(at, BLOCK_HEAD_BYTES, f"block@{at}.num_rows", str(rows)))
    return list(_with_gaps(sorted(lines), newest))


def _with_gaps(lines: list[Line], sidecar: Sidecar) -> Iterator[Line]:
    at = 0
    for line in lines:
        if line.offset > at:
            gap = bytes(sidecar.data[at : line.offset])
            field = "padding" if len(gap) < 8 and not any(gap) else "unused"
            yield Line(at, len(gap), field, _hex(gap))
        yield line
        at = max(at, line.offset + line.size)


_FLAG_NAMES: dict[tuple[str, str], type[IntFlag]] = {
    ("header", "feature_flags"): HeaderFlag,
    ("column descriptor", "flags"): ColumnFlag,
    ("column chunk", "encodings"): Encoding,
    ("column chunk", "stat_flags"): StatFlag,
    ("footer", "feature_flags"): FooterFlag,
}


def _record_lines(layout: RecordLayout, prefix: str, data: Buffer, at: int) -> Iterator[Line]:
    for field, value in zip(layout.fields, layout.struct.unpack_from(data, at), strict=True):
        yield Line(at + field.offset, field.size_bytes, f"{prefix}.{field.name}", _text(layout.name, field.name, value))


def _text(layout: str, field: str, value: int) -> str:
    flags = _FLAG_NAMES.get((layout, field))
    if flags is not None:
        names = [flag.name or "" for flag in flags if value & flag]
        return f"{value:#x}" + (f" {'|'.join(names)}" if names else "")
    if field == "type":
        return f"{value:#x} {describe(value)}" if value >= 0 else f"{value} {describe(value)}"
    if field == "physical_type" and value <= PhysicalType.FIXED_LEN_BYTE_ARRAY:
        return f"{value} {PhysicalType(value).name}"
    if field == "codec" and value <= Codec.LZ4_RAW:
        return f"{value} {Codec(value).name}"
    if field in ("min_stat", "max_stat", "stat_sizes"):
        return f"{value:#x}"
    return str(value)


def _header_lines(sidecar: Sidecar) -> Iterator[Line]:
    data, view = sidecar.data, sidecar.header
    yield from _record_lines(HEADER, "header", data, 0)
    at = HEADER.size_bytes
    names = []
    for index, column in enumerate(sidecar.columns):
        yield from _record_lines(DESCRIPTOR, f"column[{index}]", data, at)
        begin = DESCRIPTOR.struct.unpack_from(data, at)[0]
        names.append(Line(begin, len(column.name.encode()), f"column[{index}].name", repr(column.name)))
        at += DESCRIPTOR.size_bytes
    for index in range(view.sorting_column_count):
        value = int.from_bytes(data[at : at + 4], "little")
        yield Line(at, 4, f"sorting[{index}]", str(value))
        at += 4
    yield from names
    at = max((line.offset + line.size for line in names), default=at)
    if len(view.bloom_columns):
        yield Line(at, 4, "bloom_columns.count", str(len(view.bloom_columns)))
        for index, column in enumerate(view.bloom_columns.tolist()):
            yield Line(at + 4 + 4 * index, 4, f"bloom_columns[{index}]", str(column))
        at += 4 + 4 * len(view.bloom_columns)
    if view.squash_tracker is not None:
        yield Line(at, 8, "squash_tracker", str(view.squash_tracker))


def _chunk_lines(sidecar: Sidecar, column: int) -> Iterator[Line]:
    """The records of one column in all blocks, and what they refer to outside the records."""
    offsets, regions = sidecar.block_offsets.tolist(), sidecar.region_offsets.tolist()
    names = [f"block@{at}.chunk[{column}]" for at in offsets]
    for at, name in zip(offsets, names, strict=True):
        record = at + BLOCK_HEAD_BYTES + CHUNK.size_bytes * column
        yield from _record_lines(CHUNK, name, sidecar.data, record)
    for side in SIDES:
        begins, lengths = bound_spans(sidecar, column, side)
        for name, region, begin, length in zip(names, regions, begins.tolist(), lengths.tolist(), strict=True):
            if length and begin >= region:
                yield Line(begin, length, f"{name}.{side}", _hex(bytes(sidecar.data[begin : begin + length])))
    places = bloom_places(sidecar, column)
    for name, begin, length in zip(names, places.begins.tolist(), places.sizes.tolist(), strict=True):
        if begin >= 0:
            yield Line(begin - 4, 4, f"{name}.bloom.length", str(length))
            yield Line(begin, length, f"{name}.bloom.bitset", _hex(bytes(sidecar.data[begin : begin + length])))


def _footer_lines(sidecar: Sidecar) -> Iterator[Line]:
    footer, sections, data = sidecar.footer, sidecar.sections, sidecar.data
    prefix = f"footer@{footer.offset}"
    yield from _record_lines(FOOTER, prefix, data, footer.offset)
    at = footer.offset + FOOTER.size_bytes
    for index, offset in enumerate(sidecar.block_offsets.tolist()):
        yield Line(at + 4 * index, 4, f"{prefix}.block[{index}]", f"{offset >> 3} (byte {offset})")
    at = yield from _bloom_matrix_lines(sidecar, prefix)
    if sections.seq_txn is not None:
        yield Line(at, 8, f"{prefix}.seq_txn", str(sections.seq_txn))
        at += 8
    if sections.scratchpad:
        yield Line(at, 4, f"{prefix}.scratchpad.count", str(len(sections.scratchpad)))
        at += 4
    for index, (code, value) in enumerate(sections.scratchpad):
        yield Line(at, 8 + len(value), f"{prefix}.scratchpad[{index}]", f"code {code}: {_hex(value)}")
        at += 8 + len(value)
    if sections.extra:
        yield Line(at, len(sections.extra), f"{prefix}.extra", _hex(sections.extra))
    yield from _tail_lines(footer, prefix, data)


def _bloom_matrix_lines(sidecar: Sidecar, prefix: str) -> Generator[Line, None, int]:
    """The lines of the bloom matrix; returns where it ends."""
    at = sidecar.sections.bloom_offset
    external = sidecar.header.external_blooms
    for row_group in range(sidecar.row_group_count):
        for column in sidecar.header.bloom_columns.tolist():
            field = f"{prefix}.bloom[{row_group}][{column}]"
            value = int.from_bytes(sidecar.data[at : at + (8 if external else 4)], "little")
            if external:
                length = int.from_bytes(sidecar.data[at + 8 : at + 16], "little")
                yield Line(at, 16, field, f"bytes {value} + {length} of the Parquet file" if length else "none")
            else:
                yield Line(at, 4, field, f"{value} (byte {value << 3})" if value else "none")
            at += 16 if external else 4
    return at


def _tail_lines(footer: SidecarFooter, prefix: str, data: Buffer) -> Iterator[Line]:
    at = footer.crc_offset
    yield Line(at, 4, f"{prefix}.checksum", f"{int.from_bytes(data[at : at + 4], 'little'):#010x}")
    yield Line(at + 4, 4, f"{prefix}.length", str(int.from_bytes(data[at + 4 : at + 8], "little")))


def _hex(value: bytes) -> str:
    return value.hex() if len(value) <= 32 else f"{value[:32].hex()}… {len(value)} bytes"
