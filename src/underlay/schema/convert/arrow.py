"""A table's columns as an Arrow schema, and an Arrow schema as a table's columns.

Every Arrow field carries its id as `PARQUET:field_id`, which pyarrow writes to Parquet. Arrow types with the same
meaning become one type of ours; converting back gives the plainest of them.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from underlay.errors import SchemaMismatch, Unsupported
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyField, AnyType
from underlay.schema.ids import UNNUMBERED, number_fields
from underlay.schema.names import check_names
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import MAX_DECIMAL_DIGITS, Field, ListOf, MapOf, Scalar, StructOf, Type, TypeKind

FIELD_ID_KEY = b"PARQUET:field_id"
UUID_NAME = "arrow.uuid"
MAX_DEPTH = 64

_PLAIN: dict[TypeKind, pa.DataType] = {
    TypeKind.BOOLEAN: pa.bool_(),
    TypeKind.INT8: pa.int8(),
    TypeKind.INT16: pa.int16(),
    TypeKind.INT32: pa.int32(),
    TypeKind.INT64: pa.int64(),
    TypeKind.UINT8: pa.uint8(),
    TypeKind.UINT16: pa.uint16(),
    TypeKind.UINT32: pa.uint32(),
    TypeKind.UINT64: pa.uint64(),
    TypeKind.FLOAT16: pa.float16(),
    TypeKind.FLOAT32: pa.float32(),
    TypeKind.FLOAT64: pa.float64(),
    TypeKind.STRING: pa.string(),
    TypeKind.BINARY: pa.binary(),
    TypeKind.UUID: pa.uuid(),
    TypeKind.DATE: pa.date32(),
}
_KINDS: dict[pa.DataType, TypeKind] = {
    **{arrow: kind for kind, arrow in _PLAIN.items()},
    pa.large_string(): TypeKind.STRING,
    pa.string_view(): TypeKind.STRING,
    pa.large_binary(): TypeKind.BINARY,
    pa.binary_view(): TypeKind.BINARY,
    pa.date64(): TypeKind.DATE,
}


@lru_cache(maxsize=1024)
def to_arrow(schema: TableSchema) -> pa.Schema:
    """The Arrow schema of these columns."""
    return pa.schema([to_arrow_field(field) for field in schema.fields])


def to_arrow_field(field: Field) -> AnyField:
    """One column with its id."""
    return pa.field(
        field.name,
        to_arrow_type(field.type),
        nullable=not field.is_required,
        metadata={FIELD_ID_KEY: str(field.id).encode()},
    )


@lru_cache(maxsize=1024)
def to_arrow_type(type_: Type) -> AnyType:
    """The plainest Arrow type."""
    match type_:
        case StructOf(fields):
            return pa.struct([to_arrow_field(field) for field in fields])
        case ListOf(element):
            return pa.list_(to_arrow_field(element))
        case MapOf(key, value):
            return pa.map_(to_arrow_field(key), to_arrow_field(value))
        case Scalar(kind=TypeKind.DECIMAL):
            return pa.decimal128(type_.precision, type_.scale)
        case Scalar(kind=TypeKind.FIXED):
            return pa.binary(type_.length)
        case Scalar(kind=TypeKind.TIME, unit="s" | "ms"):
            return pa.time32("s" if type_.unit == "s" else "ms")
        case Scalar(kind=TypeKind.TIME):
            return pa.time64("ns" if type_.unit == "ns" else "us")
        case Scalar(kind=TypeKind.TIMESTAMP):
            return _timestamp(type_.unit, type_.zone)
    return _PLAIN[type_.kind]


def from_arrow(schema: pa.Schema, *, first_id: int = 1) -> TableSchema:
    """Columns with new ids, depth first, a column before its parts; ids in the metadata are ignored.

    Raises SchemaMismatch for invalid names, and Unsupported for types that tables do not have.
    """
    check_names(schema.names, ())
    return number_fields([_field(field, (field.name,)) for field in schema], first_id=first_id)


def scalar_of(type_: AnyType) -> Scalar | None:
    """The scalar type that an Arrow type means; None when it means none."""
    if isinstance(type_, pa.DictionaryType | pa.RunEndEncodedType):
        return scalar_of(type_.value_type)
    kind = _KINDS.get(type_)
    if kind is not None:
        return Scalar(kind)
    if pa.types.is_decimal(type_):
        is_ours = type_.precision <= MAX_DECIMAL_DIGITS and 0 <= type_.scale <= type_.precision
        return Scalar(TypeKind.DECIMAL, precision=type_.precision, scale=type_.scale) if is_ours else None
    if isinstance(type_, pa.FixedSizeBinaryType):
        return Scalar(TypeKind.FIXED, length=type_.byte_width) if type_.byte_width > 0 else None
    if isinstance(type_, pa.Time32Type | pa.Time64Type):
        return Scalar(TypeKind.TIME, unit=type_.unit)
    if isinstance(type_, pa.TimestampType):
        return Scalar(TypeKind.TIMESTAMP, unit=type_.unit, zone=type_.tz)
    return Scalar(TypeKind.STRING) if isinstance(type_, pa.JsonType) else None


def is_list(type_: pa.DataType) -> bool:
    """Whether an Arrow type is one of the five kinds of list."""
    types = pa.types
    plain = types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_)
    return plain or types.is_list_view(type_) or types.is_large_list_view(type_)


def _timestamp(unit: str | None, zone: str | None) -> pa.DataType:
    match unit:
        case "s":
            return pa.timestamp("s", zone)
        case "ms":
            return pa.timestamp("ms", zone)
        case "ns":
            return pa.timestamp("ns", zone)
    return pa.timestamp("us", zone)


def _field(field: AnyField, path: tuple[str, ...], name: str | None = None) -> Field:
    if len(path) > MAX_DEPTH:
        raise Unsupported("the column is nested too deeply", place=path[0], expected=f"at most {MAX_DEPTH} levels")
    return Field(
        id=UNNUMBERED,
        name=field.name if name is None else name,
        type=_type(field.type, path),
        is_required=not field.nullable,
    )


def _type(type_: AnyType, path: tuple[str, ...]) -> Type:
    scalar = scalar_of(type_)
    if scalar is not None:
        return scalar
    if isinstance(type_, pa.StructType) and type_.num_fields:
        parts = [type_.field(at) for at in range(type_.num_fields)]
        check_names((part.name for part in parts), path)
        return StructOf(tuple(_field(part, (*path, part.name)) for part in parts))
    if isinstance(type_, pa.MapType):
        key = _field(type_.key_field.with_nullable(False), (*path, "key"), "key")
        return MapOf(key, _field(type_.item_field, (*path, "value"), "value"))
    if is_list(type_):
        return ListOf(_field(type_.value_field, (*path, "element"), "element"))
    raise _refused(type_, path)


def _refused(type_: AnyType, path: tuple[str, ...]) -> SchemaMismatch | Unsupported:
    place = format_column(path)
    types = pa.types
    if types.is_null(type_):
        return SchemaMismatch("the column has no type: all its values are null", place=place, hint="Cast it to a type.")
    hint = "Leave the column out, or cast it."
    if types.is_duration(type_) or types.is_interval(type_):
        hint = "Cast it to int64 and put the unit in its name."
    elif types.is_decimal(type_):
        hint = f"Cast it to a decimal of at most {MAX_DECIMAL_DIGITS} digits, with a scale from 0 to the precision."
    elif types.is_union(type_):
        hint = "Make it a struct with one field for each type."
    elif isinstance(type_, pa.BaseExtensionType):
        hint = f"Cast it to its storage, {type_.storage_type}."
    elif types.is_struct(type_):
        hint = "A struct needs at least one field."
    return Unsupported("tables have no columns of this type", place=place, found=type_, hint=hint)
