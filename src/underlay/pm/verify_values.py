"""Checks a sidecar's statistics and bloom filters against the decoded values of its Parquet file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from underlay.errors import Inconsistent, UnderlayError
from underlay.parquet.footer.footer import Footer
from underlay.parquet.write.bloom import contains, hash_values
from underlay.pm.format.blocks import inline_bloom
from underlay.pm.format.sidecar import Sidecar
from underlay.pm.format.statistics import is_exact, null_counts
from underlay.pm.prune.bounds import as_bounds, ordered_bounds
from underlay.pm.prune.domains import column_domain
from underlay.pm.read.physical_values import open_physical, read_leaves


def check_values(sidecar: Sidecar, path: Path, footer: Footer) -> Iterator[UnderlayError]:
    """Problems of row counts, null counts, bounds and blooms. Reads the whole file, a row group at a time."""
    with open_physical(sidecar, path) as file:
        for row_group in range(sidecar.row_group_count):
            try:
                found, leaves = read_leaves(file, row_group)
            except UnderlayError as error:
                yield error
                continue
            rows = int(sidecar.num_rows[row_group])
            if found != rows:
                yield Inconsistent(
                    "the wrong number of rows", place=f"row group {row_group}", expected=found, found=rows
                )
            for index, values in enumerate(leaves):
                yield from _check_chunk(sidecar, footer, row_group, index, values)


def _check_chunk(
    sidecar: Sidecar, footer: Footer, row_group: int, index: int, values: pa.Array[Any]
) -> Iterator[UnderlayError]:
    column = sidecar.columns[index]
    place = f"row group {row_group}, column {column.name}"
    chunk = sidecar.column_chunks(index)[row_group : row_group + 1]
    counts, known = null_counts(chunk)
    there = int(chunk["num_values"][0]) - int(counts[0])
    # Writers do not agree on what a null is inside a list, and nothing prunes by it.
    if known[0] and column.max_rep_level == 0 and there != len(values):
        found = int(chunk["num_values"][0]) - len(values)
        yield Inconsistent("null_count is not the number of nulls", place=place, expected=found, found=int(counts[0]))
    bitset = inline_bloom(sidecar, row_group, index)
    if bitset is not None and not _holds_all(bytes(bitset), values):
        yield Inconsistent("the bloom filter misses values that are there", place=place)
    yield from _check_bounds(sidecar, footer, row_group, index, values)


def _holds_all(bitset: bytes, values: pa.Array[Any]) -> bool:
    """Whether the filter holds every value that can be looked up: NaN is not, and either zero will do."""
    if not pa.types.is_primitive(values.type):
        octets: list[Any] = values.to_pylist()
        return bool(contains(bitset, hash_values(octets)).all())
    numbers: npt.NDArray[Any] = values.to_numpy()
    numbers = numbers[numbers == numbers]  # not NaN
    found = contains(bitset, hash_values(numbers))
    found |= contains(bitset, hash_values(np.where(numbers == 0, -numbers, numbers)))
    return bool(found.all())


def _check_bounds(
    sidecar: Sidecar, footer: Footer, row_group: int, index: int, values: pa.Array[Any]
) -> Iterator[UnderlayError]:
    """No value lies outside the bounds; a bound that QuestDB 10 marks as exact occurs."""
    leaf = footer.schema.leaves[index]
    domain = column_domain(sidecar.columns[index], leaf)
    if not domain.is_ordered or not len(values):
        return
    keys, is_key = domain.keys(as_bounds(values, domain))
    keys = keys[is_key]
    is_marked_for_sure = sidecar.sections.seq_txn is not None
    chunk = sidecar.column_chunks(index)[row_group : row_group + 1]
    for side, bound in ordered_bounds(sidecar, index, domain).items():
        key, is_bound = domain.keys(bound.values[row_group : row_group + 1])
        if not (bound.present[row_group] and is_bound[0]):
            continue
        outside = keys < key if side == "min" else keys > key
        shown = domain.show(key[0])
        place = f"row group {row_group}, column {sidecar.columns[index].name}"
        if outside.any():
            worst = domain.show(keys[outside][0])
            yield Inconsistent(f"a value lies outside the {side}", place=place, expected=worst, found=shown)
        elif is_marked_for_sure and is_exact(chunk, side)[0] and not (keys == key).any():
            yield Inconsistent(f"the {side} is marked as exact but does not occur", place=place, found=shown)
