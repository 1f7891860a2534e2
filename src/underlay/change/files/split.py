"""Rows apart by partition, and the partition's values as the index stores them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.convert.stored_values import stored_array
from underlay.schema.partitioning.partition import apply_transform
from underlay.schema.partitioning.transform import PartitionField
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar

_MOST_COMBINATIONS = 2**62
"""Of values of the partition fields that one integer numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRows:
    """The rows of one partition; `values` as `FileEntry.partition` has them."""

    values: tuple[bytes | None, ...]
    rows: pa.Table


def split(table: pa.Table, fields: Sequence[PartitionField], schema: TableSchema) -> Iterator[PartitionRows]:
    """The rows by partition, in the order in which partitions first occur."""
    if not fields:
        yield PartitionRows(values=(), rows=table)
        return
    encoded = [_encoded(apply_transform(field, _leaf(table, schema, field.field))) for field in fields]
    codes = _combined(encoded, table.num_rows)
    _, firsts, numbers = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=len(firsts)))
    for number in np.argsort(firsts, kind="stable").tolist():
        rows = order[(ends[number - 1] if number else 0) : ends[number]]
        values = tuple(
            _packed(one.dictionary.slice(int(one.indices[int(firsts[number])].as_py()), 1), field.type)
            for one, field in zip(encoded, fields, strict=True)
        )
        yield PartitionRows(values=values, rows=table if len(firsts) == 1 else table.take(rows))


def _combined(encoded: Sequence[pa.DictionaryArray[Any, Any]], row_count: int) -> NDArray[np.int64]:
    """For each row a number that only rows with the same values in all columns share."""
    codes, combinations = np.zeros(row_count, np.int64), 1
    for one in encoded:
        count = max(1, len(one.dictionary))
        if combinations * count > _MOST_COMBINATIONS:
            _, codes = np.unique(codes, return_inverse=True)
            combinations = row_count
        codes = codes * count + one.indices.to_numpy().astype(np.int64)
        combinations *= count
    return codes


def _encoded(values: pa.Array[Any]) -> pa.DictionaryArray[Any, Any]:
    """Equal values as equal numbers, null as one of the values. An extension is known by what it is stored as."""
    plain = values.storage if isinstance(values, pa.ExtensionArray) else values
    found = pc.dictionary_encode(plain, null_encoding="encode")
    if not isinstance(found, pa.DictionaryArray):
        raise TypeError(f"a dictionary, not {type(found).__name__}")
    return found


def _packed(value: pa.Array[Any], scalar: Scalar) -> bytes | None:
    """The one value of an array. It stays in Arrow: Python has no nanoseconds, and its years end."""
    if value.null_count:
        return None
    stored = stored_array(value, scalar)
    if isinstance(stored, np.ndarray):
        return stored.astype(storage_of(scalar).value).tobytes()
    found = stored[0].as_py()
    if storage_of(scalar) is not Storage.BYTES or not isinstance(found, bytes):
        raise TypeError(f"a partition value of {scalar} is stored as bytes")
    return found


def _leaf(table: pa.Table, schema: TableSchema, field: int) -> pa.ChunkedArray[Any]:
    top, *inner = schema.leaf_by_id[field].path
    column = table.column(top)
    for name in inner:
        column = pc.struct_field(column, name)
    return column
