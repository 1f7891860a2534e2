"""Which blocks may match a conjunction of predicates, from their statistics alone.

A block is dropped only when one predicate is proven false or null on all its rows under every semantics in
play: Spark SQL and DuckDB, where NaN equals itself and is greatest, and Arrow, where it is neither. Work is
per predicate and literal, never per block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray

from underlay.errors import BadPredicate, UnknownColumn
from underlay.prune.bounds import ColumnBounds
from underlay.prune.domain import BoolArray, Domain
from underlay.prune.overlap import miss
from underlay.prune.predicate import (
    And,
    Between,
    ColumnPath,
    Compare,
    In,
    IsNotNull,
    IsNull,
    Op,
    Operand,
    Predicate,
    format_column,
)
from underlay.prune.span import Selection, intersect, unite
from underlay.prune.verdict import KEPT, Cause, Verdict

_LISTED_COLUMNS = 10


def evaluate(
    conjunction: And,
    columns: Mapping[ColumnPath, ColumnBounds],
    *,
    block_count: int,
    row_count: ArrayLike | None = None,
) -> Verdict:
    """The verdict on `block_count` blocks. The first predicate that proves a block empty is the one named.

    Only the columns that the predicates name are looked up, so `columns` may build its values on demand.
    Raises UnknownColumn, and BadPredicate for a literal that the column's type is not compared with;
    ValueError when a column or `row_count` describes another number of blocks.
    """
    bounds = tuple(_find(part.column, columns, block_count) for part in conjunction.parts)
    causes = _rowless(row_count, block_count)
    parts = np.full(block_count, -1, dtype=np.int32)
    for index, (predicate, column) in enumerate(zip(conjunction.parts, bounds, strict=True)):
        alive = np.flatnonzero(causes == KEPT)
        found = _judge(predicate, column, alive)
        fresh = (causes == KEPT) & (found != KEPT)
        causes[fresh] = found[fresh]
        parts[fresh] = index
    return Verdict(causes=causes, parts=parts, predicates=conjunction.parts, bounds=bounds)


def _judge(predicate: Predicate, column: ColumnBounds, alive: NDArray[np.intp]) -> NDArray[np.uint8]:
    """For each block why the predicate holds for no row of it, or 0. Blooms are asked for `alive` only."""
    match predicate:
        case IsNull():
            return _where(column.is_null_free, Cause.NO_NULLS)
        case IsNotNull():
            return _where(column.is_all_null, Cause.ALL_NULL)
    causes = _judge_comparison(predicate, column)
    literals = _equals_any(predicate)
    if column.bloom is not None and not column.is_nested and literals:
        unsure = alive[causes[alive] == KEPT]
        causes[_bloom_misses(column, literals, unsure)] = Cause.BLOOM
    return causes


def _judge_comparison(predicate: Compare | In | Between, column: ColumnBounds) -> NDArray[np.uint8]:
    """A comparison is never true of a null, and never true when it is with NULL."""
    if _compares_with_null_only(predicate):
        return np.full(column.block_count, Cause.NEVER, dtype=np.uint8)
    causes = np.full(column.block_count, KEPT, dtype=np.uint8)
    if column.is_nested:
        return causes
    if column.domain.is_ordered:
        readings = [miss(r, _select(predicate, r.domain), column.may_hold_nan) for r in column.ranges]
        causes = reduce(_agree, readings)
    causes[(causes == KEPT) & column.is_all_null] = Cause.ALL_NULL
    return causes


def _agree(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Dropped where both readings drop: for the cause they share, or the one that says something of the block."""
    cause = np.where(left == right, left, Cause.GAP)
    cause = np.where(left == Cause.NEVER, right, np.where(right == Cause.NEVER, left, cause))
    return np.where((left != KEPT) & (right != KEPT), cause, KEPT).astype(np.uint8)


def _select(predicate: Compare | In | Between, domain: Domain) -> Selection:
    """The keys that can satisfy the predicate. Raises BadPredicate with the column's name as its place."""
    try:
        match predicate:
            case Compare(_, op, value):
                return domain.select(op, value)
            case Between(_, low, high):
                return intersect(domain.select(Op.GE, low), domain.select(Op.LE, high))
            case In(_, values):
                return unite(domain.select(Op.EQ, value) for value in values if value is not None)
    except BadPredicate as error:
        error.at(format_column(predicate.column))
        raise


def _bloom_misses(column: ColumnBounds, literals: Sequence[Operand], blocks: NDArray[np.intp]) -> NDArray[np.intp]:
    """Those of `blocks` whose filters hold none of the literals; none when an encoding is not known."""
    if column.bloom is None:
        return blocks[:0]
    for literal in literals:
        encodings = column.domain.plain_bytes(literal)
        if encodings is None:
            return blocks[:0]
        for encoding in encodings:
            if not len(blocks):
                return blocks
            blocks = blocks[~np.asarray(column.bloom(encoding, blocks), dtype=np.bool_)]
    return blocks


def _equals_any(predicate: Compare | In | Between) -> tuple[Operand, ...]:
    """The literals one of which a matching row must equal; empty when the predicate is no equality."""
    match predicate:
        case Compare(_, Op.EQ, value):
            return (value,) if value is not None else ()
        case In(_, values):
            return tuple(value for value in values if value is not None)
        case _:
            return ()


def _compares_with_null_only(predicate: Compare | In | Between) -> bool:
    match predicate:
        case Compare(_, _, value):
            return value is None
        case Between(_, low, high):
            return low is None or high is None
        case In(_, values):
            return all(value is None for value in values)


def _rowless(row_count: ArrayLike | None, block_count: int) -> NDArray[np.uint8]:
    if row_count is None:
        return np.full(block_count, KEPT, dtype=np.uint8)
    rows = np.asarray(row_count)
    if rows.shape != (block_count,):
        raise ValueError(f"row_count has shape {rows.shape} for {block_count} blocks")
    return _where(np.asarray(rows == 0, dtype=np.bool_), Cause.ROWLESS)


def _where(mask: BoolArray, cause: Cause) -> NDArray[np.uint8]:
    return np.where(mask, cause, KEPT).astype(np.uint8)


def _find(column: ColumnPath, columns: Mapping[ColumnPath, ColumnBounds], block_count: int) -> ColumnBounds:
    found = columns.get(column)
    if found is None:
        raise UnknownColumn(f"there is no column {format_column(column)}", hint=_known_columns(column, columns))
    if found.block_count != block_count:
        raise ValueError(f"{format_column(column)} has {found.block_count} blocks, not {block_count}")
    return found


def _known_columns(column: ColumnPath, columns: Mapping[ColumnPath, ColumnBounds]) -> str:
    folded = tuple(name.casefold() for name in column)
    for known in columns:
        if tuple(name.casefold() for name in known) == folded:
            return f"Names are case-sensitive; did you mean {format_column(known)}?"
    names = [format_column(known) for known in columns]
    more = f" and {len(names) - _LISTED_COLUMNS} more" if len(names) > _LISTED_COLUMNS else ""
    return f"Known columns: {', '.join(names[:_LISTED_COLUMNS])}{more}." if names else "No column has statistics."
