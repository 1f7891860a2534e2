"""SQL over the tables of a lake, on DuckDB in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial

import duckdb
import pyarrow as pa

from underlay.errors import InvalidRequest
from underlay.local.dataset import TableDataset
from underlay.local.engine import Engine, give_back, take_engine
from underlay.local.failure import from_duckdb, no_table
from underlay.local.result import SqlResult
from underlay.local.statement import check_statement, is_pushed_right
from underlay.local.time_travel import Rewritten, Travel, dotted_names, quoted, rewrite_time_travel
from underlay.table.catalog import split_name

Resolve = Callable[[str, int | None, datetime | None], TableDataset | None]
"""A table's snapshot by its name: the newest, or a version, or as of a moment. None when there is no such table."""
Parameters = Sequence[object] | Mapping[str, object]

_PUSHDOWN = "Arrow Scan Pushdown Filter"
"""In what DuckDB says when it cannot hand over a filter that it could apply itself, such as some IS DISTINCT FROM."""
_BATCH_ROWS = 1 << 17
_COUNT = ["select", "count", "(", "*", ")", "from"]
_CATALOGS = ("information_schema", "duckdb_tables", "duckdb_views", "duckdb_columns", "pg_catalog", "duckdb_schemas")


def run_sql(
    text: str,
    resolve: Resolve,
    tables: Callable[[], Iterable[str]],
    parameters: Parameters | None = None,
    *,
    external_access: bool = False,
) -> SqlResult:
    """Run one statement that reads. Each table is one snapshot, however often it is named.

    Raises InvalidRequest with DuckDB's own words, TableNotFound, and whatever reading the tables raises, which may be
    later, while rows are read. `external_access` lets SQL reach files and the network as this process can.
    """
    rewritten = rewrite_time_travel(text)
    values = parameters.values() if isinstance(parameters, Mapping) else parameters or ()

    def run(*, pushdown: bool) -> SqlResult:
        engine = take_engine(external_access=external_access, pushdown=pushdown)
        query = _Query(engine, engine.begin(), rewritten, resolve, tables)
        try:
            return query.run(parameters)
        except duckdb.Error as error:
            translated = query.translate(error)
            query.close()
            raise translated from error
        except BaseException:
            query.close()
            raise

    try:
        return run(pushdown=is_pushed_right(rewritten.tokens, values))
    except InvalidRequest as error:
        if not isinstance(error.__cause__, duckdb.NotSupportedError) or _PUSHDOWN not in error.problem:
            raise
    return run(pushdown=False)


class _Query:
    def __init__(
        self,
        engine: Engine,
        connection: duckdb.DuckDBPyConnection,
        rewritten: Rewritten,
        resolve: Resolve,
        tables: Callable[[], Iterable[str]],
    ) -> None:
        self._engine = engine
        self._connection = connection
        self._text = rewritten.text
        self._travels = rewritten.travels
        self._resolve = resolve
        self._list_tables = tables
        self._tokens = rewritten.tokens
        self._failures: list[Exception] = []

    def run(self, parameters: Parameters | None) -> SqlResult:
        """Begin the query."""
        check_statement(self._text, self._tokens, self._connection, self._engine.refused_functions)
        shown = self._shown_tables()
        if shown is not None:
            self._connection.register("shown tables", shown)
            return self._result('SELECT * FROM "shown tables"', None)
        counted = self._count()
        if counted is not None:
            self._connection.register("count", counted)
            return self._result('SELECT * FROM "count"', None)
        for travel in self._travels:
            self._add_version(travel)
        for name in self._named_tables():
            found = self._resolve(name, None, None)
            if found is not None:
                self._add_view(*split_name(name), found)
        return self._result(self._text, parameters)

    def close(self) -> None:
        """Free the engine."""
        give_back(self._engine, self._connection)

    def translate(self, error: Exception) -> Exception:
        """What a scan raised, or else what DuckDB says."""
        if self._failures:
            return self._failures[0]
        named = [f"{dataset}.{table}" for dataset, table in dotted_names(self._tokens)]
        return from_duckdb(error, self._tables, named)

    @cached_property
    def _tables(self) -> list[str]:
        return sorted(self._list_tables())

    def _result(self, text: str, parameters: Parameters | None) -> SqlResult:
        reader = self._connection.execute(text, parameters).to_arrow_reader(_BATCH_ROWS)
        return SqlResult(
            reader,
            close=partial(give_back, self._engine, self._connection),
            translate=self.translate,
            interrupt=self._connection.interrupt,
        )

    def _named_tables(self) -> list[str]:
        """The tables whose names stand in the text, or all when it asks the catalog. A few may be columns' names."""
        words = {token.text.lower() for token in self._tokens}
        if not words.isdisjoint(_CATALOGS):
            return self._tables
        pairs = {f"{dataset}.{table}".lower() for dataset, table in dotted_names(self._tokens)}
        return [name for name in self._tables if name.lower() in pairs] if pairs else []

    def _add_version(self, travel: Travel) -> None:
        name = f"{travel.dataset}.{travel.table}"
        written = next((one for one in self._tables if one.lower() == name.lower()), None)
        found = None if written is None else self._resolve(written, travel.version, travel.as_of)
        if found is None:
            raise no_table(name, self._tables)
        self._add_view(travel.schema, travel.table, found)

    def _add_view(self, schema: str, table: str, found: TableDataset) -> None:
        """A view over the dataset keeps the pushdown of columns and filters."""
        view = f"{quoted(schema)}.{quoted(table)}"
        scanned = f"scan of {schema}.{table}"
        self._connection.register(scanned, found.watched(self._failures.append))
        self._connection.execute(
            f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}; CREATE VIEW {view} AS SELECT * FROM {quoted(scanned)}"
        )

    def _count(self) -> pa.Table | None:
        """What SELECT count(*) FROM dataset.table answers, from metadata: DuckDB would read a column to count it."""
        words = [token.text for token in self._tokens if token.text != ";"]
        if [word.lower() for word in words[:6]] != _COUNT or len(words) != 9 or words[7] != "." or self._travels:
            return None
        name = next((one for one in self._tables if one.lower() == f"{words[6]}.{words[8]}".lower()), None)
        found = None if name is None else self._resolve(name, None, None)
        if found is None:
            return None
        rows = found.watched(self._failures.append).count_rows()
        return pa.table({"count_star()": pa.array([rows], pa.int64())})

    def _shown_tables(self) -> pa.Table | None:
        """What SHOW TABLES [FROM dataset] answers: names cost nothing, snapshots would."""
        words = [token.text.lower() for token in self._tokens if token.text != ";"]
        if words[:2] == ["show", "all"]:
            words.pop(1)
        if words[:2] != ["show", "tables"] or len(words) not in (2, 4) or words[2:3] not in ([], ["from"]):
            return None
        wanted = words[3] if len(words) == 4 else None
        pairs = [split_name(name) for name in self._tables]
        kept = [pair for pair in pairs if wanted is None or pair[0].lower() == wanted]
        names = [pa.array([pair[at] for pair in kept], pa.string()) for at in (0, 1)]
        return pa.table(names, names=["dataset", "table"])
