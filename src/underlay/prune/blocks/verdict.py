"""What pruning decided: which blocks stay, which match in full, and for every other one what dropped it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from underlay.prune.blocks.cause import KEPT, Cause
from underlay.prune.blocks.finding import Finding
from underlay.prune.blocks.overlap import Causes
from underlay.prune.domains.domain import BoolArray
from underlay.prune.predicates.predicate import Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One entry per block: `causes` holds a Cause or 0, `parts` the index among `predicates` or -1."""

    causes: Causes
    parts: NDArray[np.int32]
    findings: tuple[Finding, ...]

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """The parts of the conjunction, normalised."""
        return tuple(finding.predicate for finding in self.findings)

    @property
    def kept(self) -> BoolArray:
        """Which blocks may hold a matching row."""
        return np.asarray(self.causes == KEPT, dtype=np.bool_)

    @property
    def must(self) -> BoolArray:
        """Which blocks match in full: they have rows, and each of them matches. Computed at each call."""
        found = self.kept
        for finding in self.findings:
            found &= finding.must()
        return found

    def counts(self) -> Mapping[Cause, int]:
        """How many blocks each cause dropped, causes that dropped none left out."""
        causes, counts = np.unique(self.causes[self.causes != KEPT], return_counts=True)
        return {Cause(cause): int(count) for cause, count in zip(causes, counts, strict=True)}

    def reason(self, block: int) -> str:
        """Why the block was dropped, with the numbers that prove it; or that it was kept."""
        if self.causes[block] == KEPT:
            return "kept: nothing proves that no row matches"
        part = int(self.parts[block])
        return "the block has no rows" if part < 0 else self.findings[part].reason(block)
