"""What a line of JSON must be to be a row: the table's types as msgspec decodes and checks them.

Numbers are JSON numbers in the range of their type, decimals numbers or texts; bytes, UUIDs, dates and times are texts
as everywhere; a struct and a map are objects. Of a key that is there twice the last counts.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import msgspec

from underlay.ingest.rows.reading import RowRules
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, Type, TypeKind

_BITS = {TypeKind.INT8: 8, TypeKind.INT16: 16, TypeKind.INT32: 32, TypeKind.INT64: 64}
_UNSIGNED_BITS = {TypeKind.UINT8: 8, TypeKind.UINT16: 16, TypeKind.UINT32: 32}
_FLOATS = (TypeKind.FLOAT16, TypeKind.FLOAT32, TypeKind.FLOAT64)

AnyForm = Any
"""A type that is made when the program runs, which no checker knows."""


def json_fields(reading: RowRules) -> tuple[Field, ...]:
    """The columns that lines may have."""
    return tuple(field for field in reading.schema.fields if field.name != reading.source_column)


def line_decoder(reading: RowRules) -> msgspec.json.Decoder[msgspec.Struct]:
    """A decoder of lines: structs with the columns in order, UNSET where a key is missing that has a default."""
    is_closed = reading.new_columns != "ignore"
    members: list[tuple[str, Any, Any]] = []
    for at, field in enumerate(json_fields(reading)):
        form = _form(field.type, is_closed) | None
        if field.default is not None:
            members.append((f"f{at}", form | msgspec.UnsetType, msgspec.field(name=field.name, default=msgspec.UNSET)))
        else:
            members.append((f"f{at}", form, msgspec.field(name=field.name, default=None)))
    return msgspec.json.Decoder(
        msgspec.defstruct("Line", members, forbid_unknown_fields=is_closed, kw_only=True, gc=False)
    )


def _form(type_: Type, is_closed: bool) -> AnyForm:
    match type_:
        case Scalar(kind=kind):
            return _scalar_form(kind)
        case StructOf(fields):
            members = [
                (f"f{at}", _form(field.type, is_closed) | None, msgspec.field(name=field.name, default=None))
                for at, field in enumerate(fields)
            ]
            return msgspec.defstruct("Part", members, forbid_unknown_fields=is_closed, gc=False)
        case ListOf(element):
            list_form: AnyForm = list
            return list_form[_form(element.type, is_closed) | None]
        case MapOf(_, value):
            dict_form: AnyForm = dict
            return dict_form[str, _form(value.type, is_closed) | None]


def _scalar_form(kind: TypeKind) -> AnyForm:
    if kind in _BITS:
        bound = 1 << (_BITS[kind] - 1)
        return Annotated[int, msgspec.Meta(ge=-bound, le=bound - 1)]
    if kind in _UNSIGNED_BITS:
        return Annotated[int, msgspec.Meta(ge=0, le=(1 << _UNSIGNED_BITS[kind]) - 1)]
    if kind is TypeKind.UINT64:
        return Annotated[int, msgspec.Meta(ge=0)]
    if kind in _FLOATS:
        return float
    return {TypeKind.BOOLEAN: bool, TypeKind.DECIMAL: Decimal}.get(kind, str)
