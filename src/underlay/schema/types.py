"""The types of a table's columns, and how they are written.

| type | written | in Parquet |
|---|---|---|
| boolean | `boolean` | BOOLEAN |
| integers | `int8` … `int64`, `uint8` … `uint64` | INT32, INT64 |
| floats | `float16`, `float32`, `float64` | FIXED(2), FLOAT, DOUBLE |
| decimals | `decimal(precision, scale)`, to 38 digits | INT32, INT64, FIXED(n) |
| text and bytes | `string`, `binary`, `fixed(length)`, `uuid` | BYTE_ARRAY, FIXED(n) |
| dates and times | `date`, `time(unit)`, `timestamp(unit)`, `timestamp(unit, zone)` | INT32, INT64 |
| nested | `list<…>`, `map<…, …>`, `struct<name: …>` | groups |

Units are `s`, `ms`, `us`, `ns`. In files, seconds and milliseconds are microseconds (see `convert.file_columns`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TypeAlias

from underlay.errors import InvalidRequest


class TypeKind(Enum):
    """What a scalar type is, without its parameters."""

    BOOLEAN = "boolean"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT16 = "float16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    DECIMAL = "decimal"
    STRING = "string"
    BINARY = "binary"
    FIXED = "fixed"
    UUID = "uuid"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"


UNITS = ("s", "ms", "us", "ns")
MAX_DECIMAL_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without fields. Parameters that its kind does not have are 0 or None."""

    kind: TypeKind
    precision: int = 0
    scale: int = 0
    length: int = 0
    unit: str | None = None
    zone: str | None = None

    def __str__(self) -> str:
        match self.kind:
            case TypeKind.DECIMAL:
                return f"decimal({self.precision}, {self.scale})"
            case TypeKind.FIXED:
                return f"fixed({self.length})"
            case TypeKind.TIME:
                return f"time({self.unit})"
            case TypeKind.TIMESTAMP:
                return f"timestamp({self.unit}, {self.zone})" if self.zone else f"timestamp({self.unit})"
        return str(self.kind.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column, or a part of a nested one. `id` never changes and is never reused.

    `default` is what rows of files without this field have, as text; None is null.
    """

    id: int
    name: str
    type: Type
    is_required: bool = False
    comment: str | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True)
class StructOf:
    """Named fields."""

    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return f"struct<{', '.join(f'{field.name}: {field.type}' for field in self.fields)}>"


@dataclass(frozen=True, slots=True)
class ListOf:
    """Items of one type; the item is a field named `element`."""

    element: Field

    def __str__(self) -> str:
        return f"list<{self.element.type}>"


@dataclass(frozen=True, slots=True)
class MapOf:
    """Keys, which are required, and values: fields named `key` and `value`."""

    key: Field
    value: Field

    def __str__(self) -> str:
        return f"map<{self.key.type}, {self.value.type}>"


Type: TypeAlias = Scalar | StructOf | ListOf | MapOf

_SCALAR = re.compile(r"([a-z0-9]+)(?:\(([^()]*)\))?")


@lru_cache(maxsize=1024)
def parse_scalar(text: str) -> Scalar:
    """The scalar type that `str` writes as `text`. Raises InvalidRequest."""
    match = _SCALAR.fullmatch(text.strip())
    if match is None or match[1] not in {kind.value for kind in TypeKind}:
        raise InvalidRequest("no such type", found=text, hint=f"Types: {', '.join(kind.value for kind in TypeKind)}.")
    kind = TypeKind(match[1])
    given = [part.strip() for part in match[2].split(",")] if match[2] is not None else []
    try:
        found = _with_parameters(kind, given)
    except ValueError:
        found = None
    if found is None:
        raise InvalidRequest(
            "the type's parameters are not right",
            found=text,
            hint="Write decimal(10, 2), fixed(16), time(us), timestamp(us) or timestamp(us, UTC).",
        )
    return found


def _with_parameters(kind: TypeKind, given: list[str]) -> Scalar | None:
    match kind, given:
        case TypeKind.DECIMAL, [precision, scale]:
            found = Scalar(kind, precision=int(precision), scale=int(scale))
            is_right = 1 <= found.precision <= MAX_DECIMAL_DIGITS and 0 <= found.scale <= found.precision
            return found if is_right else None
        case TypeKind.FIXED, [length]:
            return Scalar(kind, length=int(length)) if int(length) > 0 else None
        case TypeKind.TIME, [unit] if unit in UNITS:
            return Scalar(kind, unit=unit)
        case TypeKind.TIMESTAMP, [unit] if unit in UNITS:
            return Scalar(kind, unit=unit)
        case TypeKind.TIMESTAMP, [unit, zone] if unit in UNITS and zone:
            return Scalar(kind, unit=unit, zone=zone)
        case ((TypeKind.DECIMAL | TypeKind.FIXED | TypeKind.TIME | TypeKind.TIMESTAMP), _):
            return None
        case _, []:
            return Scalar(kind)
    return None
