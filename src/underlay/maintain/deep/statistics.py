"""Checks the statistics in a file's entry against those that the index derives from its footer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from underlay.index.entry import NO_COLUMN, ColumnEntry, FileEntry, FileLayout, Flag
from underlay.index.intake.statistics import LeafArrays, column_arrays
from underlay.index.keys import is_own
from underlay.index.segment.arrays import ChunkStatistics
from underlay.index.segment.bounds import has_flag
from underlay.index.segment.packed import bound_column
from underlay.index.segment.widen import widened
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.stack import stack_of
from underlay.prune.predicates.operand import format_column
from underlay.schema.bound_storage import bound_domain, storage_of
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar

BoolArray = NDArray[np.bool_]
Types = Mapping[int, Scalar]
"""The type that the bounds of each leaf are stored in."""


def stored_statistics(entry: FileEntry, types: Types) -> dict[int, ChunkStatistics]:
    """What an entry says about each of its leaves. Raises Damaged."""
    return {column.field: _unpacked(column, types[column.field], entry) for column in entry.columns}


def _unpacked(column: ColumnEntry, scalar: Scalar, entry: FileEntry) -> ChunkStatistics:
    count = len(entry.block_rows) // 8
    storage = storage_of(scalar)
    return ChunkStatistics(
        type=scalar,
        low=bound_column(column.low, storage, count),
        high=bound_column(column.high, storage, count),
        null_counts=np.frombuffer(column.null_counts, "<i8"),
        flags=np.frombuffer(column.flags, np.uint8),
    )


def footer_problems(
    entry: FileEntry, stored: Mapping[int, ChunkStatistics], footer: Footer, layout: FileLayout, schema: TableSchema
) -> Iterator[str]:
    """Where an entry claims more than the footer gives, or other places than the footer.

    `schema` is the table's schema when the file was added: if a type was widened since, so were its bounds.
    """
    rows = np.frombuffer(entry.block_rows, "<i8")
    if rows.tolist() != footer.row_groups.num_rows.tolist():
        yield "the rows of its blocks are not those of the footer"
        return
    found = {leaf.field: leaf for leaf in column_arrays(stack_of(footer), layout, schema)}
    constants = {constant.field for constant in entry.constants}
    for column in entry.columns:
        if column.column == NO_COLUMN and column.field in constants and column.field not in found:
            continue  # its statistics are compared with its value when rows are read
        leaf, known = found.get(column.field), schema.leaf_by_id.get(column.field)
        if leaf is None or known is None:
            yield f"field {column.field} is not in the file"
            continue
        name = format_column(known.path)
        if _places(column) != _leaf_places(leaf):
            yield f"column {name} is not where the footer says"
        given = widened(leaf.statistics, stored[column.field].type)
        yield from _claims(name, stored[column.field], given, trusts_writer=is_own(entry.location))


def _places(column: ColumnEntry) -> tuple[object, ...]:
    return column.column, column.begins, column.sizes, column.codecs, column.value_counts


def _leaf_places(leaf: LeafArrays) -> tuple[object, ...]:
    places, counts = leaf.places, leaf.places.value_counts
    return (
        leaf.column,
        places.begins.astype("<i8").tobytes(),
        places.sizes.astype("<i8").tobytes(),
        places.codecs.astype(np.uint8).tobytes(),
        b"" if counts is None else counts.astype("<i8").tobytes(),
    )


def _claims(name: str, stored: ChunkStatistics, given: ChunkStatistics, *, trusts_writer: bool) -> Iterator[str]:
    """Claims beyond what the footer gives. Our own writer looked for NaN in the values, so its word on NaN is
    trusted.
    """
    for side, flag, exact in (
        ("lower", Flag.HAS_LOW, Flag.IS_LOW_EXACT),
        ("upper", Flag.HAS_HIGH, Flag.IS_HIGH_EXACT),
    ):
        has, may = has_flag(stored.flags, flag), has_flag(given.flags, flag)
        yield from _in_blocks(
            has & ~(may & _is_within(stored, given, side)), f"the {side} bound of {name} is too narrow"
        )
        is_more_exact = has & has_flag(stored.flags, exact) & ~has_flag(given.flags, exact)
        yield from _in_blocks(is_more_exact, f"the {side} bound of {name} is not known to be exact")
    counts = has_flag(stored.flags, Flag.HAS_NULL_COUNT)
    is_counted = has_flag(given.flags, Flag.HAS_NULL_COUNT) & (stored.null_counts == given.null_counts)
    yield from _in_blocks(counts & ~is_counted, f"the null count of {name} is not that of the footer")
    if not trusts_writer:
        nan = has_flag(given.flags, Flag.MAY_HOLD_NAN) & ~has_flag(stored.flags, Flag.MAY_HOLD_NAN)
        yield from _in_blocks(nan, f"{name} may hold NaN")
    bloom = has_flag(stored.flags, Flag.HAS_BLOOM) & ~has_flag(given.flags, Flag.HAS_BLOOM)
    yield from _in_blocks(bloom, f"{name} has no bloom filter")


def _is_within(stored: ChunkStatistics, given: ChunkStatistics, side: str) -> BoolArray:
    """Where a stored bound is no narrower than the given one."""
    is_low = side == "lower"
    ours, theirs = (stored.low, given.low) if is_low else (stored.high, given.high)
    if ours is None or theirs is None:
        return np.zeros(len(stored.flags), np.bool_)
    domain = bound_domain(stored.type)
    (left, is_left), (right, is_right) = domain.keys(ours), domain.keys(theirs)
    within: BoolArray = np.asarray((left <= right) if is_low else (left >= right), np.bool_) & is_left & is_right
    return within


def _in_blocks(where: BoolArray, problem: str) -> Iterator[str]:
    blocks = np.flatnonzero(where).tolist()
    if blocks:
        more = f" and {len(blocks) - 1} more" if len(blocks) > 1 else ""
        yield f"{problem} (block {blocks[0]}{more})"
