"""Finds why no row of a block matches one node of a normalised predicate, for all blocks at once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from underlay.errors import UnknownColumn
from underlay.prune.blocks.cause import KEPT, Cause
from underlay.prune.blocks.column_bounds import ColumnBounds
from underlay.prune.blocks.finding import Finding
from underlay.prune.blocks.leaf_selection import NEVER_TRUE, Leaf, LeafSelection, choose, tested
from underlay.prune.blocks.overlap import Causes, miss, paint
from underlay.prune.domains.domain import BoolArray, Unordered
from underlay.prune.domains.selection import NEVER
from underlay.prune.predicates.operand import ColumnPath, Operand, format_column
from underlay.prune.predicates.predicate import And, Compare, Constant, In, IsNotDistinct, Op, Opaque, Or, Predicate

_LISTED_COLUMNS = 10
_NESTED = Unordered("nested")
"""Compares with anything and proves nothing."""


class Judge:
    """Finds what the statistics of `columns` prove of a predicate over `block_count` blocks."""

    def __init__(self, columns: Mapping[ColumnPath, ColumnBounds], block_count: int) -> None:
        self._columns = columns
        self._block_count = block_count

    def judge(self, predicate: Predicate, is_alive: BoolArray | None) -> Finding:
        """The finding on a node. Bloom filters are asked only for blocks that are alive; None is all of them."""
        match predicate:
            case And(parts):
                return self._judge_all(predicate, parts, is_alive)
            case Or(parts):
                return self._judge_any(predicate, parts, is_alive)
            case Constant(value):
                return Finding(predicate=predicate, causes=self._fill(KEPT if value else Cause.NEVER))
            case Opaque():
                return Finding(predicate=predicate, causes=self._fill(KEPT))
            case _:
                return self._judge_leaf(predicate, is_alive)

    def _judge_all(self, predicate: And, parts: tuple[Predicate, ...], is_alive: BoolArray | None) -> Finding:
        """Dropped by the first part that drops."""
        causes, branches = self._fill(KEPT), []
        for part in parts:
            branches.append(self.judge(part, is_alive))
            is_fresh = (causes == KEPT) & (branches[-1].causes != KEPT)
            np.copyto(causes, branches[-1].causes, where=is_fresh)
            is_alive = (causes == KEPT) if is_alive is None else is_alive & (causes == KEPT)
        return Finding(predicate=predicate, causes=causes, branches=tuple(branches))

    def _judge_any(self, predicate: Or, parts: tuple[Predicate, ...], is_alive: BoolArray | None) -> Finding:
        """Dropped where every part drops. A block that one part keeps is not judged further."""
        is_dropped, branches = np.ones(self._block_count, dtype=np.bool_), []
        for part in parts:
            branches.append(self.judge(part, is_dropped if is_alive is None else is_alive & is_dropped))
            is_dropped = is_dropped & (branches[-1].causes != KEPT)
        return Finding(predicate=predicate, causes=paint(is_dropped, Cause.BRANCHES), branches=tuple(branches))

    def _judge_leaf(self, leaf: Leaf, is_alive: BoolArray | None) -> Finding:
        bounds = self._find(tested(leaf).column)
        domains = [_NESTED] if bounds.is_nested else [ranges.domain for ranges in bounds.ranges]
        choices = tuple(choose(leaf, domain) for domain in domains)
        causes = _leaf_causes(bounds, choices, self._block_count)
        literals = _equals_any(leaf)
        if bounds.bloom is not None and not bounds.is_nested and literals:
            is_unsure = causes == KEPT
            if is_alive is not None:
                is_unsure &= is_alive
            causes[_bloom_misses(bounds, literals, np.flatnonzero(is_unsure))] = Cause.BLOOM
        return Finding(predicate=leaf, causes=causes, bounds=bounds, choices=choices)

    def _fill(self, cause: int) -> Causes:
        return np.full(self._block_count, cause, dtype=np.uint8)

    def _find(self, column: ColumnPath) -> ColumnBounds:
        found = self._columns.get(column)
        if found is None:
            hint = _known_columns(column, self._columns)
            raise UnknownColumn(f"there is no column {format_column(column)}", hint=hint)
        if found.block_count != self._block_count:
            raise ValueError(f"{format_column(column)} has {found.block_count} blocks, not {self._block_count}")
        return found


def _leaf_causes(bounds: ColumnBounds, choices: tuple[LeafSelection, ...], block_count: int) -> Causes:
    """A value must miss `hits`, and where nulls may match there must be none."""
    first = choices[0]
    if first is NEVER_TRUE or bounds.is_nested:
        return np.full(block_count, Cause.NEVER if first is NEVER_TRUE else KEPT, dtype=np.uint8)
    if first.null_hits and first.hits is NEVER:
        return paint(bounds.is_null_free, Cause.NO_NULLS)
    pairs = zip(bounds.ranges, choices, strict=True)
    causes = reduce(_agree, [miss(ranges, choice.hits, bounds.may_hold_nan) for ranges, choice in pairs])
    if first.null_hits:
        causes[~bounds.is_null_free] = KEPT
    elif (is_all_null := bounds.is_all_null).any():
        causes[is_all_null & (causes == KEPT)] = Cause.ALL_NULL
    return causes


def _agree(left: Causes, right: Causes) -> Causes:
    """Dropped where both readings drop: for the cause they share, or the one that says something about the block."""
    cause = np.where(left == right, left, Cause.GAP)
    cause = np.where(left == Cause.NEVER, right, np.where(right == Cause.NEVER, left, cause))
    return np.where((left != KEPT) & (right != KEPT), cause, KEPT).astype(np.uint8)


def _bloom_misses(bounds: ColumnBounds, literals: tuple[Operand, ...], blocks: NDArray[np.intp]) -> NDArray[np.intp]:
    """Those of `blocks` whose filters hold none of the literals; none when an encoding is not known."""
    if bounds.bloom is None:
        return blocks[:0]
    for literal in literals:
        encodings = bounds.domain.plain_bytes(literal)
        if encodings is None:
            return blocks[:0]
        for encoding in encodings:
            if not len(blocks):
                return blocks
            blocks = blocks[~np.asarray(bounds.bloom(encoding, blocks), dtype=np.bool_)]
    return blocks


def _equals_any(leaf: Leaf) -> tuple[Operand, ...]:
    """The literals one of which a matching row must equal; empty when the leaf is not an equality."""
    match leaf:
        case Compare(_, Op.EQ, value) | IsNotDistinct(_, value):
            return (value,) if value is not None else ()
        case In(_, values):
            return tuple(value for value in values if value is not None)
        case _:
            return ()


def _known_columns(column: ColumnPath, columns: Mapping[ColumnPath, ColumnBounds]) -> str:
    folded = tuple(name.casefold() for name in column)
    for known in columns:
        if tuple(name.casefold() for name in known) == folded:
            return f"Names are case-sensitive; did you mean {format_column(known)}?"
    names = [format_column(known) for known in columns]
    more = f" and {len(names) - _LISTED_COLUMNS} more" if len(names) > _LISTED_COLUMNS else ""
    return f"Known columns: {', '.join(names[:_LISTED_COLUMNS])}{more}." if names else "No column has statistics."
