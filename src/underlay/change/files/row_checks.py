"""Applies a table's checks to rows before they are written: each must be true, or null, for every row.

The text of a check was parsed as a condition of a scan when it was added, and refused where such a condition is. It
means the same here: what our own grammar accepts is applied by our own rules, and the rest by DuckDB, in a separate
database without access to the machine. (Conditions of scans are above this layer, with their planner and their errors.)
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.errors import BadPredicate, InvalidRequest, SchemaMismatch
from underlay.index.root import Definition
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.convert.half_floats import widen_table
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema

if TYPE_CHECKING:
    import duckdb

Failing = Callable[[pa.Table], NDArray[np.bool_]]
"""Which rows contradict a check."""

_ROW = "underlay row\x1f"
"""No column of a table has this name: names hold no control characters."""
_SHOWN_CHARS = 120
_MISREWRITTEN = re.compile("date_?trunc|try_cast", re.IGNORECASE)
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "python_enable_replacements": False,
    "autoload_known_extensions": False,
    "autoinstall_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
}


class RowChecks:
    """The checks of a table with these columns."""

    def __init__(self, checks: Mapping[str, str], schema: TableSchema) -> None:
        self._checks = {name: (text, _failing(text, schema)) for name, text in checks.items()}

    def verify(self, rows: pa.Table, *, first_row: int = 0) -> None:
        """Raises SchemaMismatch for rows that contradict a check, with the first of them, counted from `first_row`."""
        for name, (text, failing) in self._checks.items():
            bad = np.flatnonzero(failing(rows))
            if len(bad):
                others = f", and in {len(bad) - 1} more" if len(bad) > 1 else ""
                raise SchemaMismatch(
                    f"the check {name} fails in row {first_row + int(bad[0])}{others}",
                    expected=text,
                    found=_show(rows.slice(int(bad[0]), 1)),
                    hint="Correct the row, or leave it out.",
                )

    def failures(self, rows: pa.Table) -> dict[int, str]:
        """Rows that contradict a check, by position, and why."""
        found: dict[int, str] = {}
        for name, (text, failing) in self._checks.items():
            for row in np.flatnonzero(failing(rows)).tolist():
                found.setdefault(row, f"check {name}: not ({text})")
        return found


def checks_of(definition: Definition) -> RowChecks | None:
    """The checks of a table; None when it has none."""
    return RowChecks(definition.checks, from_record(definition.schema)) if definition.checks else None


def checked_columns(text: str, schema: TableSchema) -> frozenset[str]:
    """The columns that the text of a check may name; the case of A to Z does not matter, as in DuckDB."""
    from underlay.prune.parse.sql import tokens_of  # loads a parser of SQL, which takes long

    words = {token.text.lower() for token in tokens_of(text)}
    return frozenset(name for name in schema.names if name.lower() in words)


@lru_cache(maxsize=256)
def _failing(text: str, schema: TableSchema) -> Failing:
    from underlay.prune.parse.bind import bind_where  # loads a parser of SQL, which takes long
    from underlay.prune.parse.parameters import NO_PARAMETERS
    from underlay.prune.rows.matches import matches

    negated = f"NOT (\n{text}\n)"
    try:
        predicate = bind_where(negated, to_arrow(schema), NO_PARAMETERS)
    except BadPredicate:
        named = checked_columns(text, schema)
        return lambda rows: _by_duckdb(negated, rows.select([name for name in rows.schema.names if name in named]))
    return lambda rows: np.asarray(matches(predicate, rows).to_numpy(zero_copy_only=False), np.bool_)


def _by_duckdb(negated: str, rows: pa.Table) -> NDArray[np.bool_]:
    import duckdb  # slow to import, and few checks need it

    numbered = widen_table(rows).append_column(_ROW, pa.array(np.arange(rows.num_rows)))
    cursor = _database(os.getpid(), _MISREWRITTEN.search(negated) is None).cursor()
    try:
        cursor.register("underlay rows", numbered)
        query = f'SELECT "{_ROW}" FROM "underlay rows" WHERE (\n{negated}\n)'
        found = cursor.execute(query).to_arrow_table().column(0).to_numpy()
    except duckdb.Error as error:
        raise InvalidRequest(f"a check cannot be applied: {error}", found=negated) from error
    finally:
        cursor.close()
    is_failing = np.zeros(rows.num_rows, np.bool_)
    is_failing[found] = True
    return is_failing


@lru_cache(maxsize=2)
def _database(_: int, is_rewriting: bool) -> duckdb.DuckDBPyConnection:
    """The database of this process: its threads do not survive a fork."""
    import duckdb

    database = duckdb.connect(":memory:", config=_SETTINGS)
    with suppress(duckdb.CatalogException):  # without ICU there is only UTC, and no such setting
        database.execute("SET GLOBAL TimeZone = 'UTC'")
    # Filters pushed into a scan of Arrow rows would follow Arrow's rules for NaN. Simplified, `date_trunc('year', t) =
    # '2024-05-01'` is false where t is null, and `try_cast(n as tinyint) > 5` true where n is no tinyint.
    disabled = "filter_pushdown,join_filter_pushdown" + ("" if is_rewriting else ",expression_rewriter")
    database.execute(f"SET disabled_optimizers = '{disabled}'")
    database.execute("SET enable_external_access = false; SET lock_configuration = true")
    return database


def _show(row: pa.Table) -> str:
    text = str(row.to_pylist()[0])
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
