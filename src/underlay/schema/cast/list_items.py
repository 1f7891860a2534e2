"""The items of lists and maps as flat arrays, however Arrow lays them out.

Arrow's own kernels for this copy through builders, which UUIDs do not have.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.schema.arrow_aliases import AnyArray
from underlay.schema.cast.plain import takeable

Integers = NDArray[np.int64]


def list_entries(array: AnyArray) -> tuple[AnyArray, Integers]:
    """All items of all rows, and how many each row has; a null row has none. Takes any kind of list."""
    begins, lengths = _spans(array)
    return _gather(array.values, begins, lengths), lengths


def map_entries(array: AnyArray) -> tuple[AnyArray, AnyArray, Integers]:
    """All keys and all values of all rows, and how many each row has; a null row has none."""
    begins, lengths = _spans(array)
    return _gather(array.keys, begins, lengths), _gather(array.items, begins, lengths), lengths


def _spans(array: AnyArray) -> tuple[Integers, Integers]:
    """Where the items of each row begin among the values, and how many there are."""
    if isinstance(array, pa.FixedSizeListArray):
        size = array.type.list_size
        begins = (array.offset + np.arange(len(array), dtype=np.int64)) * size
        lengths = np.full(len(array), size, dtype=np.int64)
    elif isinstance(array, pa.ListViewArray | pa.LargeListViewArray):
        begins, lengths = _integers(array.offsets), _integers(array.sizes)
    else:
        offsets = _integers(array.offsets)
        begins, lengths = offsets[:-1], np.diff(offsets)
    if array.null_count:
        lengths = np.where(array.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    return begins, lengths


def _integers(array: AnyArray) -> Integers:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.int64)


def _gather(values: AnyArray, begins: Integers, lengths: Integers) -> AnyArray:
    is_used = lengths > 0
    begins, lengths = begins[is_used], lengths[is_used]
    if not len(begins):
        return values.slice(0, 0)
    ends = begins + lengths
    if (ends[:-1] == begins[1:]).all():
        return values.slice(int(begins[0]), int(ends[-1] - begins[0]))
    places = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
    return takeable(values).take(pa.array(places))
