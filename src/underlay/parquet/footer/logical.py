"""Decodes what a column's values mean: LogicalType, or the ConvertedType of older writers.

The numbers in the tables are those of the LogicalType union's members and of the ConvertedType enumeration.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from underlay.parquet.thrift.tree import ThriftTree


class LogicalKind(Enum):
    """The name of a logical type. UNKNOWN is Parquet's type of columns that hold only nulls."""

    NONE = "none"
    STRING = "string"
    MAP = "map"
    LIST = "list"
    ENUM = "enum"
    DECIMAL = "decimal"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    INTERVAL = "interval"
    INT = "int"
    UNKNOWN = "unknown"
    JSON = "json"
    BSON = "bson"
    UUID = "uuid"
    FLOAT16 = "float16"
    VARIANT = "variant"
    GEOMETRY = "geometry"
    GEOGRAPHY = "geography"
    UNRECOGNISED = "unrecognised"


class TimeUnit(Enum):
    """The unit of a TIME or TIMESTAMP, with how many of it make a second."""

    MILLIS = 1_000
    MICROS = 1_000_000
    NANOS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalType:
    """A logical type with its parameters: a parameter that its kind does not have is None."""

    kind: LogicalKind
    unit: TimeUnit | None = None
    is_utc: bool | None = None
    width: int | None = None
    is_signed: bool | None = None
    precision: int | None = None
    scale: int | None = None


NONE = LogicalType(kind=LogicalKind.NONE)
UNRECOGNISED = LogicalType(kind=LogicalKind.UNRECOGNISED)

_MEMBERS = {
    1: LogicalKind.STRING,
    2: LogicalKind.MAP,
    3: LogicalKind.LIST,
    4: LogicalKind.ENUM,
    5: LogicalKind.DECIMAL,
    6: LogicalKind.DATE,
    7: LogicalKind.TIME,
    8: LogicalKind.TIMESTAMP,
    10: LogicalKind.INT,
    11: LogicalKind.UNKNOWN,
    12: LogicalKind.JSON,
    13: LogicalKind.BSON,
    14: LogicalKind.UUID,
    15: LogicalKind.FLOAT16,
    16: LogicalKind.VARIANT,
    17: LogicalKind.GEOMETRY,
    18: LogicalKind.GEOGRAPHY,
}
_UNITS = {1: TimeUnit.MILLIS, 2: TimeUnit.MICROS, 3: TimeUnit.NANOS}


def _int(width: int, is_signed: bool) -> LogicalType:
    return LogicalType(kind=LogicalKind.INT, width=width, is_signed=is_signed)


def _temporal(kind: LogicalKind, unit: TimeUnit) -> LogicalType:
    return LogicalType(kind=kind, unit=unit, is_utc=True)


_CONVERTED = {
    0: LogicalType(kind=LogicalKind.STRING),
    1: LogicalType(kind=LogicalKind.MAP),
    2: LogicalType(kind=LogicalKind.MAP),
    3: LogicalType(kind=LogicalKind.LIST),
    4: LogicalType(kind=LogicalKind.ENUM),
    6: LogicalType(kind=LogicalKind.DATE),
    7: _temporal(LogicalKind.TIME, TimeUnit.MILLIS),
    8: _temporal(LogicalKind.TIME, TimeUnit.MICROS),
    9: _temporal(LogicalKind.TIMESTAMP, TimeUnit.MILLIS),
    10: _temporal(LogicalKind.TIMESTAMP, TimeUnit.MICROS),
    **{11 + index: _int(8 << index, False) for index in range(4)},
    **{15 + index: _int(8 << index, True) for index in range(4)},
    19: LogicalType(kind=LogicalKind.JSON),
    20: LogicalType(kind=LogicalKind.BSON),
    21: LogicalType(kind=LogicalKind.INTERVAL),
}
_CONVERTED_DECIMAL = 5


def from_union(tree: ThriftTree, entry: int) -> tuple[int, LogicalType]:
    """The member number and the type of a LogicalType union.

    The number is 0 for an empty union. An unknown member, unit or shape gives UNRECOGNISED.
    """
    members = tree.children(entry)
    if len(members) != 1:
        return 0, UNRECOGNISED
    member = tree.field_id(members[0])
    kind = _MEMBERS.get(member)
    if kind is None:
        return member, UNRECOGNISED
    return member, _with_parameters(tree, kind, tree.fields(members[0]))


def _with_parameters(tree: ThriftTree, kind: LogicalKind, fields: dict[int, int]) -> LogicalType:
    numbers = {field: tree.integer(entry) for field, entry in fields.items()}
    if kind is LogicalKind.DECIMAL:
        return LogicalType(kind=kind, scale=numbers.get(1, 0), precision=numbers.get(2, 0))
    if kind is LogicalKind.INT:
        return LogicalType(kind=kind, width=numbers.get(1, 0), is_signed=bool(numbers.get(2, 0)))
    if kind not in (LogicalKind.TIME, LogicalKind.TIMESTAMP):
        return LogicalType(kind=kind)
    units = tree.children(fields[2]) if 2 in fields else []
    unit = _UNITS.get(tree.field_id(units[0])) if len(units) == 1 else None
    if unit is None:
        return UNRECOGNISED
    return LogicalType(kind=kind, unit=unit, is_utc=bool(numbers.get(1, 0)))


def from_converted(converted: int, precision: int, scale: int) -> LogicalType:
    """The type that a ConvertedType number stands for; an unknown number gives UNRECOGNISED."""
    if converted == _CONVERTED_DECIMAL:
        return LogicalType(kind=LogicalKind.DECIMAL, precision=precision, scale=scale)
    return _CONVERTED.get(converted, UNRECOGNISED)
