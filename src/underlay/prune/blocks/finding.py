"""What was found about one node of a predicate: for each block why no row matches it, or 0.

A finding keeps what it was found from, so that the words for one block, and whether every row matches, are computed
only on demand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from underlay.prune.blocks.cause import KEPT, Cause
from underlay.prune.blocks.column_bounds import ColumnBounds
from underlay.prune.blocks.leaf_selection import LeafSelection
from underlay.prune.blocks.overlap import Causes, miss
from underlay.prune.domains.domain import BoolArray
from underlay.prune.predicates.predicate import TRUE, And, Or, Predicate

_SHOWN_PREDICATE_CHARS = 120
_SHOWN_BRANCHES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A node with its `causes`. A leaf has `bounds` and one choice for each of their readings; AND and OR have
    `branches`; a constant and an opaque part have neither.
    """

    predicate: Predicate
    causes: Causes
    bounds: ColumnBounds | None = None
    choices: tuple[LeafSelection, ...] = ()
    branches: tuple[Finding, ...] = ()

    def must(self) -> BoolArray:
        """For each block whether every row matches, in every engine."""
        if self.bounds is not None:
            return _leaf_must(self.bounds, self.choices)
        parts = [branch.must() for branch in self.branches]
        match self.predicate:
            case And():
                return reduce(np.logical_and, parts)
            case Or():
                return reduce(np.logical_or, parts)
        return np.full(len(self.causes), self.predicate == TRUE, dtype=np.bool_)

    def reason(self, block: int) -> str:
        """The predicate, and the fact with its numbers that rules it out."""
        cause = Cause(int(self.causes[block]))
        if isinstance(self.predicate, Or):
            reasons = [branch.reason(block) for branch in self.branches[:_SHOWN_BRANCHES]]
            more = len(self.branches) - len(reasons)
            return f"no branch can match: {'; '.join(reasons)}{f'; and {more} more' if more else ''}"
        if isinstance(self.predicate, And):
            return next(branch for branch in self.branches if branch.causes[block] != KEPT).reason(block)
        shown = str(self.predicate)
        if len(shown) > _SHOWN_PREDICATE_CHARS:
            shown = f"{shown[:_SHOWN_PREDICATE_CHARS]}…"
        return f"{shown}: {_explain(cause, self.bounds, block)}" if self.bounds else f"{shown}: never true"


def _leaf_must(bounds: ColumnBounds, choices: tuple[LeafSelection, ...]) -> BoolArray:
    """Where no value and no null can be one that does not match. Statistics of something else prove nothing."""
    if bounds.is_nested:
        return np.zeros(bounds.block_count, dtype=np.bool_)
    pairs = zip(bounds.ranges, choices, strict=True)
    found = reduce(np.logical_and, [miss(r, choice.misses, bounds.may_hold_nan) != KEPT for r, choice in pairs])
    found = found & bounds.is_null_free if choices[0].null_misses else found | bounds.is_all_null
    return np.asarray(found, dtype=np.bool_)


def _explain(cause: Cause, bounds: ColumnBounds, block: int) -> str:
    match cause:
        case Cause.NEVER:
            return f"no {bounds.domain.name} can match"
        case Cause.ALL_NULL:
            return f"all {bounds.value_count[block]} values are null"
        case Cause.NO_NULLS:
            return "null count is 0"
        case Cause.NO_NAN:
            return "no value is NaN"
        case Cause.BELOW:
            return f"max is {bounds.show_maximum(block)}"
        case Cause.ABOVE:
            return f"min is {bounds.show_minimum(block)}"
        case Cause.GAP:
            low, high = bounds.show_minimum(block), bounds.show_maximum(block)
            return f"nothing that matches lies between min {low} and max {high}"
        case Cause.BLOOM:
            return "the Bloom filter rules it out"
        case Cause.ROWLESS | Cause.BRANCHES:
            raise ValueError(f"{cause.name} is not a fact about one column")
