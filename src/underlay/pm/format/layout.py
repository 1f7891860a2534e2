"""The fixed-size records of a sidecar, as field tables.

A sidecar is, everything little-endian:

    HEADER | DESCRIPTOR × columns | sorting u32 × n | names | header sections
    { padding to 8 | BLOCK: u64 rows, CHUNK × columns, out-of-line region } …
    FOOTER | block offsets u32 × row groups | footer sections | CRC-32 u32 | footer length u32
    { more blocks | FOOTER … } …                                             one footer per version

The tables below are the only place that knows an offset: struct strings, numpy dtypes, sizes and the tables in
`docs/pm-format.md` derive from them. Bytes are bounded before they are read; a reader binds itself to one
*committed size* and never looks past it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntFlag

import numpy as np

from underlay.runtime.locks import cached_property

_CODES = {"u8": "B", "u16": "H", "u32": "I", "i32": "i", "u64": "Q", "i64": "q"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutField:
    """One row of a field table."""

    offset: int
    type: str
    name: str
    meaning: str

    @property
    def size_bytes(self) -> int:
        """Width of the field."""
        return struct.calcsize("<" + _CODES[self.type])


@dataclass(frozen=True)
class RecordLayout:
    """A fixed-size record: its fields in order, without gaps."""

    name: str
    fields: tuple[LayoutField, ...]

    @cached_property
    def struct(self) -> struct.Struct:
        """Packs and unpacks all fields at once, in table order."""
        return struct.Struct("<" + "".join(_CODES[f.type] for f in self.fields))

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """The record as a numpy structured type."""
        return np.dtype([(f.name, "<" + f.type[0] + str(f.size_bytes)) for f in self.fields])

    @property
    def size_bytes(self) -> int:
        """Width of the record."""
        return self.struct.size

    def offset(self, name: str) -> int:
        """Where field `name` begins inside the record."""
        return next(f.offset for f in self.fields if f.name == name)

    def markdown(self) -> str:
        """The field table as it stands in the documentation."""
        head = "| offset | size | type | field | meaning |\n|---|---|---|---|---|\n"
        return head + "".join(
            f"| {f.offset} | {f.size_bytes} | {f.type} | {f.name} | {f.meaning} |\n" for f in self.fields
        )


def _layout(name: str, *rows: tuple[int, str, str, str]) -> RecordLayout:
    return RecordLayout(name, tuple(LayoutField(offset=o, type=t, name=n, meaning=m) for o, t, n, m in rows))


HEADER = _layout(
    "header",
    (0, "u64", "committed_size", "end of the newest version; written last; in no checksum"),
    (8, "u64", "feature_flags", "see HeaderFlag; an unknown bit of 32–63 makes the file unreadable"),
    (16, "i32", "designated_timestamp", "column index of the designated timestamp, or -1"),
    (20, "u32", "sorting_column_count", "0 when SORTING_IS_DTS_ASC is set"),
    (24, "u32", "column_count", "leaf columns"),
    (28, "u32", "reserved", "written 0, not checked"),
)

DESCRIPTOR = _layout(
    "column descriptor",
    (0, "u64", "name_offset", "where the name begins in the file"),
    (8, "i32", "id", "stable column id, or -1"),
    (12, "i32", "type", "QuestDB type code, or -1; see `underlay.pm.format.types`"),
    (16, "i32", "flags", "see ColumnFlag; bits 2–3 are the repetition of the top-level field"),
    (20, "i32", "fixed_byte_length", "FIXED_LEN_BYTE_ARRAY length, else 0"),
    (24, "u32", "name_length", "bytes of UTF-8"),
    (28, "u8", "physical_type", "Parquet physical type"),
    (29, "u8", "max_rep_level", "of the leaf"),
    (30, "u8", "max_def_level", "of the leaf; trust this, not the repetition"),
    (31, "u8", "reserved", "written 0, not checked"),
)

CHUNK = _layout(
    "column chunk",
    (0, "u8", "codec", "Parquet codec, 0–7"),
    (1, "u8", "encodings", "see Encoding"),
    (2, "u8", "stat_flags", "see StatFlag"),
    (3, "u8", "stat_sizes", "bytes of an inline min (low nibble) and max (high nibble)"),
    (4, "u32", "reserved", "written 0"),
    (8, "u64", "num_values", "leaf values, nulls included"),
    (16, "u64", "begin", "first byte of the chunk in the Parquet file, dictionary page included"),
    (24, "u64", "size", "compressed bytes of the chunk"),
    (32, "u64", "null_count", "valid with NULL_COUNT"),
    (40, "u64", "distinct_count", "valid with DISTINCT_COUNT"),
    (48, "u64", "min_stat", "inline value, or offset << 16 | length in the out-of-line region"),
    (56, "u64", "max_stat", "inline value, or offset << 16 | length in the out-of-line region"),
)

FOOTER = _layout(
    "footer",
    (0, "u64", "parquet_footer_offset", "where the Parquet footer begins in the data file"),
    (8, "u32", "parquet_footer_length", "Thrift bytes only; data file size = offset + length + 8"),
    (12, "u32", "row_group_count", "blocks of this version"),
    (16, "u64", "unused_bytes", "dead bytes in the data file"),
    (24, "u64", "previous_size", "committed size of the version before, 0 for the first"),
    (32, "u64", "feature_flags", "see FooterFlag; an unknown bit of 32–63 makes the version unreadable"),
)

LAYOUTS = (HEADER, DESCRIPTOR, CHUNK, FOOTER)

BLOCK_HEAD_BYTES = 8
"""A block begins with its row count, a u64."""

FOOTER_TAIL_BYTES = 8
"""CRC-32 (u32) and footer length (u32, from the footer's start through the CRC)."""

MINIMUM_SIZE = HEADER.size_bytes + FOOTER.size_bytes + FOOTER_TAIL_BYTES
"""The smallest sidecar: no columns, no row groups."""

MAX_STAT_BYTES = 0xFFFF
"""An out-of-line statistic's length is 16 bits wide."""

MAX_BLOCK_OFFSET = 0xFFFFFFFF << 3
"""Block offsets are stored in units of 8 bytes in 32 bits."""

MAX_SCRATCHPAD_BYTES = 1 << 20

REQUIRED_FLAGS = 0xFFFFFFFF00000000
"""Bits that a reader must know; none are known yet, in header and footer alike."""


class HeaderFlag(IntFlag):
    """Header feature bits. Unknown bits below 32 are skipped."""

    BLOOM_FILTERS = 1 << 0
    BLOOM_FILTERS_EXTERNAL = 1 << 1
    SORTING_IS_DTS_ASC = 1 << 2
    SQUASH_TRACKER = 1 << 3


class FooterFlag(IntFlag):
    """Footer feature bits, from format generation 10 on. Unknown bits below 32 are skipped."""

    SEQ_TXN = 1 << 0
    SCRATCHPAD = 1 << 1


class ColumnFlag(IntFlag):
    """Descriptor flags; bits 2–3 hold the repetition and bits 5–31 are zero."""

    LOCAL_KEY_IS_GLOBAL = 1 << 0
    IS_ASCII = 1 << 1
    DESCENDING = 1 << 4


REPETITION_SHIFT = 2
REPETITION_MASK = 0b11


class StatFlag(IntFlag):
    """Which statistics a chunk has, and where."""

    MIN_PRESENT = 1 << 0
    MIN_INLINE = 1 << 1
    MIN_EXACT = 1 << 2
    MAX_PRESENT = 1 << 3
    MAX_INLINE = 1 << 4
    MAX_EXACT = 1 << 5
    DISTINCT_COUNT = 1 << 6
    NULL_COUNT = 1 << 7


class Encoding(IntFlag):
    """Page encodings that occur in a chunk; level encodings do not count."""

    PLAIN = 1 << 0
    DICTIONARY = 1 << 1
    DELTA_BINARY_PACKED = 1 << 2
    DELTA_LENGTH_BYTE_ARRAY = 1 << 3
    DELTA_BYTE_ARRAY = 1 << 4
    BYTE_STREAM_SPLIT = 1 << 5
