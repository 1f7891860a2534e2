"""Finds chunks whose writer's own bounds prove that they hold no NaN.

parquet-java compares floats by `Double.compare`, to which every NaN is greater than any number: where the order is the
type's own, a chunk with a NaN has NaN as its greatest value, wherever the NaN stands. Other writers skip NaN, and so
does parquet-java under the total order of IEEE 754, where it counts them instead.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from underlay.parquet.footer.footer import ColumnOrder, Footer
from underlay.parquet.records.records import Flags
from underlay.values.physical import PhysicalType

_WRITER = re.compile(r"parquet-mr version (\d+)\.(\d+)\.")
_FIRST_COMPARING = (1, 10)
"""Since this release bounds are compared by the type's comparator."""
_FORMATS = {PhysicalType.FLOAT: "<f4", PhysicalType.DOUBLE: "<f8"}


def nan_free_chunks(footer: Footer) -> Flags:
    """For each chunk [row groups, leaves], whether it is of a float column and certainly holds no NaN."""
    found: Flags = np.zeros((footer.row_group_count, len(footer.schema.leaves)), np.bool_)
    orders = footer.column_orders
    if orders is None or not _puts_nan_last(footer.created_by):
        return found
    for leaf in footer.schema.leaves:
        form = _FORMATS.get(leaf.physical_type)
        if form is not None and leaf.index < len(orders) and orders[leaf.index] is ColumnOrder.TYPE_ORDER:
            greatest = _greatest(footer, leaf.index, form)
            found[:, leaf.index] = ~np.isnan(greatest)
    return found


def _puts_nan_last(created_by: str | None) -> bool:
    version = _WRITER.match(created_by or "")
    return version is not None and (int(version[1]), int(version[2])) >= _FIRST_COMPARING


def _greatest(footer: Footer, column: int, form: str) -> NDArray[np.float64]:
    """The greatest value of each chunk of a column; NaN where none is stored."""
    spans = footer.chunks.statistics.max_value
    width = np.dtype(form).itemsize
    values = np.full(footer.row_group_count, np.nan)
    for row, (begin, length) in enumerate(zip(spans.begin[:, column], spans.length[:, column], strict=True)):
        if begin >= 0 and length == width:
            values[row] = np.frombuffer(footer.data, form, 1, int(begin))[0]
    return values
