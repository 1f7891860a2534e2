"""Runs queries inside statements like any other query, over one snapshot of each table for the whole statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from underlay.local.clauses.places import Located
from underlay.local.clauses.reader import Clause, NamedTable
from underlay.local.clauses.syntax import JoinedSource
from underlay.local.expressions.scope import type_of
from underlay.local.sql.result import SqlResult
from underlay.local.sql.run import run_sql
from underlay.local.sql.tables import Resolve, Views, refuse_alike_names
from underlay.local.statements.columns import path_text
from underlay.local.statements.values import StatementValues
from underlay.local.text.time_travel import dotted_names, quoted
from underlay.local.text.words import words_of
from underlay.prune.predicates.operand import ColumnPath
from underlay.values.no_rows import no_rows

if TYPE_CHECKING:
    from underlay.local.dataset.source import EngineDataset

_ROWS = "underlay rows"
_UUID = "UUID"
Types = Mapping[str, str]
"""DuckDB's type of each column of a table, by `path_text`."""


@dataclass(frozen=True, slots=True)
class NamedRows:
    """Rows that a query uses besides tables, and their name in it."""

    schema: str
    table: str
    dataset: EngineDataset


class StatementQueries:
    """The queries of one statement. `before` is its WITH, and `given` are frames by one-part names."""

    def __init__(
        self,
        values: StatementValues,
        before: Clause | None,
        resolve: Resolve,
        tables: Callable[[], Iterable[str]],
        given: Mapping[str, object] | None,
        views: Views | None,
    ) -> None:
        self._views = views
        self._before = before
        self.values = values
        self._resolve = resolve
        self._list_tables = tables
        self._given = _read(given) if given else None  # once: a statement may query them repeatedly
        self._known: dict[tuple[str, int | str | None, datetime | None], EngineDataset | None] = {}

    def names_table(self, text: str, name: str) -> bool:
        """Whether a text, or WITH, may read the newest version of a table."""
        words = words_of(text) if self._before is None else [*words_of(text), *words_of(self._before.text)]
        return any(f"{one}.{other}".lower() == name.lower() for one, other in dotted_names(words))

    def columns(self, piece: Clause) -> list[tuple[str, str]]:
        """The names and DuckDB types of a query's columns. Raises InvalidRequest with the position in the text."""
        with self._run(self._query(piece, "DESCRIBE "), [piece], None) as result:
            return [(name, kind) for name, kind, *_ in result]

    def explained(self, piece: Clause) -> pa.Table:
        """DuckDB's plan of a query, and what each scan of a table reads."""
        return self._run(self._query(piece, "EXPLAIN "), [piece], None).to_arrow()

    def types(self, schema: pa.Schema, name: str, paths: Iterable[ColumnPath] = ()) -> Types:
        """DuckDB's types of a table's columns, and of the fields of structs at these paths, by `path_text`. Raises
        Unsupported for columns that it cannot tell apart."""
        refuse_alike_names(schema, name)
        fields = {path_text(path): type_of(path, schema) for path in paths if len(path) > 1}
        empty = {_ROWS: no_rows(pa.schema([*schema, *fields.items()]))}
        with run_sql(f"DESCRIBE FROM {quoted(_ROWS)}", self._resolved, self._list_tables, given=empty) as result:
            return {column: kind for column, kind, *_ in result}

    def rows(self, piece: Clause, at: Mapping[str, int] | None = None) -> pa.RecordBatchReader:
        """The rows of a query, streamed. `at` gives versions of tables to read; the others are read as the first
        time.
        """
        return self._run(self._query(piece), [piece], at).to_reader()

    def joined(self, source: JoinedSource, at: Mapping[str, int] | None = None) -> pa.Table:
        """The rows that a statement joins its table with, all at once."""
        if self._before is None:
            text = self.values.query(source.piece, "SELECT * FROM ")
        else:
            text = f"{self._with}SELECT * FROM {self.values.text(source.piece)}"
        return self._run(text, [source.piece], at).to_arrow()

    def chosen(self, text: str, pieces: Sequence[Clause], rows: NamedRows, at: Mapping[str, int]) -> pa.Table:
        """The answer of a query composed of these pieces, with the given rows under their name."""
        return self._run(f"{self._with}{text}", pieces, at, rows).to_arrow()

    def explained_choice(self, text: str, pieces: Sequence[Clause], rows: NamedRows, at: Mapping[str, int]) -> pa.Table:
        """DuckDB's plan of the same query."""
        return self._run(f"EXPLAIN {self._with}{text}", pieces, at, rows).to_arrow()

    def returned(self, returning: Clause, target: NamedTable, alias: str, rows: pa.Table) -> pa.Table:
        """RETURNING's answer for rows."""
        chosen = self.values.of_pairs(returning, target, alias)
        text = f"SELECT {chosen} FROM {quoted(_ROWS)} AS {quoted(alias)}"
        used, given = self.values.used(returning), {_ROWS: rows}
        return run_sql(text, self._resolved, self._list_tables, used, given=given, views=self._views).to_arrow()

    def rows_for(
        self,
        piece: Clause,
        columns: Sequence[tuple[str, str]],
        names: Sequence[str],
        types: Types,
        at: Mapping[str, int] | None,
    ) -> pa.RecordBatchReader:
        """The same for a table's columns: values are cast to their types, as DuckDB does for INSERT."""
        kinds = [types[name] for name in names]
        if all(kind == wanted != _UUID for (_, kind), wanted in zip(columns, kinds, strict=True)):
            return _renamed(self.rows(piece, at), names)
        aliases = [f'"c{number}"' for number in range(len(names))]
        casted = ", ".join(f"{cast_to(alias, kind)} AS {alias}" for alias, kind in zip(aliases, kinds, strict=True))
        query = self.values.text(piece)
        text = f"{self._with}SELECT {casted} FROM (\n{query}\n) AS {quoted(_ROWS)} ({', '.join(aliases)})"
        return _renamed(self._rewritten_rows(text, piece, at), names)

    def rows_of_values(
        self,
        piece: Clause,
        rows: Sequence[Sequence[Clause]],
        names: Sequence[str],
        types: Types,
        at: Mapping[str, int] | None,
    ) -> pa.RecordBatchReader:
        """The rows of VALUES, each value cast to the type of its column, as DuckDB does for INSERT."""
        casted = (
            ", ".join(cast_to(self.values.text(value), types[name]) for value, name in zip(row, names, strict=True))
            for row in rows
        )
        text = f"{self._with}VALUES {', '.join(f'({row})' for row in casted)}"
        return _renamed(self._rewritten_rows(text, piece, at), names)

    def _rewritten_rows(self, text: str, piece: Clause, at: Mapping[str, int] | None) -> pa.RecordBatchReader:
        """Rows of a generated query: errors do not show its text, but give the position of the user's."""
        with Located(piece):
            reader = self._run(text, [piece], at).to_reader()

        def batches() -> Iterator[pa.RecordBatch]:
            with Located(piece):
                yield from reader

        return pa.RecordBatchReader.from_batches(reader.schema, batches())

    @property
    def _with(self) -> str:
        return "" if self._before is None else f"{self.values.text(self._before)} "

    def _query(self, piece: Clause, verb: str = "") -> str:
        """A query for the engine, merged with the statement's WITH, since DuckDB allows no WITH before another."""
        if self._before is None:
            return self.values.query(piece, verb)
        return f"{verb}{self._with}SELECT * FROM (\n{self.values.text(piece)}\n)"

    def _run(
        self, text: str, pieces: Sequence[Clause], at: Mapping[str, int] | None, rows: NamedRows | None = None
    ) -> SqlResult:
        def resolve(name: str, version: int | str | None, as_of: datetime | None) -> EngineDataset | None:
            if rows is not None and name == f"{rows.schema}.{rows.table}":
                return rows.dataset
            pinned = (at or {}).get(name) if version is None and as_of is None else None
            return self._resolved(name, version if pinned is None else pinned, as_of)

        def tables() -> Iterable[str]:
            return (*self._list_tables(), *(() if rows is None else (f"{rows.schema}.{rows.table}",)))

        values = self.values.used(*pieces, self._before)
        return run_sql(text, resolve, tables, values, given=self._given, views=self._views)

    def _resolved(self, name: str, version: int | str | None, as_of: datetime | None) -> EngineDataset | None:
        key = name, version, as_of
        if key not in self._known:
            found = self._resolve(*key)
            self._known[key] = None if found is None else found.uncut()
        return self._known[key]


def cast_to(expression: str, kind: str) -> str:
    """A cast to a type. DuckDB passes UUIDs to Arrow as text, which a table does not accept as a UUID."""
    if kind == _UUID:
        return f"from_hex(replace(CAST(CAST({expression} AS UUID) AS VARCHAR), '-', ''))"
    return f"CAST({expression} AS {kind})"


def _read(given: Mapping[str, object]) -> Mapping[str, object]:
    from underlay.local.sql.given import GivenTables  # loads pyarrow.dataset

    return GivenTables(given).uncut()


def _renamed(reader: pa.RecordBatchReader, names: Sequence[str]) -> pa.RecordBatchReader:
    schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, names, strict=True)])
    return pa.RecordBatchReader.from_batches(schema, (batch.rename_columns(list(names)) for batch in reader))
