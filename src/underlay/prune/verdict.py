"""What pruning decided: which blocks stay, and for every other one the predicate and fact that dropped it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from underlay.prune.bounds import ColumnBounds
from underlay.prune.domain import BoolArray
from underlay.prune.predicate import Predicate

_SHOWN_PREDICATE_CHARS = 120


class Cause(IntEnum):
    """Why no row of a block can match. 0 in an array of causes means that the block is kept."""

    ROWLESS = 1
    """The block has no rows."""
    NEVER = 2
    """No value of the column's type can match."""
    ALL_NULL = 3
    """Every value is null."""
    NO_NULLS = 4
    """No value is null."""
    NO_NAN = 5
    """Only NaN matches, and the block is known to have none."""
    BELOW = 6
    """The maximum is below every value that matches."""
    ABOVE = 7
    """The minimum is above every value that matches."""
    GAP = 8
    """The block lies between two values that match, or on different sides of them by its two possible signs."""
    BLOOM = 9
    """The Bloom filter holds none of the values."""


KEPT = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One entry per block: `causes` holds a Cause or 0, `parts` the index of the predicate or -1."""

    causes: NDArray[np.uint8]
    parts: NDArray[np.int32]
    predicates: tuple[Predicate, ...]
    bounds: tuple[ColumnBounds, ...]

    @property
    def kept(self) -> BoolArray:
        """Which blocks may hold a matching row."""
        return np.asarray(self.causes == KEPT, dtype=np.bool_)

    def counts(self) -> Mapping[Cause, int]:
        """How many blocks each cause dropped, causes that dropped none left out."""
        causes, counts = np.unique(self.causes[self.causes != KEPT], return_counts=True)
        return {Cause(cause): int(count) for cause, count in zip(causes, counts, strict=True)}

    def reason(self, block: int) -> str:
        """Why the block was dropped, with the numbers that prove it; or that it was kept."""
        if self.causes[block] == KEPT:
            return "kept: nothing proves that no row matches"
        cause, part = Cause(int(self.causes[block])), int(self.parts[block])
        if cause is Cause.ROWLESS:
            return "the block has no rows"
        shown = str(self.predicates[part])
        if len(shown) > _SHOWN_PREDICATE_CHARS:
            shown = f"{shown[:_SHOWN_PREDICATE_CHARS]}…"
        return f"{shown}: {_explain(cause, self.bounds[part], block)}"


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
        case Cause.ROWLESS:
            return "the block has no rows"
