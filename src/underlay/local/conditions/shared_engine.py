"""The DuckDB databases that all conditions of this process share."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from underlay.errors import BadPredicate, InvalidRequest, UnderlayError
from underlay.local.sql.duckdb_errors import from_duckdb
from underlay.local.sql.engine import Engine
from underlay.prune.parse.bind import unknown_column
from underlay.runtime.locks import ProcessLock

USE_SQL = "Use lake.sql for subqueries, aggregates, windows, random values and other tables."
_VOLATILE = "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE stability = 'VOLATILE'"
_RESERVED = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')"
_NO_COLUMN = re.compile(r'Referenced column "(.+?)" (?:was )?not found')
_OF_MANY_ROWS = re.compile("aggregate|window|unnest|subquer", re.IGNORECASE)

_lock = ProcessLock()
_engines: dict[tuple[int, bool, bool], SharedEngine] = {}
"""Engines by process and settings, since the threads of a database do not survive a fork."""


class SharedEngine:
    """A single-threaded database, which keeps the order of rows; scans run many conditions in parallel.

    `volatile` are its functions whose value changes with every call, `reserved` the words that are names only when
    quoted.
    """

    def __init__(self, *, is_pushing: bool, is_rewriting: bool) -> None:
        self._engine = Engine(is_open=False, is_pushing=is_pushing, is_rewriting=is_rewriting, threads=1)
        connection = self.begin()
        self.volatile = frozenset(name for (name,) in connection.execute(_VOLATILE).fetchall())
        self.reserved = frozenset(name for (name,) in connection.execute(_RESERVED).fetchall())
        connection.close()

    @property
    def refused_functions(self) -> Collection[str]:
        """Functions that reach out of the lake."""
        return self._engine.refused_functions

    def begin(self) -> duckdb.DuckDBPyConnection:
        """A connection in a transaction of its own."""
        return self._engine.begin()


def shared_engine(*, is_pushing: bool = True, is_rewriting: bool = True) -> SharedEngine:
    """The database of this process."""
    with _lock:
        key = os.getpid(), is_pushing, is_rewriting
        if key not in _engines:
            for other in [one for one in _engines if one[0] != os.getpid()]:
                del _engines[other]
            _engines[key] = SharedEngine(is_pushing=is_pushing, is_rewriting=is_rewriting)
        return _engines[key]


@contextmanager
def connected(
    schema: pa.Schema | None = None, *, is_pushing: bool = True, is_rewriting: bool = True
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A separate connection, whose errors become ours."""
    engine = shared_engine(is_pushing=is_pushing, is_rewriting=is_rewriting)
    with _lock:  # threads of a scan open theirs from one database
        connection = engine.begin()
    try:
        yield connection
    except duckdb.Error as error:
        raise _translated(error, schema) from error
    finally:
        connection.close()


def _translated(error: duckdb.Error, schema: pa.Schema | None) -> UnderlayError:
    found = from_duckdb(error, (), ())
    if type(found) is not InvalidRequest:
        return found
    missing = _NO_COLUMN.search(found.problem)
    if missing and schema is not None:
        return unknown_column(missing[1], list(schema.names), may_be_text=True)
    problem = found.problem.partition("\n")[0]
    return BadPredicate(problem, hint=USE_SQL if _OF_MANY_ROWS.search(problem) else None)
