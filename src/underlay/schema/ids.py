"""Field ids for columns that are new to a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, Type

UNNUMBERED = 0
"""The id of a field that has none yet."""


def number_fields(fields: Iterable[Field], *, first_id: int = 1) -> TableSchema:
    """The columns with new ids, depth first, a column before its parts."""
    ids = count(first_id)
    numbered = tuple(_number(field, ids) for field in fields)
    return TableSchema(fields=numbered, last_id=next(ids) - 1)


def _number(field: Field, ids: Iterator[int]) -> Field:
    id_ = next(ids)
    return replace(field, id=id_, type=_number_parts(field.type, ids))


def _number_parts(type_: Type, ids: Iterator[int]) -> Type:
    match type_:
        case Scalar():
            return type_
        case StructOf(fields):
            return StructOf(tuple(_number(field, ids) for field in fields))
        case ListOf(element):
            return ListOf(_number(element, ids))
        case MapOf(key, value):
            return MapOf(_number(key, ids), _number(value, ids))
