"""Hidden nulls: those of a required field where the struct around it is null.

Arrow allows them; a Parquet writer refuses them, since the field is declared without nulls.
"""

from __future__ import annotations

import pyarrow as pa

from underlay.schema.arrow_aliases import AnyArray
from underlay.schema.convert.arrow import to_arrow_field
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf


def without_hidden_nulls(array: AnyArray, field: Field) -> AnyArray:
    """The same values, with an arbitrary one for each hidden null; the array itself when there is none."""
    match field.type:
        case StructOf(fields):
            return _struct(array, fields)
        case ListOf(element):
            return _list(array, element)
        case MapOf(_, value):
            return _map(array, value)
    return array


def _struct(array: AnyArray, fields: tuple[Field, ...]) -> AnyArray:
    before = [array.field(at) for at in range(len(fields))]
    after = [_part(part, field) for part, field in zip(before, fields, strict=True)]
    if all(new is old for new, old in zip(after, before, strict=True)):
        return array
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(after, fields=[to_arrow_field(field) for field in fields], mask=mask)


def _part(array: AnyArray, field: Field) -> AnyArray:
    plain = without_hidden_nulls(array, field)
    return _bare(plain, field) if field.is_required and plain.null_count else plain


def _list(array: AnyArray, element: Field) -> AnyArray:
    values = array.values
    filled = without_hidden_nulls(values, element)
    if filled is values:
        return array
    return pa.Array.from_buffers(array.type, len(array), array.buffers()[:2], offset=array.offset, children=[filled])


def _map(array: AnyArray, value: Field) -> AnyArray:
    items = array.items
    filled = without_hidden_nulls(items, value)
    if filled is items:
        return array
    entries = pa.StructArray.from_arrays([array.keys, filled], fields=[array.type.key_field, array.type.item_field])
    return pa.Array.from_buffers(array.type, len(array), array.buffers()[:2], offset=array.offset, children=[entries])


def _bare(array: AnyArray, field: Field) -> AnyArray:
    """The array without its validity bitmap."""
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(array.type, _bare(array.storage, field))
    buffers = array.buffers()
    if isinstance(field.type, Scalar):
        return pa.Array.from_buffers(array.type, len(array), [None, *buffers[1:]], offset=array.offset)
    if isinstance(field.type, StructOf):
        parts = [array.field(at) for at in range(len(field.type.fields))]
        return pa.StructArray.from_arrays(parts, fields=list(array.type))
    children = [array.values]
    return pa.Array.from_buffers(array.type, len(array), [None, buffers[1]], offset=array.offset, children=children)
