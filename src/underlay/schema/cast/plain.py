"""Arrow arrays without encodings: dictionaries and runs decoded, views with offsets, JSON as text.

Arrow has few kernels for views and runs: it cannot take, filter or decode a dictionary of them.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from underlay.schema.arrow_aliases import AnyArray, AnyType

_SHORT_BYTES = 1 << 30
"""Offsets of four bytes are enough for this many."""


def plain(array: AnyArray) -> AnyArray:
    """The same values; the array itself when it has no encoding. Nested parts stay as they are."""
    if isinstance(array, pa.DictionaryArray):
        values = plain(array.dictionary)
        return plain(pa.DictionaryArray.from_arrays(array.indices, values).dictionary_decode())
    if isinstance(array, pa.RunEndEncodedArray):
        runs = array.values
        values = plain(runs)
        if values is not runs:
            kind = pa.run_end_encoded(array.type.run_end_type, values.type)
            children = [array.run_ends, values]
            array = pa.Array.from_buffers(kind, len(array), [None], offset=array.offset, children=children)
        return plain(pc.call_function("run_end_decode", [array]))
    if isinstance(array.type, pa.JsonType):
        return plain(array.storage)
    if pa.types.is_string_view(array.type):
        return array.cast(pa.string() if array.get_total_buffer_size() < _SHORT_BYTES else pa.large_string())
    if pa.types.is_binary_view(array.type):
        return array.cast(pa.binary() if array.get_total_buffer_size() < _SHORT_BYTES else pa.large_binary())
    return array


def takeable(array: AnyArray) -> AnyArray:
    """The same values in types that Arrow's `take` supports, nested parts included; the array itself when it has such a
    type."""
    array = plain(array)
    if isinstance(array, pa.StructArray):
        before = [array.field(at) for at in range(array.type.num_fields)]
        after = [takeable(part) for part in before]
        if all(new is old for new, old in zip(after, before, strict=True)):
            return array
        fields = [array.type.field(at).with_type(part.type) for at, part in enumerate(after)]
        return pa.StructArray.from_arrays(after, fields=fields, mask=array.is_null() if array.null_count else None)
    if isinstance(array, pa.ListArray | pa.LargeListArray) and not isinstance(array, pa.MapArray):
        items = array.values
        values = takeable(items)
        if values is items:
            return array
        make = pa.list_ if isinstance(array, pa.ListArray) else pa.large_list
        kind = make(array.type.value_field.with_type(values.type))
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], offset=array.offset, children=[values])
    return array


def plain_type(given: AnyType) -> AnyType:
    """What an encoded type holds."""
    if isinstance(given, pa.DictionaryType | pa.RunEndEncodedType):
        return plain_type(given.value_type)
    return given.storage_type if isinstance(given, pa.JsonType) else given


def is_bytes(given: pa.DataType) -> bool:
    """Whether values are bytes other than text."""
    types = pa.types
    is_plain = types.is_binary(given) or types.is_large_binary(given) or types.is_binary_view(given)
    return is_plain or types.is_fixed_size_binary(given) or isinstance(given, pa.UuidType)


def byte_width(given: pa.DataType) -> int | None:
    """The fixed length of the values; None when lengths may differ."""
    if isinstance(given, pa.UuidType):
        return 16
    return given.byte_width if isinstance(given, pa.FixedSizeBinaryType) else None
