"""Decodes a Parquet file's physical values; needs no logical types, nesting or writer's schema."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from underlay.pm.format.sidecar import Sidecar
from underlay.pm.format.types import UNKNOWN
from underlay.pm.format.values import SidecarColumn
from underlay.pm.read.rows import decoding_error, open_through_sidecar, row_group_batches


def open_physical(sidecar: Sidecar, parquet: str | os.PathLike[str]) -> pq.ParquetFile:
    """The Parquet file with one column per leaf, named by its index, of the leaf's physical type."""
    return open_through_sidecar(_Untyped(sidecar), parquet)


class _Untyped(Sidecar):
    """A sidecar whose columns have no types and unambiguous names."""

    def __init__(self, sidecar: Sidecar) -> None:
        super().__init__(sidecar.data, sidecar.header, sidecar.footer, sidecar.sections)
        self.columns: tuple[SidecarColumn, ...] = tuple(
            replace(column, type=UNKNOWN, name=f"{index}") for index, column in enumerate(sidecar.columns)
        )


def read_leaves(
    file: pq.ParquetFile, row_group: int, columns: Sequence[int] | None = None
) -> tuple[int, list[pa.Array[Any]]]:
    """Rows of a row group, and of each chosen leaf the values that are there: lists are opened, nulls left out.

    Raises Damaged when a page does not decode, Unsupported when Arrow has no way to read it.
    """
    names = None if columns is None else [f"{index}" for index in columns]
    try:
        batches = list(row_group_batches(file, row_group, names))
    except (pa.ArrowException, OSError) as error:
        raise decoding_error(error, row_group) from error
    schema = file.schema_arrow if names is None else pa.schema([file.schema_arrow.field(name) for name in names])
    table = pa.Table.from_batches(batches, schema)
    return table.num_rows, [_leaf_values(column) for column in table.columns]


def _leaf_values(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    values = column.combine_chunks()
    while pa.types.is_nested(values.type):
        values = pc.list_flatten(values) if pa.types.is_list(values.type) else pc.struct_field(values, [0])
    return values.drop_null()
