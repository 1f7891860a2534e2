"""SQL over the tables of a lake, on DuckDB in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from underlay.errors import InvalidRequest
from underlay.local.dataset.failures import FilterMisread
from underlay.local.sql.duckdb_errors import from_duckdb
from underlay.local.sql.engine import IS_DUCKDB_1, Engine, give_back, stream_rows, take_engine, take_like, types_of
from underlay.local.sql.result import SqlResult
from underlay.local.sql.tables import SYSTEM, QueriedTable, QueriedTables, Resolve, Views
from underlay.local.text.statement import (
    changing_from,
    check_given,
    check_statement,
    explained_from,
    has_pivot,
    is_pushed_right,
    is_rewritten_right,
    may_imply,
    reads_one_table,
)
from underlay.local.text.time_travel import Rewritten, rewrite_time_travel
from underlay.local.text.words import Word
from underlay.runtime.locks import ProcessLock

if TYPE_CHECKING:
    import pyarrow.dataset as ds  # loads what `select 1` does not need

    from underlay.local.dataset.source import EngineDataset, NamedScan
    from underlay.local.sql.given import GivenTables
    from underlay.local.sql.kept_views import ShownTable
    from underlay.prune import Predicate

Parameters = Sequence[object] | Mapping[str, object]

_PUSHDOWN = ("Arrow Scan Pushdown Filter", "Arrow Filter Pushdown")
"""Parts of DuckDB's message when it cannot push down a filter that it could apply itself, such as some IS DISTINCT
FROM."""
_COUNT = ["select", "count", "(", "*", ")", "from"]


def run_sql(
    text: str,
    resolve: Resolve,
    tables: Callable[[], Iterable[str]],
    parameters: Parameters | None = None,
    *,
    given: Mapping[str, object] | None = None,
    views: Views | None = None,
    external_access: bool = False,
    scans: list[NamedScan] | None = None,
    is_dry: bool = False,
) -> SqlResult:
    """Run one statement that reads. Each table is one snapshot, however often it is named.

    Raises InvalidRequest with DuckDB's own words, TableNotFound, and whatever reading the tables raises, possibly
    later, while rows are read. `given` are tables with one-part names, `views` the system views. With `external_access`
    SQL reaches files and the network. Tables record their scans in `scans`. `is_dry`: they have no rows, no answer.
    """
    check_given(text, parameters)
    rewritten = rewrite_time_travel(text)
    sources = QueriedTables(rewritten, resolve, tables, views)
    others = None
    if given:
        from underlay.local.sql.given import GivenTables  # loads pyarrow.dataset

        others = GivenTables(given)
    values = parameters.values() if isinstance(parameters, Mapping) else parameters or ()
    is_right = is_rewritten_right(rewritten.tokens)
    take = partial(take_engine, external_access=external_access, rewriting=is_right, names=rewritten.folded_pairs)

    def run(*, pushdown: bool, threads: int | None = None) -> SqlResult:
        engine = take(pushdown=pushdown, threads=threads)
        query = _Query(engine, engine.connect(), rewritten, sources, others)
        if scans is not None:
            scans.clear()  # the scans of an engine that gave up
        try:
            return query.run_dry(parameters) if is_dry else query.run(parameters)
        except (duckdb.Error, pa.ArrowException, OSError) as error:  # as SqlResult does: rows may be read here
            translated = query.translate(error)
            query.close()
            raise translated from error
        except BaseException:
            query.close()
            raise

    def run_pushing() -> SqlResult:
        """Run on one thread if scans keep few rows: threads that wait for each other take longer than these rows."""
        if others is None and reads_one_table(rewritten.text):
            from underlay.local.sql.small_scan import TooManyRowsError

            try:
                return run(pushdown=True, threads=1)
            except TooManyRowsError:
                pass
        return run(pushdown=True)

    try:
        is_pushing = (others is None or others.are_pushed_right) and is_pushed_right(rewritten.tokens, values)
        return run_pushing() if is_pushing else run(pushdown=False)
    except FilterMisread:
        pass
    except InvalidRequest as error:
        is_refused = isinstance(error.__cause__, duckdb.NotSupportedError)
        if not is_refused or not any(words in error.problem for words in _PUSHDOWN):
            raise
    return run(pushdown=False)


def is_change(text: str) -> bool:
    """Whether the statement changes tables, or explains one that does. Its words are kept for the run."""
    return isinstance(text, str) and changing_from(rewrite_time_travel(text).tokens) is not None


class _Query:
    def __init__(
        self,
        engine: Engine,
        connection: duckdb.DuckDBPyConnection,
        rewritten: Rewritten,
        sources: QueriedTables,
        given: GivenTables | None,
    ) -> None:
        self._engine = engine
        self._connection = connection
        self._text = rewritten.text
        self._tokens = rewritten.tokens
        self._has_travels = bool(rewritten.travels)
        self._pairs = rewritten.pairs
        self._sources = sources
        self._given = given
        self._failures: list[Exception] = []
        self._is_begun = False
        self._is_too_large = False
        self._is_closed = False
        self._closing = ProcessLock(reentrant=True)  # a result may be garbage-collected at any time

    def run(self, parameters: Parameters | None) -> SqlResult:
        """Begin the query."""
        is_known = self._text in self._engine.checked
        if not is_known:
            check_statement(self._text, self._tokens, self._connection, lambda: self._engine.refused_functions)
            self._engine.remember_checked(self._text)
        shown = self._shown_tables()
        if shown is not None:
            self._connection.register("shown tables", shown)
            return self._result('SELECT * FROM "shown tables"', None)
        named = self._sources.named
        counted = self._count()
        if counted is not None:
            self._connection.register("count", counted)
            return self._result('SELECT * FROM "count"', None)
        if self._engine.is_pushing and not self._sources.are_pushed_right:
            self._stop_pushing()
        if named and self._tokens[0].text.upper() == "EXPLAIN":
            self._connection.register("explained", self._explained(named, parameters))
            return self._result('SELECT * FROM "explained"', None)
        narrowed = self._narrowed(named, self._text, parameters) if named else ()
        shown_tables = ((source.schema, source.table, self._sized(dataset)) for source, dataset in narrowed)
        self._show(shown_tables, self._engine, self._connection)
        described = self._described()
        if described is not None:
            self._connection.register("described", described)
            return self._result('SELECT * FROM "described"', None)
        plan = self._engine.find_plan(self._text) if is_known and self._can_be_planned(parameters) else None
        if plan is None:
            return self._result(self._text, parameters)
        self._connection.close()
        self._connection, execute = plan
        return self._small_result(execute)

    def run_dry(self, parameters: Parameters | None) -> SqlResult:
        """Run the query over tables without rows, to record its scans. The answer has the columns' types only."""
        from underlay.local.sql.explain import NotedTable, NotingDataset, run_without_rows

        check_statement(self._text, self._tokens, self._connection, lambda: self._engine.refused_functions)
        columns: dict[str, str] = {}
        if self._shown_tables() is None and self._count() is None:
            noted = [NotedTable(*pair) for pair in self._narrowed(self._sources.named, self._text, parameters)]
            noting = ((one.source.schema, one.source.table, NotingDataset(one, None)) for one in noted)
            self._show(noting, self._engine, self._connection)
            connection, text, worker = self._connection, self._text, self._engine.worker
            columns = worker.call(lambda: run_without_rows(connection, text, parameters), connection.interrupt)
            for rows, scan in ((one.rows, scan) for one in noted for scan in one.scans):
                rows.scanner(scan.columns, scan.where)
        self.close()
        return SqlResult.of_table(pa.table(dict.fromkeys(columns, pa.nulls(0))), list(columns.values()))

    def close(self) -> None:
        """Free the engine."""
        with self._closing:
            self._is_closed = True
            give_back(self._engine, self._connection)

    def interrupt(self) -> None:
        """Interrupt the query if it still runs: the connection may serve another query afterwards."""
        with self._closing:
            if not self._is_closed:
                self._connection.interrupt()

    def translate(self, error: Exception) -> Exception:
        """The error that a scan raised, or else DuckDB's."""
        self._engine.has_failed = True
        if self._is_too_large:
            from underlay.local.sql.small_scan import TooManyRowsError

            return TooManyRowsError()
        if self._failures:
            return self._failures[0]
        return from_duckdb(error, self._sources.tables, self._pairs)

    def _stop_pushing(self) -> None:
        """Switch to an engine without pushdown, before anything was done on this one."""
        engine = take_like(self._engine, pushdown=False)
        connection = engine.connect()
        with self._closing:
            give_back(self._engine, self._connection)
            self._engine, self._connection = engine, connection

    def _result(self, text: str, parameters: Parameters | None) -> SqlResult:
        connection = self._connection
        reader = self._engine.worker.call(lambda: stream_rows(connection, text, parameters), self.interrupt)
        self._is_begun = True
        self._engine.has_ended = False
        return SqlResult(
            reader,
            worker=self._engine.worker,
            close=self.close,
            translate=self.translate,
            interrupt=self.interrupt,
            on_end=self._end,
            types=types_of(connection),
        )

    def _small_result(self, text: str) -> SqlResult:
        """The rows of a kept plan, one batch as it scans few rows: read at once, in one call of the worker."""
        connection, self._engine.has_ended = self._connection, False

        def read() -> tuple[pa.Table, list[str]]:
            reader = stream_rows(connection, text, None)
            types = types_of(connection)
            return reader.read_all(), types

        rows, types = self._engine.worker.call(read, self.interrupt)
        self._end()
        self.close()
        return SqlResult.of_table(rows, types)

    def _end(self) -> None:
        self._engine.has_ended = True

    def _can_be_planned(self, parameters: Parameters | None) -> bool:
        """Whether DuckDB's plan of the statement may be kept: only if it reads few rows, so that the plan holds no
        more.
        """
        if self._engine.gives_places:  # positions in a kept plan count from PREPARE
            return False
        return IS_DUCKDB_1 and self._engine.threads == 1 and self._given is None and not parameters

    def _show(self, tables: Iterable[ShownTable], engine: Engine, connection: duckdb.DuckDBPyConnection) -> None:
        """Show the engine the lake's tables, and what else the query names.

        Given tables are added in a transaction that is rolled back; so is the type that DuckDB creates for the values
        that a pivot finds. Any other statement changes nothing.
        """
        shown = list(tables)
        for name, view in self._sources.views.items():
            from underlay.local.sql.views import ViewDataset  # loads what `select 1` does not need

            shown.append((SYSTEM, name, ViewDataset(view, lambda: self._sources.tables, self._failures.append)))
        engine.show(shown)
        given = self._given
        if given is not None or has_pivot(self._tokens):
            connection.begin()
        if given is not None:
            self._engine.worker.call(lambda: given.add(connection, self._failures.append), connection.interrupt)

    def _narrowed(
        self, named: Sequence[QueriedTable], text: str, parameters: Parameters | None
    ) -> list[tuple[QueriedTable, EngineDataset]]:
        """The tables, each restricted to the rows that are relevant to the statement, as far as it implies which."""
        implied = self._implied(named, text, parameters)
        narrowed = []
        for source in named:
            dataset = source.dataset.watched(self._failures.append)
            if (source.schema, source.table) in implied:
                dataset.narrow(implied[source.schema, source.table])
            narrowed.append((source, dataset))
        return narrowed

    def _implied(
        self, named: Sequence[QueriedTable], text: str, parameters: Parameters | None
    ) -> Mapping[tuple[str, str], Predicate]:
        """What the statement implies for its tables beyond the filters that DuckDB pushes."""
        if not may_imply(text):
            return {}
        from underlay.local.implied.statement import implied_by_statement  # loads a parser of SQL

        tables = {(source.schema, source.table): source.dataset.schema for source in named}
        connection = self._engine.connect()
        try:
            return implied_by_statement(connection, text, tables, parameters)
        finally:
            connection.close()

    def _explained(self, named: Sequence[QueriedTable], parameters: Parameters | None) -> pa.Table:
        """DuckDB's plan, and what each scan of a table reads."""
        from underlay.local.sql.explain import (  # loads what `select 1` does not need
            NotedTable,
            NotingDataset,
            counted_text,
            run_without_rows,
            scan_texts,
            with_pruning,
        )

        begin = explained_from(self._tokens)
        inner, text = self._tokens[begin:], self._text[self._tokens[begin].start :]
        is_run = any(word.text.upper() == "ANALYZE" for word in self._tokens[:begin])
        noted = [NotedTable(source, dataset) for source, dataset in self._narrowed(named, text, parameters)]
        connection = self._connection
        noting = ((one.source.schema, one.source.table, NotingDataset(one, one.rows)) for one in noted)
        self._show(noting, self._engine, connection)
        worker = self._engine.worker
        plan = worker.call(
            lambda: connection.execute(self._text, parameters).to_arrow_reader().read_all(), connection.interrupt
        )
        counted = None if is_run else self._counted(inner)
        if counted is not None:
            return with_pruning(plan, [counted_text(counted)])
        if not is_run:
            probe = take_like(self._engine, pushdown=self._engine.is_pushing)
            probing = probe.connect()
            try:
                empty = ((one.source.schema, one.source.table, NotingDataset(one, None)) for one in noted)
                self._show(empty, probe, probing)
                worker.call(lambda: run_without_rows(probing, text, parameters), probing.interrupt)
            finally:
                give_back(probe, probing)
        return with_pruning(plan, scan_texts(noted))

    def _sized(self, dataset: EngineDataset) -> ds.Dataset:
        """The dataset; on an engine with one thread, a wrapper that refuses large scans."""
        from underlay.local.sql.small_scan import SmallScan  # loads pyarrow.dataset

        return SmallScan(dataset, self._refuse) if self._engine.threads == 1 else dataset

    def _refuse(self) -> bool:
        """Whether another engine can still start over. Called when a scan is too large for this one."""
        self._is_too_large = not self._is_begun
        return self._is_too_large

    def _count(self) -> pa.Table | None:
        """The answer to SELECT count(*) FROM dataset.table, from metadata: DuckDB would read a column to count it."""
        source = self._counted(self._tokens)
        if source is None:
            return None
        rows = source.dataset.source.scan([]).count_rows()
        return pa.table({"count_star()": pa.array([rows], pa.int64())})

    def _counted(self, tokens: Sequence[Word]) -> QueriedTable | None:
        """The table, if the statement is exactly SELECT count(*) FROM dataset.table."""
        words = [token.text for token in tokens if token.text != ";"]
        if [word.lower() for word in words[:6]] != _COUNT or len(words) != 9 or words[7] != "." or self._has_travels:
            return None
        return self._sources.find_named(words[6], words[8])

    def _described(self) -> pa.Table | None:
        """The answer to DESCRIBE dataset.table: DuckDB does not know keys, defaults, comments and NOT NULL."""
        words = [token.text for token in self._tokens if token.text != ";"]
        is_plain = len(words) == 4 and words[2] == "." and words[0].upper() in ("DESCRIBE", "DESC")
        source = self._sources.find_named(words[1], words[3]) if is_plain else None
        if source is None:
            return None
        from underlay.local.show.describe import with_definition  # loads what `select 1` does not need

        answer = self._connection.execute(self._text).to_arrow_reader().read_all()
        return with_definition(answer, source.dataset.source.snapshot)

    def _shown_tables(self) -> pa.Table | None:
        if self._tokens[0].text.upper() != "SHOW":
            return None
        from underlay.local.show.describe import shown_tables  # loads what `select 1` does not need

        return shown_tables(self._tokens, self._sources.tables)
