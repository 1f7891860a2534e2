"""Columns as Iceberg has them, and their values as bytes: bounds and partition values.

Field ids are the table's. A type that Iceberg lacks, or that one of its readers gets wrong, has none here, by the rules
of docs/interop.md.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, TypeKind

Json = Any
"""What JSON holds."""
V2: Final = 2
V3: Final = 3

_PLAIN = {
    TypeKind.BOOLEAN: "boolean",
    TypeKind.INT8: "int",
    TypeKind.INT16: "int",
    TypeKind.INT32: "int",
    TypeKind.INT64: "long",
    TypeKind.FLOAT32: "float",
    TypeKind.FLOAT64: "double",
    TypeKind.STRING: "string",
    TypeKind.BINARY: "binary",
    TypeKind.UUID: "uuid",
    TypeKind.DATE: "date",
}
_STRUCTS = {"boolean": "?", "int": "<i", "date": "<i", "float": "<f", "double": "<d"}
_US_IN = {"s": 1_000_000, "ms": 1_000, "us": 1}
_INT64 = range(-(1 << 63), 1 << 63)
_UNSIGNED = (TypeKind.UINT8, TypeKind.UINT16, TypeKind.UINT32, TypeKind.UINT64)


@dataclass(frozen=True, slots=True)
class IcebergType:
    """A scalar type. `factor` makes the table's numbers Iceberg's: seconds and milliseconds become microseconds."""

    text: str
    format: int = V2
    """The first format that has it."""
    factor: int = 1

    def pack(self, value: int | float | bytes) -> bytes | None:
        """A value as Iceberg's bytes; None for one that does not fit."""
        if isinstance(value, bytes):
            return value
        if self.text.startswith("decimal"):
            number = int(value)
            bits = (number if number >= 0 else ~number).bit_length()
            return number.to_bytes(bits // 8 + 1, "big", signed=True)
        if isinstance(value, int):
            value *= self.factor
        layout = _STRUCTS.get(self.text, "<q")
        if layout == "<q" and value not in _INT64:
            return None
        return struct.pack(layout, value)


def scalar_type(scalar: Scalar) -> IcebergType | str:
    """The type; or the rule, and why there is none."""
    match scalar.kind:
        case kind if kind in _PLAIN:
            return IcebergType(_PLAIN[kind])
        case TypeKind.DECIMAL:
            return IcebergType(f"decimal({scalar.precision}, {scalar.scale})")
        case TypeKind.FIXED:
            return IcebergType(f"fixed[{scalar.length}]")
        case TypeKind.TIME if scalar.unit in _US_IN:
            return IcebergType("time", factor=_US_IN[scalar.unit])
        case TypeKind.TIMESTAMP:
            zone = "tz" if scalar.zone else ""
            if scalar.unit in _US_IN:
                return IcebergType(f"timestamp{zone}", factor=_US_IN[scalar.unit])
            return IcebergType(f"timestamp{zone}_ns", format=V3)
        case kind if kind in _UNSIGNED:
            return "Iceberg has no unsigned integers, and Spark cannot read such files through it"
    return f"Iceberg has no type for {scalar}"


def type_json(field: Field, default_json: Callable[[Field], Json | None]) -> Json:
    """The type of a field whose leaves all have one."""
    match field.type:
        case Scalar() as scalar:
            found = scalar_type(scalar)
            return found.text if isinstance(found, IcebergType) else None
        case StructOf(fields):
            return {"type": "struct", "fields": [field_json(one, default_json) for one in fields]}
        case ListOf(element):
            return {
                "type": "list",
                "element-id": element.id,
                "element": type_json(element, default_json),
                "element-required": element.is_required,
            }
        case MapOf(key, value):
            return {
                "type": "map",
                "key-id": key.id,
                "key": type_json(key, default_json),
                "value-id": value.id,
                "value": type_json(value, default_json),
                "value-required": value.is_required,
            }


def field_json(field: Field, default_json: Callable[[Field], Json | None]) -> Json:
    """A field."""
    found = {"id": field.id, "name": field.name, "required": field.is_required, "type": type_json(field, default_json)}
    if field.comment:
        found["doc"] = field.comment
    if (default := default_json(field)) is not None:
        found |= {"initial-default": default, "write-default": default}
    return found
