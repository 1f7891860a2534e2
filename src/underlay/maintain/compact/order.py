"""The orders in which a compaction can write rows: the table's own, or one that keeps rows close in the files that are
close in several columns.

For the latter, up to 1,024 ranges of equal frequency, cut from a sample, number each column's values; interleaving the
bits of these numbers gives a row's place along a Z-order (Morton) curve.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.errors import InvalidRequest
from underlay.index.root import Definition
from underlay.schema.names import find_leaf, parse_path
from underlay.schema.partitioning.sort import SortField, sort_indices
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import TypeKind

Indices = NDArray[np.int64]
OrderOf = Callable[[pa.Table], Indices]
"""Returns the positions of the rows in sorted order. The sort is stable."""

SORT = "sort"
_ZORDER = re.compile(r"\s*zorder\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
_PARTS = 1 << 10
_BITS = 10
MOST_COLUMNS = 6
SAMPLE_ROWS = 1 << 16
_HINT = 'Write "sort", or "zorder(a, b)" with two to six columns.'


def zorder_leaves(order: str, schema: TableSchema) -> list[LeafColumn]:
    """The columns of `zorder(…)`; empty for `sort`. Raises InvalidRequest, UnknownColumn."""
    if order.strip().lower() == SORT:
        return []
    match = _ZORDER.fullmatch(order) if isinstance(order, str) else None
    if match is None:
        raise InvalidRequest("not an order that files can be written in", found=order, hint=_HINT)
    leaves = [find_leaf(schema, parse_path(name)) for name in match[1].split(",") if name.strip()]
    ids = {leaf.id for leaf in leaves}
    if not 1 < len(leaves) <= MOST_COLUMNS or len(ids) < len(leaves):
        raise InvalidRequest("zorder takes two to six different columns", found=order, hint=_HINT)
    for leaf in leaves:
        if leaf.is_repeated or leaf.type.kind is TypeKind.FLOAT16:
            raise InvalidRequest("rows cannot be ordered by this column", found=".".join(leaf.path), hint=_HINT)
    return leaves


def check_order(definition: Definition, leaves: Sequence[LeafColumn]) -> None:
    """Raise InvalidRequest when the table has no order and no columns are given."""
    if not definition.sort_by and not leaves:
        raise InvalidRequest(
            "the table has no order", hint='Create it with sort_by, or name columns: order="zorder(a, b)".'
        )


def table_order(definition: Definition, schema: TableSchema) -> OrderOf:
    """The order that the table declares."""
    fields = [
        SortField(field=one.field, is_descending=one.descending, is_nulls_last=one.nulls_last)
        for one in definition.sort_by
    ]
    return lambda rows: _sorted(rows, fields, schema)


def z_order(leaves: Sequence[LeafColumn], sample: pa.Table, schema: TableSchema) -> OrderOf:
    """The order along the Z-order curve. `sample` holds these columns for some rows."""
    cuts = [_cuts(sample, leaf, schema) for leaf in leaves]

    def place(rows: pa.Table) -> Indices:
        numbers = [_part_numbers(rows, leaf, cut, schema) for leaf, cut in zip(leaves, cuts, strict=True)]
        return np.argsort(interleave(numbers), kind="stable")

    return place


def interleave(numbers: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Interleave the bits of numbers below 1,024, the first column's bit first."""
    found = np.zeros(len(numbers[0]), np.uint64)
    for bit in range(_BITS):
        for at, values in enumerate(reversed(numbers)):
            found |= ((values >> np.uint64(bit)) & np.uint64(1)) << np.uint64(bit * len(numbers) + at)
    return found


def _sorted(rows: pa.Table, fields: Sequence[SortField], schema: TableSchema) -> Indices:
    return np.asarray(sort_indices(rows, fields, schema).to_numpy(zero_copy_only=False), np.int64)


def _cuts(sample: pa.Table, leaf: LeafColumn, schema: TableSchema) -> pa.Table:
    """Values that divide the sample evenly."""
    column = sample.select([leaf.path[0]])
    order = _sorted(column, [SortField(field=leaf.id)], schema)
    count = min(_PARTS - 1, len(order))
    chosen = order[(np.arange(1, count + 1) * len(order)) // (count + 1)] if count else order
    return column.take(pa.array(chosen, pa.int64()))


def _part_numbers(rows: pa.Table, leaf: LeafColumn, cuts: pa.Table, schema: TableSchema) -> NDArray[np.uint64]:
    """For each row, how many cuts are at or below its value."""
    both = pa.concat_tables([cuts, rows.select(cuts.schema.names).cast(cuts.schema)])
    order = _sorted(both, [SortField(field=leaf.id)], schema)
    passed = np.cumsum(order < cuts.num_rows)
    found = np.zeros(both.num_rows, np.uint64)
    found[order] = passed
    return found[cuts.num_rows :]
