"""Chooses the columns to dictionary-encode, by a sample of the first block.

A useless dictionary costs time: on a column of distinct numbers, filling it costs half as much as the rest of the work.
The number of distinct values is estimated by how many of a sample occur again in it.
"""

from __future__ import annotations

from math import log2
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from underlay.parquet.write.nan_statistics import float_leaves, leaf_paths

LEAST_ROWS = 1 << 16
"""A smaller block is not sampled: all its columns but floats get dictionaries."""
_SAMPLE_ROWS = 8192
_MOST_BYTES = 1 << 20
"""The size at which pyarrow gives up a dictionary."""


def dictionary_leaves(block: pa.Table) -> list[str]:
    """The paths of leaves that get dictionaries. Floats never do; nor do columns where one would save nothing."""
    schema = block.schema
    paths = leaf_paths(schema)
    floats = {paths[index] for index in float_leaves(schema)}
    vain = _vain_columns(block) if block.num_rows >= LEAST_ROWS else frozenset()
    return [path for path in paths if path not in floats and path not in vain]


def _vain_columns(block: pa.Table) -> frozenset[str]:
    """Columns, other than lists, maps and structs, that a dictionary does not make smaller."""
    chosen = np.sort(np.random.default_rng(0).choice(block.num_rows, _SAMPLE_ROWS, replace=False))
    names = [field.name for field in block.schema if not pa.types.is_nested(field.type)]
    sample = block.select(names).take(chosen)
    return frozenset(name for name in names if _is_vain(sample.column(name), block.num_rows))


def _is_vain(sample: pa.ChunkedArray[Any], row_count: int) -> bool:
    values = _stored(sample).drop_null()
    found = len(values)
    if found < _SAMPLE_ROWS // 2:
        return False
    again = found - pc.count_distinct(values).as_py()
    distinct = min(found * found / (2 * again) if again else row_count, row_count)
    width = values.nbytes / found
    dictionary_bytes = distinct * width
    saved_bytes = row_count * (width - log2(max(distinct, 2)) / 8)
    return dictionary_bytes > min(_MOST_BYTES, saved_bytes)


def _stored(values: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """The storage of an extension type, since Arrow cannot count values of the type itself."""
    if not isinstance(values.type, pa.BaseExtensionType):
        return values
    return pa.chunked_array([cast("pa.ExtensionArray[Any]", chunk).storage for chunk in values.chunks])
