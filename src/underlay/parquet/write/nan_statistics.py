"""Finds NaN in written columns, and drops the bounds that would hide NaN from other readers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from underlay.parquet.footer.chunks import CHUNKS, META, STATISTICS
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.tail import seal
from underlay.parquet.records.records import Flags, StructRecords
from underlay.parquet.thrift.encode import Raw, Struct, Value, encode
from underlay.parquet.thrift.tree import ThriftKind

AnyArray: TypeAlias = "pa.Array[Any]"  # Any: of every type

_BOUND_FIELDS = frozenset({1, 2, 5, 6, 7, 8})
"""Fields of Statistics that are bounds, or tell how good they are."""


@lru_cache(maxsize=64)
def leaf_paths(schema: pa.Schema) -> tuple[str, ...]:
    """The dotted paths of the leaves, as pyarrow names them in the file."""
    return tuple(path for field in schema for path, _ in _leaves(field.name, field.type))


@lru_cache(maxsize=64)
def float_leaves(schema: pa.Schema) -> frozenset[int]:
    """The positions of leaves that may hold NaN."""
    types = [type_ for field in schema for _, type_ in _leaves(field.name, field.type)]
    return frozenset(index for index, type_ in enumerate(types) if pa.types.is_floating(type_))


def _leaves(path: str, type_: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    if isinstance(type_, pa.StructType):
        for index in range(type_.num_fields):
            yield from _leaves(f"{path}.{type_.field(index).name}", type_.field(index).type)
    elif isinstance(type_, pa.MapType):
        yield from _leaves(f"{path}.key_value.key", type_.key_type)
        yield from _leaves(f"{path}.key_value.value", type_.item_type)
    elif isinstance(type_, pa.ListType | pa.LargeListType | pa.FixedSizeListType):
        yield from _leaves(f"{path}.list.element", type_.value_type)
    else:
        yield path, type_


@lru_cache(maxsize=64)
def _float_columns(schema: pa.Schema) -> tuple[tuple[int, int, int], ...]:
    """The columns with leaves that may hold NaN: their positions, and those of their first leaf and the one after."""
    found, begin = [], 0
    for column, field in enumerate(schema):
        types = [type_ for _, type_ in _leaves("", field.type)]
        end = begin + len(types)
        if any(map(pa.types.is_floating, types)):
            found.append((column, begin, end))
        begin = end
    return tuple(found)


def find_nan(table: pa.Table) -> Flags:
    """Which leaves of a table hold NaN. Values under a null struct count as well."""
    schema = table.schema
    found = np.zeros(len(leaf_paths(schema)), np.bool_)
    for column, begin, end in _float_columns(schema):
        for chunk in table.column(column).chunks:
            found[begin:end] |= list(_holds_nan(chunk))
    return found


def _holds_nan(array: AnyArray) -> Iterator[bool]:
    """For each leaf of an array, in order, whether it holds NaN."""
    if isinstance(array, pa.StructArray):
        for index in range(array.type.num_fields):
            yield from _holds_nan(array.field(index))
    elif isinstance(array, pa.MapArray):
        begin, length = _inside(array)
        yield from _holds_nan(array.keys.slice(begin, length))
        yield from _holds_nan(array.items.slice(begin, length))
    elif isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray):
        yield from _holds_nan(array.flatten())
    elif pa.types.is_floating(array.type):
        values = array.drop_null() if array.null_count else array
        yield bool(np.isnan(values.to_numpy()).any())
    else:
        yield False


def _inside(array: pa.MapArray[Any, Any]) -> tuple[int, int]:
    """Which entries belong to the maps of an array, which may be a slice of a longer one."""
    offsets = array.offsets
    begin = offsets[0].as_py() if len(offsets) else 0
    return begin, (offsets[-1].as_py() if len(offsets) else 0) - begin


def without_bounds(footer: Footer, has_nan: Flags) -> tuple[Footer, bytes]:
    """The footer without the bounds of some chunks [row groups, leaves], and the bytes that end the file with it."""
    tree = footer.tree
    statistics = StructRecords(tree, CHUNKS).nodes(META, STATISTICS, kind=ThriftKind.STRUCT).reshape(has_nan.shape)
    replaced = {}
    for entry in statistics[has_nan & (statistics >= 0)].tolist():
        kept: dict[int, Value] = {
            number: Raw(tree.kind(child), tree.raw(child))
            for number, child in tree.fields(entry).items()
            if number not in _BOUND_FIELDS
        }
        replaced[entry] = encode(Struct(kept))
    changed = tree.write(replaced)
    return Footer.parse(changed), seal(changed)
