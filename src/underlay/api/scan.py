"""A query that has not run yet: some columns and the rows that match, of one version of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from underlay.plan.plan import BlockPlan
from underlay.prune.predicates.predicate import TRUE
from underlay.scan.query import Query, count_matches
from underlay.table.versions.snapshot import Snapshot

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]  # an optional library without types
    import polars


class Scan:
    """Rows of a table. Each read fetches them again, with the same result. Speaks the Arrow PyCapsule interface."""

    def __init__(self, query: Query, name: str, again: Callable[[Snapshot], Query] | None = None) -> None:
        self._query = query
        self._name = name
        self._again = again

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer."""
        return self._query.schema

    @property
    def plan(self) -> BlockPlan:
        """Which blocks are read, and why the others are not."""
        return self._query.plan

    def on_version(self, snapshot: Snapshot) -> Query | None:
        """The same query of another version of the table; None if the scan is pinned to a version."""
        is_same = self._query.snapshot.keys.folder == snapshot.keys.folder
        return self._again(snapshot) if self._again is not None and is_same else None

    def to_arrow(self) -> pa.Table:
        """All rows."""
        return self._query.table()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as they are read, in bounded memory."""
        return self._query.batches()

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream."""
        return self._query.reader()

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a pandas frame; pandas must be installed."""
        from underlay.local.show.frames import as_pandas, check_installed

        check_installed("pandas")
        return as_pandas(self.to_arrow())

    def to_polars(self) -> polars.DataFrame:
        """All rows as a Polars frame; Polars must be installed."""
        from underlay.local.show.frames import as_polars, check_installed

        check_installed("polars")
        return as_polars(self.to_arrow())

    def head(self, rows: int = 10) -> pa.Table:
        """The first rows. Reads only the files that hold them."""
        taken: list[pa.RecordBatch] = []
        left = rows
        for batch in self.to_batches() if left > 0 else ():
            taken.append(batch.slice(0, left))
            left -= taken[-1].num_rows
            if left == 0:
                break
        return pa.Table.from_batches(taken, self.schema)

    def count(self) -> int:
        """How many rows match: from metadata where that is exact, else from the predicate's columns alone."""
        return count_matches(self._query)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow C stream."""
        return self.to_reader().__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]  # pyarrow's

    def __arrow_c_schema__(self) -> object:
        """The columns of the answer."""
        return self.schema.__arrow_c_schema__()

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        """True, also for a scan without rows."""
        return True

    def _repr_html_(self) -> str:
        from underlay.local.show.html import MOST_ROWS, as_html

        return as_html(self.head(MOST_ROWS + 1), caption=repr(self))

    def __repr__(self) -> str:
        query = self._query
        parts = [str(query.predicate)] if query.predicate != TRUE else []
        parts += [str(query.rest)] if query.rest is not None else []
        where = f", where {' AND '.join(parts)}" if parts else ""
        return f"Scan({self._name}, version {query.snapshot.version}{where})"
