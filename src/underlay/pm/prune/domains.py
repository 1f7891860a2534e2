"""The order of a sidecar column's values, by its type.

A sidecar has QuestDB's type code and the physical type, and no logical type. Where those leave a choice the column is
treated as every type it may be: an INT of a foreign file may be unsigned. With the file's schema there is no choice.
"""

from __future__ import annotations

from underlay.parquet.footer.logical import LogicalKind, LogicalType, TimeUnit
from underlay.parquet.footer.schema import Leaf
from underlay.pm.format.types import NANOSECONDS, Tag, decimal_parameters, describe, tag_of
from underlay.pm.format.values import SidecarColumn
from underlay.prune import (
    Addresses,
    AmbiguousIntegers,
    Binary,
    Booleans,
    Characters,
    Decimals,
    Domain,
    FixedBinary,
    Floats,
    Integers,
    Text,
    Times,
    TimesOfDay,
    Unit,
    Unordered,
    Uuids,
)
from underlay.values.physical import PhysicalType

_BITS = {PhysicalType.INT32: 32, PhysicalType.INT64: 64}
_UNITS = {TimeUnit.MILLIS: Unit.MILLISECOND, TimeUnit.MICROS: Unit.MICROSECOND, TimeUnit.NANOS: Unit.NANOSECOND}
_MAX_DECIMAL_BYTES = 32
_TEXT_TAGS = (Tag.STRING, Tag.SYMBOL, Tag.VARCHAR)


def column_domain(column: SidecarColumn, leaf: Leaf | None = None, *, is_questdb: bool = False) -> Domain:
    """How the values of a column are ordered. `is_questdb`: QuestDB wrote the file, so its INT and LONG are signed."""
    if column.physical_type not in list(PhysicalType):
        return Unordered(f"physical type {column.physical_type}")
    physical = PhysicalType(column.physical_type)
    if leaf is None:
        return _typed_domain(column, physical, is_questdb) or Unordered(describe(column.type))
    if leaf.physical_type is not physical:
        return Unordered(f"{physical.name}, {leaf.physical_type.name} in the schema")
    length = column.fixed_byte_length
    return _logical_domain(leaf.node.logical, physical, length) or Unordered(leaf.node.logical.kind.value)


def leaf_domain(leaf: Leaf) -> Domain:
    """How the values of a leaf of a Parquet schema are ordered, and what a literal means among them."""
    length = leaf.node.type_length or 0
    return _logical_domain(leaf.node.logical, leaf.physical_type, length) or Unordered(leaf.node.logical.kind.value)


def _typed_domain(column: SidecarColumn, physical: PhysicalType, is_questdb: bool) -> Domain | None:
    """The domain that QuestDB's type code gives on its proper physical type."""
    tag, bits = tag_of(column.type), _BITS.get(physical)
    match tag, physical:
        case Tag.BOOLEAN, PhysicalType.BOOLEAN:
            return Booleans()
        case ((Tag.BYTE | Tag.SHORT), PhysicalType.INT32):
            return Integers(32)
        case Tag.CHAR, PhysicalType.INT32:
            return Characters()
        case (Tag.INT, PhysicalType.INT32) | (Tag.LONG, PhysicalType.INT64) if bits:
            return Integers(bits) if is_questdb else AmbiguousIntegers(bits)
        case Tag.DATE, PhysicalType.INT32:
            return Times(Unit.DAY, 32)
        case Tag.DATE, PhysicalType.INT64:
            return Times(Unit.MILLISECOND)
        case Tag.TIMESTAMP, PhysicalType.INT64:
            return Times(Unit.NANOSECOND if column.type & NANOSECONDS else Unit.MICROSECOND)
        case (Tag.FLOAT, PhysicalType.FLOAT) | (Tag.DOUBLE, PhysicalType.DOUBLE):
            return Floats(32 if physical is PhysicalType.FLOAT else 64)
        case _, PhysicalType.BYTE_ARRAY if tag in _TEXT_TAGS:
            return Text()
        case Tag.BINARY, PhysicalType.BYTE_ARRAY:
            return Binary()
        case Tag.UUID, PhysicalType.FIXED_LEN_BYTE_ARRAY if column.fixed_byte_length == 16:
            return Uuids()
        case Tag.IPV4, PhysicalType.INT32:
            return Addresses()
    if tag is not None and Tag.DECIMAL8 <= tag <= Tag.DECIMAL256:
        return _decimal(*decimal_parameters(column.type), physical, column.fixed_byte_length)
    return None


def _logical_domain(logical: LogicalType, physical: PhysicalType, length: int) -> Domain | None:
    """The domain that a schema's logical type gives, None when the type has no order we know."""
    bits = _BITS.get(physical)
    match logical.kind, physical:
        case LogicalKind.NONE, PhysicalType.BOOLEAN:
            return Booleans()
        case LogicalKind.NONE, (PhysicalType.FLOAT | PhysicalType.DOUBLE):
            return Floats(32 if physical is PhysicalType.FLOAT else 64)
        case LogicalKind.NONE, (PhysicalType.INT32 | PhysicalType.INT64) if bits:
            return Integers(bits)
        case LogicalKind.INT, (PhysicalType.INT32 | PhysicalType.INT64) if bits:
            return Integers(bits, signed=bool(logical.is_signed))
        case LogicalKind.DATE, PhysicalType.INT32:
            return Times(Unit.DAY, 32)
        case LogicalKind.TIMESTAMP, PhysicalType.INT64 if logical.unit:
            return Times(_UNITS[logical.unit])
        case LogicalKind.TIME, PhysicalType.INT32 if logical.unit is TimeUnit.MILLIS:
            return TimesOfDay(Unit.MILLISECOND)
        case LogicalKind.TIME, PhysicalType.INT64 if logical.unit in (TimeUnit.MICROS, TimeUnit.NANOS):
            return TimesOfDay(_UNITS[logical.unit])
        case ((LogicalKind.STRING | LogicalKind.ENUM | LogicalKind.JSON), PhysicalType.BYTE_ARRAY):
            return Text()
        case ((LogicalKind.NONE | LogicalKind.BSON), PhysicalType.BYTE_ARRAY):
            return Binary()
        case LogicalKind.NONE, PhysicalType.FIXED_LEN_BYTE_ARRAY:
            return FixedBinary(length)
        case LogicalKind.UUID, PhysicalType.FIXED_LEN_BYTE_ARRAY if length == 16:
            return Uuids()
        case LogicalKind.DECIMAL, _:
            return _decimal(logical.precision or 0, logical.scale or 0, physical, length)
    return None


def _decimal(precision: int, scale: int, physical: PhysicalType, length: int) -> Domain | None:
    match physical:
        case PhysicalType.INT32 | PhysicalType.INT64:
            return Decimals(precision, scale, _BITS[physical] // 8, big_endian=False)
        case PhysicalType.FIXED_LEN_BYTE_ARRAY if 1 <= length <= _MAX_DECIMAL_BYTES:
            return Decimals(precision, scale, length)
        case PhysicalType.BYTE_ARRAY:
            return Decimals(precision, scale, None)
    return None
