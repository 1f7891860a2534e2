"""The tables of a query as views of an engine, kept for the next query that names the same ones.

To make a view takes DuckDB longer than to plan a small query. A view reads whatever the query that runs puts behind it,
so that it outlives the query and its snapshots do not. An engine has the views of one query only: nothing that another
one named is found by name or in a catalog.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from underlay.local.dataset.scanner import Columns, TableScanner
from underlay.local.text.time_travel import quoted

ShownTable = tuple[str, str, ds.Dataset]
"""The schema and the name by which a query names a table, and its rows."""


class _View(ds.Dataset):
    """What DuckDB scans: the rows of the query that runs."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self.rows: ds.Dataset | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._schema

    def scanner(  # type: ignore[override]  # what DuckDB asks for
        self, columns: Columns | None = None, filter: pc.Expression | None = None, **options: object
    ) -> ds.Scanner | TableScanner:
        """A scan of the rows."""
        if self.rows is None:
            raise RuntimeError("a view is scanned while no query runs")
        return self.rows.scanner(columns, filter, **options)  # type: ignore[arg-type]  # as it was asked


class KeptViews:
    """The views of one engine. `connection` lives as long as they do: DuckDB keeps with it what they scan."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._views: dict[tuple[str, str], _View] = {}
        self.names: frozenset[str] = frozenset()
        """`dataset.table` of each in lower case."""
        self.are_whole = True
        """False when they could not be made."""

    def show(self, tables: Sequence[ShownTable]) -> None:
        """Have views of these tables and of no others."""
        if not self._are_of(tables):
            self.are_whole = False
            self._connection.begin()
            self._drop()
            for schema, table, rows in tables:
                self._create(schema, table, rows.schema)
            self._connection.execute("USE memory.main")
            self._connection.commit()
            self.are_whole = True
        for schema, table, rows in tables:
            self._views[schema, table].rows = rows

    def release(self) -> None:
        """Forget the rows."""
        for view in self._views.values():
            view.rows = None

    def _are_of(self, tables: Sequence[ShownTable]) -> bool:
        return len(tables) == len(self._views) and all(
            (view := self._views.get((schema, table))) is not None
            and view.schema.equals(rows.schema, check_metadata=True)
            for schema, table, rows in tables
        )

    def _create(self, schema: str, table: str, columns: pa.Schema) -> None:
        """A view of the dataset itself keeps the pushdown of columns and filters, and is all that catalogs show."""
        view = _View(columns)
        within = f"memory.{quoted(schema)}"
        self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {within}; USE {within}")
        self._connection.from_arrow(view).create_view(table, replace=False)
        self._views[schema, table] = view
        self.names |= {f"{schema}.{table}".lower()}

    def _drop(self) -> None:
        for schema, table in self._views:
            self._connection.execute(f"DROP VIEW memory.{quoted(schema)}.{quoted(table)}")
        for schema in {schema for schema, _ in self._views if schema.lower() != "main"}:
            self._connection.execute(f"DROP SCHEMA memory.{quoted(schema)}")
        self._views, self.names = {}, frozenset()
