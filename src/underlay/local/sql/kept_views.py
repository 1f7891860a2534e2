"""Keeps the tables of a query as views of an engine, for the next query that names the same ones.

DuckDB takes longer to create a view than to plan a small query. A view reads whatever the running query puts behind it,
so the view outlives the query, but its snapshots do not. An engine has the views of only one query: what others named
cannot be found by name or in a catalog. A statement that recurs over the same views reuses DuckDB's plan: to bind and
optimise it takes longer than to run it on a few rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from underlay.local.dataset.scanner import Columns, TableScanner
from underlay.local.text.time_travel import quoted

_MOST_PLANS = 16
ShownTable = tuple[str, str, ds.Dataset]
"""The schema and name by which a query refers to a table, and its rows."""


class _View(ds.Dataset):
    """What DuckDB scans: the rows of the running query."""

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
    """The views of one engine. `connection` lives as long as they do: it keeps alive what they scan."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._views: dict[tuple[str, str], _View] = {}
        self.names: frozenset[str] = frozenset()
        """`dataset.table` of each view, in lower case."""
        self.are_whole = True
        """False if the views could not be created."""
        self.plans = KeptPlans(connection)
        """Plans of statements over these views."""

    def show(self, tables: Sequence[ShownTable]) -> None:
        """Have views of exactly these tables."""
        if not self._are_of(tables):
            self.are_whole = False
            self.plans.forget()
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
        """Create a view over the dataset itself: it keeps the pushdown of columns and filters, and catalogs show
        nothing else.
        """
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


class KeptPlans:
    """Statements that DuckDB has planned over an engine's views, on one connection for one query at a time.

    DuckDB itself plans statements with clocks again. The only other state that a statement may leave on a connection is
    that of `random`, so a statement that names `setseed` is not kept.
    """

    def __init__(self, database: duckdb.DuckDBPyConnection) -> None:
        self._database = database
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._names: dict[str, str] = {}
        self._made = 0

    def find(self, text: str) -> tuple[duckdb.DuckDBPyConnection, str] | None:
        """A connection, and what to run on it instead of this reading statement, which is planned now if necessary.

        None when it cannot be planned: running the statement itself then reports why.
        """
        if self._connection is None:
            self._connection = self._database.cursor()
        if text not in self._names and not self._plan(self._connection, text):
            return None
        return self._connection, f"EXECUTE {self._names[text]}"

    def has(self, connection: duckdb.DuckDBPyConnection) -> bool:
        """Whether this is the connection on which the statements are planned."""
        return connection is self._connection

    def forget(self) -> None:
        """Close the connection, which ends whatever runs on it."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self._names = None, {}

    def _plan(self, connection: duckdb.DuckDBPyConnection, text: str) -> bool:
        if "setseed" in text.lower():
            return False
        if len(self._names) >= _MOST_PLANS:
            oldest = next(iter(self._names))
            connection.execute(f"DEALLOCATE {self._names.pop(oldest)}")
        name = f"kept_{self._made}"
        try:
            connection.execute(f"PREPARE {name} AS {text}")
        except duckdb.Error:
            return False
        self._made += 1
        self._names[text] = name
        return True
