"""Parquet's physical types and codecs, with the numbers that its footer and the sidecar both store."""

from __future__ import annotations

from enum import IntEnum


class PhysicalType(IntEnum):
    """How a column's values lie in the file."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    INT96 = 3
    FLOAT = 4
    DOUBLE = 5
    BYTE_ARRAY = 6
    FIXED_LEN_BYTE_ARRAY = 7


class Codec(IntEnum):
    """How a chunk's pages are compressed."""

    UNCOMPRESSED = 0
    SNAPPY = 1
    GZIP = 2
    LZO = 3
    BROTLI = 4
    LZ4 = 5
    ZSTD = 6
    LZ4_RAW = 7


class Repetition(IntEnum):
    """Whether a field may be missing or occur many times."""

    REQUIRED = 0
    OPTIONAL = 1
    REPEATED = 2
