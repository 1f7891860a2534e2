"""QuestDB's column type codes: a tag in the low 8 bits, parameters above it.

| tag family | parameters |
|---|---|
| TIMESTAMP | bit 17 designated, bit 18 nanoseconds (else microseconds), bit 20 designated descending |
| DECIMAL | precision in bits 8–15, scale in bits 18–25 |
| ARRAY | element tag in bits 8–13, dimensions − 1 in bits 14–18 |
| GEOHASH | bits in bits 8–15, bit 16 set |
"""

from __future__ import annotations

from enum import IntEnum


class Tag(IntEnum):
    """What a column holds, as QuestDB names it."""

    BOOLEAN = 1
    BYTE = 2
    SHORT = 3
    CHAR = 4
    INT = 5
    LONG = 6
    DATE = 7
    TIMESTAMP = 8
    FLOAT = 9
    DOUBLE = 10
    STRING = 11
    SYMBOL = 12
    LONG256 = 13
    GEOBYTE = 14
    GEOSHORT = 15
    GEOINT = 16
    GEOLONG = 17
    BINARY = 18
    UUID = 19
    LONG128 = 24
    IPV4 = 25
    VARCHAR = 26
    ARRAY = 27
    DECIMAL8 = 28
    DECIMAL16 = 29
    DECIMAL32 = 30
    DECIMAL64 = 31
    DECIMAL128 = 32
    DECIMAL256 = 33


UNKNOWN = -1
"""The type code of a column that QuestDB has no type for."""

DESIGNATED = 1 << 17
NANOSECONDS = 1 << 18
DESIGNATED_DESCENDING = 1 << 20

TIMESTAMP_US = int(Tag.TIMESTAMP)
TIMESTAMP_NS = Tag.TIMESTAMP | NANOSECONDS

DECIMAL_TAGS = (
    (2, Tag.DECIMAL8),
    (4, Tag.DECIMAL16),
    (9, Tag.DECIMAL32),
    (18, Tag.DECIMAL64),
    (38, Tag.DECIMAL128),
    (76, Tag.DECIMAL256),
)
"""The narrowest tag that holds a given number of digits."""

MAX_ARRAY_DIMENSIONS = 32


def tag_of(code: int) -> Tag | None:
    """The tag in a type code, or None if this release does not know it."""
    if code < 0:
        return None
    try:
        return Tag(code & 0xFF)
    except ValueError:
        return None


def decimal_code(precision: int, scale: int) -> int:
    """The type code of DECIMAL(precision, scale), or UNKNOWN if QuestDB has none."""
    if scale < 0 or scale > precision or precision < 1:
        return UNKNOWN
    for digits, tag in DECIMAL_TAGS:
        if precision <= digits:
            return tag | precision << 8 | scale << 18
    return UNKNOWN


def decimal_parameters(code: int) -> tuple[int, int]:
    """Precision and scale of a decimal's type code."""
    return code >> 8 & 0xFF, code >> 18 & 0xFF


def array_code(dimensions: int) -> int:
    """The type code of an array of DOUBLE, or UNKNOWN if it has too many dimensions."""
    if not 1 <= dimensions <= MAX_ARRAY_DIMENSIONS:
        return UNKNOWN
    return Tag.ARRAY | Tag.DOUBLE << 8 | (dimensions - 1) << 14


def is_designated(code: int) -> bool:
    """Whether the code marks the designated timestamp."""
    return tag_of(code) is Tag.TIMESTAMP and bool(code & DESIGNATED)


def describe(code: int) -> str:
    """The type as people write it: `TIMESTAMP_NS (designated)`, `DECIMAL(10,2)`, `DOUBLE[][]`."""
    tag = tag_of(code)
    if tag is None:
        return "unknown" if code == UNKNOWN else f"type {code:#x}"
    if tag is Tag.TIMESTAMP:
        unit = "TIMESTAMP_NS" if code & NANOSECONDS else "TIMESTAMP"
        return unit + (" (designated)" if code & DESIGNATED else "")
    if tag >= Tag.DECIMAL8:
        precision, scale = decimal_parameters(code)
        return f"DECIMAL({precision},{scale})"
    if tag is Tag.ARRAY:
        return "DOUBLE" + "[]" * ((code >> 14 & 0x1F) + 1)
    if Tag.GEOBYTE <= tag <= Tag.GEOLONG:
        return f"GEOHASH({code >> 8 & 0xFF}b)"
    return tag.name
