"""Which blocks may match a predicate, and which match in full, from their statistics alone.

A block is dropped only when the predicate is proven false or null on all its rows, and matches in full only when it
is proven true on all of them, under every semantics in play: Spark SQL and DuckDB, where NaN equals itself and is
greatest, and Arrow, where it is neither. Unknown keeps a block and never counts it as a full match. Work is per
leaf and literal, never per block.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from underlay.prune.blocks.cause import KEPT, Cause
from underlay.prune.blocks.column_bounds import ColumnBounds
from underlay.prune.blocks.judge import Judge
from underlay.prune.blocks.overlap import Causes, paint
from underlay.prune.blocks.verdict import Verdict
from underlay.prune.predicates.normalise import conjuncts
from underlay.prune.predicates.operand import ColumnPath
from underlay.prune.predicates.predicate import Predicate


def evaluate(
    predicate: Predicate,
    columns: Mapping[ColumnPath, ColumnBounds],
    *,
    block_count: int,
    row_count: ArrayLike | None = None,
) -> Verdict:
    """The verdict on `block_count` blocks. The first part of a conjunction that proves a block empty is named.

    Only the columns that the predicate names are looked up, so `columns` may build its values on demand; those of
    an Opaque part are not. Raises UnknownColumn, and BadPredicate for a literal that the column's type is not
    compared with; ValueError when a column or `row_count` describes a different number of blocks.
    """
    judge, causes = Judge(columns, block_count), _rowless(row_count, block_count)
    parts = np.full(block_count, -1, dtype=np.int32)
    is_kept, findings = causes == KEPT, []
    for index, part in enumerate(conjuncts(predicate)):
        finding = judge.judge(part, is_kept)
        findings.append(finding)
        is_fresh = is_kept & (finding.causes != KEPT)
        np.copyto(causes, finding.causes, where=is_fresh)
        np.putmask(parts, is_fresh, index)
        is_kept = is_kept & (finding.causes == KEPT)
    return Verdict(causes=causes, parts=parts, findings=tuple(findings))


def _rowless(row_count: ArrayLike | None, block_count: int) -> Causes:
    if row_count is None:
        return np.zeros(block_count, dtype=np.uint8)
    rows = np.asarray(row_count)
    if rows.shape != (block_count,):
        raise ValueError(f"row_count has shape {rows.shape} for {block_count} blocks")
    return paint(np.asarray(rows == 0, dtype=np.bool_), Cause.ROWLESS)
