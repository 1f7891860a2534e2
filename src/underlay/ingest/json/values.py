"""Values that were decoded from JSON as Arrow arrays of a table's types. What does not fit raises (`UNFIT`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from underlay.ingest.csv.columns import holds_infinite
from underlay.ingest.rows.text_values import converter
from underlay.schema.arrow_aliases import AnyArray, AnyType
from underlay.schema.convert.arrow import to_arrow_field, to_arrow_type
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, TypeKind

Values = Sequence[Any]
"""What msgspec decoded: of one type for each column, which only the table knows."""

_OWN_FORM = (TypeKind.BOOLEAN, TypeKind.STRING)


def to_array(values: Values, field: Field) -> AnyArray:
    """The values of a column or of a part of one."""
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
            map_array: AnyType = pa.MapArray  # the stubs of from_arrays know no keys and values together with a type
            return map_array.from_arrays(_offsets(values), keys, items, type=arrow_map, mask=_nulls(values))


def is_unset(values: Values) -> list[bool]:
    """Which keys were missing."""
    return [value is msgspec.UNSET for value in values]


def _scalars(values: Values, type_: Scalar) -> AnyArray:
    arrow = to_arrow_type(type_)
    if type_.kind is TypeKind.DECIMAL:
        # Arrow takes a decimal that is no number for null.
        return pa.array([None if value is None else str(value) for value in values], pa.string()).cast(arrow)
    if type_.kind in _OWN_FORM or pa.types.is_integer(arrow):
        return pa.array(values, arrow)
    if pa.types.is_floating(arrow):
        found = pa.array(values, arrow)
        if holds_infinite(found):
            raise ValueError(f"a number is too great for {type_}")
        return found
    return converter(arrow)(pa.array(values, pa.string()))


def _as_text(key: Field) -> Field:
    """Keys of objects are texts, whatever the table's are."""
    return Field(id=key.id, name=key.name, type=Scalar(TypeKind.STRING))


def _offsets(values: Values) -> AnyArray:
    lengths = np.fromiter((len(value) if value is not None else 0 for value in values), np.int32, len(values))
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def _nulls(values: Values) -> AnyArray | None:
    if None not in values:
        return None
    return pa.array([value is None for value in values])
