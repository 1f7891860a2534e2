"""DuckDB databases in memory, locked down so that SQL cannot reach the machine.

Opening one takes tens of milliseconds, so idle ones are kept. Each query has an engine to itself: a concurrent query
never sees its views or other state. What a query leaves behind is rolled back before the next one; the views of its
tables stay, for a query that names the same tables.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING
from uuid import uuid4

import duckdb

from underlay.local.sql.interruptible import Worker
from underlay.local.text.statement import HARMLESS_FUNCTIONS, WRITING_FUNCTIONS
from underlay.runtime.fork import leave_to_parent, start_afresh_after_fork
from underlay.runtime.locks import cached_property

if TYPE_CHECKING:
    import pyarrow as pa

    from underlay.local.sql.kept_views import (  # loads pyarrow.dataset, which `select 1` does not need
        KeptViews,
        ShownTable,
    )

MAX_IDLE = 4
IS_DUCKDB_1 = duckdb.__version__.startswith("1.")
_BATCH_ROWS = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """Limits for each database of this process; None for DuckDB's own limits.

    `has_places`: errors are JSON, with the byte offset in the text.
    """

    memory_bytes: int | None = None
    spill_folder: str | None = None
    spill_bytes: int | None = None
    threads: int | None = None
    has_places: bool = False


_limits = EngineLimits()
_MOST_CHECKED = 256
_CHECKED_CHARS = 10_000
_TABLE_FUNCTIONS = "select distinct lower(function_name) from duckdb_functions() where function_type = 'table'"


class Engine:
    """A database for one query at a time. With `is_pushing` it pushes filters into scans, with `is_rewriting` it
    simplifies expressions.

    `threads` is how many it uses, None for one on each core. `refused_functions` are table functions that reach out
    of the lake.
    """

    def __init__(
        self, *, is_open: bool, is_pushing: bool, is_rewriting: bool = True, threads: int | None = None
    ) -> None:
        self.is_open = is_open
        self.is_pushing = is_pushing
        self.is_rewriting = is_rewriting
        self.threads = threads
        self.gives_places = _limits.has_places
        """Whether errors give the byte of the text that they are about."""
        self.worker = Worker()
        self.has_failed = False
        self.has_ended = False
        """Whether the rows of its query were read to the end."""
        self.checked: set[str] = set()
        """Statements that were found to be read-only and to reach only the lake. Their text alone decides that."""
        self._views: KeptViews | None = None
        self._database = duckdb.connect(":memory:", config=_settings(is_open=is_open, threads=threads))
        with suppress(duckdb.CatalogException):  # without ICU the only zone is UTC, and this setting does not exist
            self._database.execute("SET GLOBAL TimeZone = 'UTC'")
        # the second one pushes a join's least and greatest keys into the other side's scan
        disabled = [] if is_pushing else ["filter_pushdown", "join_filter_pushdown"]
        disabled += [] if is_rewriting else ["expression_rewriter"]
        if disabled:
            self._database.execute(f"SET disabled_optimizers = '{','.join(disabled)}'")
        start_afresh_after_fork(self)
        if not is_open:
            # must come after the spill folder, which can no longer be set then
            self._database.execute("SET enable_external_access = false; SET lock_configuration = true")

    def start_afresh(self) -> None:
        """Leave the database alone in a forked child: its threads are the parent's, and it would wait for them."""
        leave_to_parent(self._database)
        leave_to_parent(duckdb.default_connection())  # DuckDB creates it on import

    @cached_property
    def refused_functions(self) -> frozenset[str]:
        """Table functions that reach out of the lake. DuckDB takes longer to list them than to answer a question."""
        if self.is_open:
            return frozenset()
        cursor = self._database.cursor()
        named = frozenset(name for (name,) in cursor.execute(_TABLE_FUNCTIONS).fetchall())
        cursor.close()
        return (named - HARMLESS_FUNCTIONS) | WRITING_FUNCTIONS

    @property
    def shown(self) -> frozenset[str]:
        """`dataset.table` of each view, in lower case."""
        return frozenset() if self._views is None else self._views.names

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A connection for one query, or a second one, so that its errors do not end another's transaction."""
        return self._database.cursor()

    def begin(self) -> duckdb.DuckDBPyConnection:
        """A connection in its own transaction."""
        connection = self.connect()
        connection.begin()
        return connection

    def remember_checked(self, text: str) -> None:
        """Remember that the statement may run. Only a few short statements are remembered."""
        if len(text) <= _CHECKED_CHARS:
            if len(self.checked) >= _MOST_CHECKED:
                self.checked.clear()
            self.checked.add(text)

    def show(self, tables: Sequence[ShownTable]) -> None:
        """Have views of exactly these tables, before a transaction begins."""
        if self._views is None:
            if not tables:
                return
            from underlay.local.sql.kept_views import KeptViews

            self._views = KeptViews(self._database)
        self._views.show(tables)

    def find_plan(self, text: str) -> tuple[duckdb.DuckDBPyConnection, str] | None:
        """A connection with a kept plan, and what to run on it instead of a statement over the current views, if there
        is one.
        """
        return None if self._views is None else self._views.plans.find(text)

    def end(self, connection: duckdb.DuckDBPyConnection) -> bool:
        """Undo what was done on the connection. Returns whether the engine may serve another query."""
        try:
            self._close(connection)
            if self.has_failed:
                self.connect().execute("SELECT 1").close()
        except duckdb.Error:
            return False
        self.has_failed = False
        if self._views is None:
            return True
        self._views.release()
        return self._views.are_whole

    def _close(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Close the connection, which rolls back. One with plans is kept if nothing runs on it any longer."""
        if self._views is None or not self._views.plans.has(connection):
            connection.close()
        elif self.has_failed or not self.has_ended:
            self._views.plans.forget()

    def close(self) -> None:
        """Free everything."""
        self.worker.close()
        self._database.close()


def limit_engines(limits: EngineLimits) -> None:
    """Limit the databases that this process opens from now on. A server calls this before its first query."""
    global _limits
    _limits = limits


class _Pool:
    def __init__(self) -> None:
        self.start_afresh()
        start_afresh_after_fork(self)

    def start_afresh(self) -> None:
        self._idle: list[Engine] = []
        self._taken: set[Engine] = set()
        self._lock = RLock()  # a result that is garbage-collected returns its engine, in any thread, at any time

    def take(
        self, *, is_open: bool, is_pushing: bool, is_rewriting: bool, threads: int | None, names: Collection[str]
    ) -> Engine:
        with self._lock:
            wanted = (is_open, is_pushing, is_rewriting, threads)
            alike = [
                one
                for one in reversed(self._idle)
                if (one.is_open, one.is_pushing, one.is_rewriting, one.threads) == wanted
            ]
            if alike:
                # of equal ones, the one used last: it has the plans of the previous query
                found = max(alike, key=lambda one: (bool(one.shown) and one.shown.issubset(names), not one.shown))
                self._idle.remove(found)
                self._taken.add(found)
                return found
        engine = Engine(is_open=is_open, is_pushing=is_pushing, is_rewriting=is_rewriting, threads=threads)
        with self._lock:
            self._taken.add(engine)
        return engine

    def give_back(self, engine: Engine, connection: duckdb.DuckDBPyConnection) -> None:
        with self._lock:
            if engine not in self._taken:  # it belongs to this process's parent, or the process is exiting
                return
        is_clean = engine.end(connection)
        with self._lock:
            self._taken.discard(engine)
            if is_clean and not engine.is_open and len(self._idle) < MAX_IDLE:
                self._idle.append(engine)
                return
        engine.close()

    def close(self) -> None:
        with self._lock:
            engines = [*self._idle, *self._taken]
            self._idle.clear()
            self._taken.clear()
        for engine in engines:
            engine.close()


def _settings(*, is_open: bool, threads: int | None) -> dict[str, str | bool | int | float | list[str]]:
    # each database spills to its own folder, since DuckDB uses the same file names in all
    folder = _limits.spill_folder or tempfile.gettempdir()
    spill = os.path.join(folder, f"underlay-duckdb-{uuid4().hex}")
    settings: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": spill,
        "python_enable_replacements": False,
        "python_scan_all_frames": False,
    }
    chosen = threads if threads is not None else _limits.threads
    if chosen is not None:
        settings["threads"] = chosen
    if _limits.memory_bytes is not None:
        settings["memory_limit"] = f"{_limits.memory_bytes}B"
    if _limits.spill_bytes is not None:
        settings["max_temp_directory_size"] = f"{_limits.spill_bytes}B"
    if _limits.has_places:
        settings["errors_as_json"] = True
    if not is_open:
        settings |= {
            "autoload_known_extensions": False,
            "autoinstall_known_extensions": False,
            "allow_community_extensions": False,
            "allow_persistent_secrets": False,
        }
    return settings


_pool = _Pool()
atexit.register(_pool.close)


def take_engine(
    *,
    external_access: bool,
    pushdown: bool,
    rewriting: bool = True,
    threads: int | None = None,
    names: Collection[str] = (),
) -> Engine:
    """An idle database with this many threads; None for one on each core. Give it back after use.

    One whose views are among `names` is preferred.
    """
    return _pool.take(
        is_open=external_access, is_pushing=pushdown, is_rewriting=rewriting, threads=threads, names=names
    )


def take_like(engine: Engine, *, pushdown: bool) -> Engine:
    """An idle database that reaches as far as this one and simplifies as it does. Give it back after use."""
    return take_engine(external_access=engine.is_open, pushdown=pushdown, rewriting=engine.is_rewriting)


def give_back(engine: Engine, connection: duckdb.DuckDBPyConnection) -> None:
    """Return an engine for another query, after undoing what was done on the connection."""
    _pool.give_back(engine, connection)


def stream_rows(
    connection: duckdb.DuckDBPyConnection, text: str, parameters: Sequence[object] | Mapping[str, object] | None
) -> pa.RecordBatchReader:
    """Stream the rows: with DuckDB 1 from a statement, as its relations hang with parameters and our scans; with DuckDB
    2 from a relation, as its statements materialise all rows first.
    """
    if IS_DUCKDB_1:
        return connection.execute(text, parameters).to_arrow_reader(_BATCH_ROWS)
    try:
        relation = connection.sql(text, params=parameters)
    except duckdb.ProgrammingError:
        connection.execute(text, parameters)  # fails in the same way, and reports the position
        raise
    return relation.to_arrow_reader(_BATCH_ROWS)


def types_of(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """DuckDB's types of the columns of the statement that runs."""
    return [str(kind) for _, kind, *_ in connection.description or ()]
