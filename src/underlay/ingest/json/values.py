"""Maps a table's types to msgspec's, which decode and check JSON, and decoded values to Arrow arrays.

Numbers are JSON numbers in the range of their type, decimals numbers or strings; bytes, UUIDs, dates and times are
strings, as in CSV; structs and maps are objects. If a key occurs twice, the last one counts. A value that does not fit
raises one of `UNFIT`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa

from underlay.ingest.csv.columns import holds_infinite
from underlay.ingest.rows.reading import RowRules
from underlay.ingest.rows.text_values import converter
from underlay.schema.arrow_aliases import AnyArray, AnyType
from underlay.schema.convert.arrow import to_arrow_field, to_arrow_type
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, Type, TypeKind

_BITS = {TypeKind.INT8: 8, TypeKind.INT16: 16, TypeKind.INT32: 32, TypeKind.INT64: 64}
_UNSIGNED_BITS = {TypeKind.UINT8: 8, TypeKind.UINT16: 16, TypeKind.UINT32: 32}
_FLOATS = (TypeKind.FLOAT16, TypeKind.FLOAT32, TypeKind.FLOAT64)

_OWN_FORM = (TypeKind.BOOLEAN, TypeKind.STRING)

AnyForm = Any
"""A type made at run time, unknown to type checkers."""
LineDecoder = msgspec.json.Decoder[msgspec.Struct]
Values = Sequence[Any]
"""Decoded values: each column has one type, which only the table knows."""


def json_fields(reading: RowRules) -> tuple[Field, ...]:
    """The columns that lines may have."""
    return tuple(field for field in reading.schema.fields if field.name != reading.source_column)


def line_decoder(reading: RowRules, keys: Mapping[str, str] | None = None) -> LineDecoder:
    """A decoder of lines to structs with the columns in order, and UNSET for a missing key that has a default.

    `keys` are the keys of columns where they differ from the columns' names.
    """
    is_closed = reading.new_columns != "ignore"
    members: list[tuple[str, Any, Any]] = []
    for at, field in enumerate(json_fields(reading)):
        form = _form(field.type, is_closed) | None
        key = (keys or {}).get(field.name, field.name)
        if field.default is not None:
            members.append((f"f{at}", form | msgspec.UnsetType, msgspec.field(name=key, default=msgspec.UNSET)))
        else:
            members.append((f"f{at}", form, msgspec.field(name=key, default=None)))
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


def to_array(values: Values, field: Field) -> AnyArray:
    """The values of a column, or of a part of one, as an Arrow array."""
    match field.type:
        case Scalar():
            return _scalars(values, field.type)
        case StructOf(fields):
            columns = [
                to_array([None if value is None else getattr(value, f"f{at}") for value in values], part)
                for at, part in enumerate(fields)
            ]
            arrow = [to_arrow_field(part) for part in fields]
            return pa.StructArray.from_arrays(columns, fields=arrow, mask=_nulls(values))
        case ListOf(element):
            items = to_array(list(chain.from_iterable(value or () for value in values)), element)
            type_ = pa.list_(to_arrow_field(element))
            return pa.ListArray.from_arrays(_offsets(values), items, type=type_, mask=_nulls(values))
        case MapOf(key, value):
            keys = to_array(list(chain.from_iterable(found or () for found in values)), _as_text(key))
            items = to_array(list(chain.from_iterable(found.values() for found in values if found)), value)
            arrow_map = pa.map_(to_arrow_field(key), to_arrow_field(value))
            keys = keys if keys.type == to_arrow_type(key.type) else converter(to_arrow_type(key.type))(keys)
            map_array: AnyType = pa.MapArray  # the stubs do not allow keys and values together with a type
            return map_array.from_arrays(_offsets(values), keys, items, type=arrow_map, mask=_nulls(values))


def is_unset(values: Values) -> list[bool]:
    """Which keys were missing."""
    return [value is msgspec.UNSET for value in values]


def _scalars(values: Values, type_: Scalar) -> AnyArray:
    arrow = to_arrow_type(type_)
    if type_.kind is TypeKind.DECIMAL:
        # Arrow would turn a decimal that is not a number into null.
        return pa.array([None if value is None else str(value) for value in values], pa.string()).cast(arrow)
    if type_.kind in _OWN_FORM or pa.types.is_integer(arrow):
        return pa.array(values, arrow)
    if pa.types.is_floating(arrow):
        found = pa.array(values, arrow)
        if holds_infinite(found):
            raise ValueError(f"a number is out of range for {type_}")
        return found
    return converter(arrow)(pa.array(values, pa.string()))


def _as_text(key: Field) -> Field:
    """Keys of objects are strings, whatever type the map's keys have."""
    return Field(id=key.id, name=key.name, type=Scalar(TypeKind.STRING))


def _offsets(values: Values) -> AnyArray:
    lengths = np.fromiter((len(value) if value is not None else 0 for value in values), np.int32, len(values))
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def _nulls(values: Values) -> AnyArray | None:
    if None not in values:
        return None
    return pa.array([value is None for value in values])
