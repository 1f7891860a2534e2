"""Turns columns of a file with an older or foreign layout into columns of the table.

The parts of a file's column are matched with the table's fields by id: renamed, put in order, cast exactly, filled
with the default where the file has none, and left out where the table has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.errors import SchemaMismatch
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyArray, AnyChunks, AnyType
from underlay.schema.cast.exact import cast_exactly
from underlay.schema.cast.list_items import list_entries, map_entries
from underlay.schema.cast.plain import plain
from underlay.schema.convert.arrow import is_list, to_arrow_field, to_arrow_type
from underlay.schema.convert.default import default_scalar
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf

_PIECE_BYTES = 1 << 30
_PIECE_ROWS = 1 << 20
"""For a column with a dictionary or runs, whose size says nothing about that of its values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceField:
    """Which field of the table a part of a file's column is; None for a part that the table does not have.

    `children` mirrors the Arrow type: the fields of a struct, the element of a list, the key and value of a map.
    """

    id: int | None
    children: tuple[SourceField, ...] = ()


def source_of(field: Field) -> SourceField:
    """The source of a file that has exactly the table's field."""
    return SourceField(id=field.id, children=tuple(source_of(part) for part in parts_of(field)))


def parts_of(field: Field) -> tuple[Field, ...]:
    """The fields inside a field."""
    match field.type:
        case StructOf(fields):
            return fields
        case ListOf(element):
            return (element,)
        case MapOf(key, value):
            return (key, value)
    return ()


def adapt_column(array: AnyChunks | None, source: SourceField | None, field: Field, row_count: int) -> AnyChunks:
    """One column of a file as the table's column; without `array` and `source` the default, or nulls.

    Raises SchemaMismatch for a value that the table's type does not have, and for a required column that is missing.
    """
    type_ = to_arrow_type(field.type)
    if array is None or source is None:
        return pa.chunked_array([_missing(field, row_count, (field.name,))], type_)
    if array.type == type_ and _is_same(source, field):
        return array
    pieces = [piece for chunk in array.chunks for piece in _pieces(chunk)]
    return pa.chunked_array([_adapt(piece, source, field, (field.name,)) for piece in pieces], type_)


def _pieces(chunk: AnyArray) -> list[AnyArray]:
    """The rows in pieces small enough for four-byte text offsets, which Arrow's plain types have, as far as their size
    tells."""
    count = 1 + chunk.get_total_buffer_size() // _PIECE_BYTES  # `nbytes` crashes for some views (Arrow 24)
    if isinstance(chunk, pa.DictionaryArray | pa.RunEndEncodedArray):
        count = max(count, 1 + len(chunk) // _PIECE_ROWS)
    rows = max(1, -(-len(chunk) // count))
    return [chunk] if count == 1 else [chunk.slice(begin, rows) for begin in range(0, len(chunk), rows)]


def _is_same(source: SourceField, field: Field) -> bool:
    parts = parts_of(field)
    return (
        source.id == field.id
        and len(source.children) == len(parts)
        and all(_is_same(child, part) for child, part in zip(source.children, parts, strict=True))
    )


def _missing(field: Field, length: int, path: tuple[str, ...]) -> AnyArray:
    default = default_scalar(field)
    if default is not None:
        return pa.repeat(default, length)
    if field.is_required:
        raise SchemaMismatch(
            "a required column is missing", place=format_column(path), hint="Give it values, or a default."
        )
    return pa.nulls(length, to_arrow_type(field.type))


def _adapt(array: AnyArray, source: SourceField, field: Field, path: tuple[str, ...]) -> AnyArray:
    if array.type == to_arrow_type(field.type) and _is_same(source, field):
        return array
    array = plain(array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), to_arrow_type(field.type))
    match field.type:
        case Scalar():
            return cast_exactly(array, field.type, path)
        case StructOf(fields) if isinstance(array, pa.StructArray):
            return _adapt_struct(array, source, fields, path)
        case ListOf(element) if is_list(array.type) and len(source.children) == 1:
            return _adapt_list(array, source, element, path)
        case MapOf(key, value) if isinstance(array, pa.MapArray) and len(source.children) == 2:
            return _adapt_map(array, source, key, value, path)
    raise SchemaMismatch(
        "the column has another type",
        place=format_column(path),
        expected=field.type,
        found=array.type,
        hint="Convert it first: nested types are not built from other types.",
    )


def _adapt_struct(array: AnyArray, source: SourceField, fields: Sequence[Field], path: tuple[str, ...]) -> AnyArray:
    places = {child.id: at for at, child in enumerate(source.children) if child.id is not None}
    parts = array.flatten()  # what lies under a null struct does not count
    columns = []
    for field in fields:
        inner = (*path, field.name)
        at = places.get(field.id)
        if at is None:
            columns.append(_missing(field, len(array), inner))
        else:
            columns.append(_adapt(parts[at], source.children[at], field, inner))
    return pa.StructArray.from_arrays(columns, fields=[to_arrow_field(field) for field in fields], mask=_mask(array))


def _adapt_list(array: AnyArray, source: SourceField, element: Field, path: tuple[str, ...]) -> AnyArray:
    items, lengths = list_entries(array)
    values = _adapt(items, source.children[0], element, (*path, element.name))
    type_ = pa.list_(to_arrow_field(element))
    return pa.ListArray.from_arrays(_offsets(lengths, path), values, type=type_, mask=_mask(array))


def _adapt_map(array: AnyArray, source: SourceField, key: Field, value: Field, path: tuple[str, ...]) -> AnyArray:
    keys, items, lengths = map_entries(array)
    keys = _adapt(keys, source.children[0], key, (*path, key.name))
    items = _adapt(items, source.children[1], value, (*path, value.name))
    type_ = pa.map_(to_arrow_field(key), to_arrow_field(value))
    map_array: AnyType = pa.MapArray  # the stubs of from_arrays lack keys and values together with a type
    return map_array.from_arrays(_offsets(lengths, path), keys, items, type=type_, mask=_mask(array))


def _offsets(lengths: NDArray[np.int64], path: tuple[str, ...]) -> AnyArray:
    ends = np.cumsum(lengths, dtype=np.int64)
    if len(ends) and ends[-1] > np.iinfo(np.int32).max:
        raise SchemaMismatch(
            "the lists of one chunk have too many items",
            place=format_column(path),
            expected="fewer than 2^31",
            found=int(ends[-1]),
            hint="Give the rows in smaller chunks.",
        )
    return pa.array(np.concatenate(([0], ends)).astype(np.int32))


def _mask(array: AnyArray) -> AnyArray | None:
    return array.is_null() if array.null_count else None
