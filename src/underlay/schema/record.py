"""A table's columns as they are stored in a root."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from underlay.errors import InvalidRequest, Malformed
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, Type, parse_scalar

_MAX_DEPTH = 64


class FieldRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A field. `type` is a scalar type's text, or `struct`, `list` or `map` with the parts in `fields`."""

    id: int
    name: str
    type: str
    fields: tuple[FieldRecord, ...] = ()
    required: bool = False
    comment: str | None = None
    default: str | None = None


class SchemaRecord(msgspec.Struct, frozen=True, kw_only=True):
    """All columns, and the greatest field id that the table ever had."""

    fields: tuple[FieldRecord, ...]
    last_id: int


def to_record(schema: TableSchema) -> SchemaRecord:
    """What is stored for these columns."""
    return SchemaRecord(fields=tuple(_field_record(field) for field in schema.fields), last_id=schema.last_id)


@lru_cache(maxsize=256)
def from_record(record: SchemaRecord) -> TableSchema:
    """The columns that were stored. Raises Malformed for a type that does not exist."""
    return TableSchema(fields=tuple(_field(field, 1) for field in record.fields), last_id=record.last_id)


def _field_record(field: Field) -> FieldRecord:
    name: str
    inner: tuple[Field, ...]
    match field.type:
        case Scalar():
            name, inner = str(field.type), ()
        case StructOf(fields):
            name, inner = "struct", fields
        case ListOf(element):
            name, inner = "list", (element,)
        case MapOf(key, value):
            name, inner = "map", (key, value)
    return FieldRecord(
        id=field.id,
        name=field.name,
        type=name,
        fields=tuple(_field_record(part) for part in inner),
        required=field.is_required,
        comment=field.comment,
        default=field.default,
    )


def _field(record: FieldRecord, depth: int) -> Field:
    if depth > _MAX_DEPTH:
        raise Malformed("the schema is too deep", place=record.name, expected=f"at most {_MAX_DEPTH} levels")
    parts = tuple(_field(part, depth + 1) for part in record.fields)
    return Field(
        id=record.id,
        name=record.name,
        type=_type(record, parts),
        is_required=record.required,
        comment=record.comment,
        default=record.default,
    )


def _type(record: FieldRecord, parts: tuple[Field, ...]) -> Type:
    match record.type, parts:
        case "struct", _:
            return StructOf(parts)
        case "list", (element,):
            return ListOf(element)
        case "map", (key, value):
            return MapOf(key, value)
        case (("list" | "map"), _):
            raise Malformed(f"a {record.type} has the wrong number of parts", place=record.name, found=len(parts))
    try:
        return parse_scalar(record.type)
    except InvalidRequest as error:
        raise Malformed(
            "the column has a type that does not exist",
            place=record.name,
            found=record.type,
            hint="If a newer Underlay wrote it, update this one.",
        ) from error
