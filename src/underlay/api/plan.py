"""Plans of queries: what a query would read, and why it skips the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from underlay.hot.read.explain import explain_hot
from underlay.index.keys import plain_location
from underlay.plan import answers, explain
from underlay.plan.assign import assign
from underlay.plan.chunks import all_ranges, block_identities
from underlay.plan.plan import BlockPlan, Totals
from underlay.prune import TRUE
from underlay.scan.query import ExplainedFilter, Query
from underlay.schema.names import find_leaf, parse_path


class Plan:
    """A plan of one version of a table, made from metadata alone. Printing it explains it."""

    def __init__(self, query: Query, *, is_newest: bool = True) -> None:
        self._query = query
        self._is_newest = is_newest
        self.choices: BlockPlan = query.plan

    @property
    def version(self) -> int:
        """The version that was planned."""
        return self._query.snapshot.version

    @property
    def total(self) -> Totals:
        """The whole table: files, blocks, rows, bytes."""
        return self.choices.totals

    @property
    def kept(self) -> Totals:
        """What is left to read."""
        return self.choices.kept

    def explain(self) -> str:
        """Step by step what was dropped and why, and what is read."""
        text = "\n".join(
            [explain.explain(self.choices), *explain_hot(self._query.snapshot, self.choices, is_newest=self._is_newest)]
        )
        rest = self._query.rest
        if rest is None:
            return text
        lines = [text, f"rows are then filtered by: {rest}"]
        if isinstance(rest, ExplainedFilter):
            for part, predicate in rest.explain():
                lines.append(f"  {part}: {'only filters' if predicate == TRUE else f'prunes by {predicate}'}")
        return "\n".join(lines)

    def to_dict(self) -> Mapping[str, object]:
        """The same for programs, as plain values."""
        return explain.to_dict(self.choices)

    def count(self) -> int | None:
        """How many rows match, None when only a scan can tell."""
        return answers.exact_row_count(self.choices) if self._query.rest is None else None

    def minimum(self, column: str) -> Any:  # noqa: ANN401  # a value of the column
        """The least value of a column in matching rows as an Arrow scalar, None when only a scan can tell."""
        leaf = find_leaf(self._query.table_schema, parse_path(column)).id
        return answers.minimum(self.choices, leaf) if self._query.rest is None else None

    def maximum(self, column: str) -> Any:  # noqa: ANN401  # a value of the column
        """The greatest value of a column in matching rows as an Arrow scalar, None when only a scan can tell."""
        leaf = find_leaf(self._query.table_schema, parse_path(column)).id
        return answers.maximum(self.choices, leaf) if self._query.rest is None else None

    def ranges(self) -> dict[str, list[tuple[int, int]]]:
        """The bytes that a scan fetches: for each file, by its location, begins and ends, neighbours joined."""
        return {
            plain_location(file.location): [(one.begin, one.end) for one in ranges]
            for file, ranges in all_ranges(self.choices)
        }

    def assign(self, workers: Mapping[str, float]) -> dict[str, tuple[str, str | None]]:
        """A first and a second choice of worker for each block, by weight. When workers join or leave, as few blocks as
        possible move. A block is identified by its file's content and its first row.
        """
        blocks = block_identities(self.choices)
        return dict(zip(blocks, assign(blocks, workers), strict=True))

    def __str__(self) -> str:
        return self.explain()
