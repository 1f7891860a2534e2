"""A query that has not run yet: some columns and the rows that match, of one version of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from underlay.plan.plan import BlockPlan
from underlay.scan.query import Query, count_matches

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]  # an optional library without types
    import polars


class Scan:
    """Rows of a table. Reading it twice reads twice, and gives the same rows. Speaks the Arrow PyCapsule interface."""

    def __init__(self, query: Query) -> None:
        self._query = query

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer."""
        return self._query.schema

    @property
    def plan(self) -> BlockPlan:
        """Which blocks are read, and why the others are not."""
        return self._query.plan

    def to_arrow(self) -> pa.Table:
        """All rows."""
        return self._query.table()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as they come, in bounded memory."""
        return self._query.batches()

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream."""
        return self._query.reader()

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a pandas frame; pandas must be installed."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """All rows as a Polars frame; Polars must be installed."""
        import polars  # an optional library

        frame = polars.from_arrow(self.to_arrow())
        if not isinstance(frame, polars.DataFrame):
            raise TypeError(f"Polars returned a {type(frame).__name__} of a table")
        return frame

    def count(self) -> int:
        """How many rows match: from metadata where that is exact, else from the predicate's columns alone."""
        return count_matches(self._query)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow C stream."""
        return self.to_reader().__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]  # pyarrow's

    def __repr__(self) -> str:
        snapshot = self._query.snapshot
        where = self._query.predicate if self._query.rest is None else f"{self._query.predicate} AND {self._query.rest}"
        return f"Scan({snapshot.keys.folder}, version {snapshot.version}, where {where})"
