"""The table type that a leaf of a Parquet file holds, and whether a column of another type can take its values."""

from __future__ import annotations

from underlay.parquet.footer.logical import LogicalKind, TimeUnit
from underlay.parquet.footer.schema import SchemaNode
from underlay.schema.cast.widen import is_widening
from underlay.schema.convert.file_columns import COARSE, STORED
from underlay.schema.types import MAX_DECIMAL_DIGITS, Scalar, TypeKind
from underlay.values.physical import PhysicalType

_SIGNED = (TypeKind.INT8, TypeKind.INT16, TypeKind.INT32, TypeKind.INT64)
_UNSIGNED = (TypeKind.UINT8, TypeKind.UINT16, TypeKind.UINT32, TypeKind.UINT64)
_WIDTHS = {8: 0, 16: 1, 32: 2, 64: 3}
_UNITS = {TimeUnit.MILLIS: "ms", TimeUnit.MICROS: "us", TimeUnit.NANOS: "ns"}
_TEXT = (LogicalKind.STRING, LogicalKind.ENUM, LogicalKind.JSON)
_INTEGER_BITS = {PhysicalType.INT32: 32, PhysicalType.INT64: 64}
_PLAIN = {
    PhysicalType.BOOLEAN: TypeKind.BOOLEAN,
    PhysicalType.INT32: TypeKind.INT32,
    PhysicalType.INT64: TypeKind.INT64,
    PhysicalType.FLOAT: TypeKind.FLOAT32,
    PhysicalType.DOUBLE: TypeKind.FLOAT64,
    PhysicalType.BYTE_ARRAY: TypeKind.BINARY,
}
UTC = "UTC"


def file_type(node: SchemaNode) -> Scalar | None:
    """The type of a leaf's values; None for a type that tables do not have. INT96 counts as nanoseconds without a
    zone."""
    logical, physical = node.logical, node.physical_type
    match logical.kind:
        case LogicalKind.NONE | LogicalKind.BSON:
            return _plain(node)
        case LogicalKind.INT if physical in _INTEGER_BITS and logical.width in _WIDTHS:
            return Scalar((_SIGNED if logical.is_signed else _UNSIGNED)[_WIDTHS[logical.width or 0]])
        case LogicalKind.DECIMAL if 0 < (logical.precision or 0) <= MAX_DECIMAL_DIGITS:
            return Scalar(TypeKind.DECIMAL, precision=logical.precision or 0, scale=logical.scale or 0)
        case LogicalKind.DATE if physical is PhysicalType.INT32:
            return Scalar(TypeKind.DATE)
        case LogicalKind.TIME if physical in _INTEGER_BITS and logical.unit is not None:
            return Scalar(TypeKind.TIME, unit=_UNITS[logical.unit])
        case LogicalKind.TIMESTAMP if physical is PhysicalType.INT64 and logical.unit is not None:
            return Scalar(TypeKind.TIMESTAMP, unit=_UNITS[logical.unit], zone=UTC if logical.is_utc else None)
        case LogicalKind.UUID if node.type_length == 16:
            return Scalar(TypeKind.UUID)
        case LogicalKind.FLOAT16 if node.type_length == 2:
            return Scalar(TypeKind.FLOAT16)
        case kind if kind in _TEXT and physical is PhysicalType.BYTE_ARRAY:
            return Scalar(TypeKind.STRING)
    return None


def _plain(node: SchemaNode) -> Scalar | None:
    if node.physical_type is PhysicalType.FIXED_LEN_BYTE_ARRAY:
        return Scalar(TypeKind.FIXED, length=node.type_length) if node.type_length else None
    if node.physical_type is PhysicalType.INT96:
        return Scalar(TypeKind.TIMESTAMP, unit="ns")
    return None if node.physical_type is None else Scalar(_PLAIN[node.physical_type])


def holds_only_nulls(node: SchemaNode) -> bool:
    """Whether the leaf is of Parquet's type for columns without any value."""
    return node.logical.kind is LogicalKind.UNKNOWN


def is_int96(node: SchemaNode) -> bool:
    """Whether the leaf's values are 12-byte timestamps."""
    return node.physical_type is PhysicalType.INT96


def can_hold(node: SchemaNode, wanted: Scalar, *, is_ours: bool) -> bool:
    """Whether every value of the leaf is exactly a value of `wanted`.

    Files store seconds and milliseconds as microseconds, and those of older releases as milliseconds; that they are
    whole is known only for our own files. INT96 does not say what its writer meant: engines write microseconds or
    nanoseconds, with and without a zone, so it may stand for any of these; only reading a value tells whether it is one
    of `wanted`.
    """
    if holds_only_nulls(node):
        return True
    if is_int96(node):
        return wanted.kind is TypeKind.TIMESTAMP and wanted.unit in ("us", "ns")
    found = file_type(node)
    if found is None:
        return False
    if is_ours and wanted.unit in COARSE and found.unit == STORED:
        return found.kind is wanted.kind and (found.zone is None) == (wanted.zone is None)
    return is_widening(found, wanted) and (is_ours or wanted.unit != "s")
