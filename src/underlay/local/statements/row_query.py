"""Runs UPDATE and DELETE with subqueries, several sources or RETURNING: a DuckDB query chooses the rows and their
values.

The query reads the version that is changed, whose rows are numbered, and one version of every other table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from underlay.change.update.chosen import ChosenRows, ChosenValues
from underlay.change.update.edit import FileAccess
from underlay.change.update.result import Changed
from underlay.errors import InvalidRequest
from underlay.index.operation import Operation
from underlay.local.clauses.places import Located
from underlay.local.clauses.reader import Clause
from underlay.local.clauses.syntax import Delete, Update
from underlay.local.dataset.numbered import ROW_NUMBER, NumberedDataset, Numbers, RowNumbers
from underlay.local.dataset.source import SnapshotSource
from underlay.local.expressions.assign import with_field
from underlay.local.expressions.row_names import key_columns, name_row
from underlay.local.statements.columns import find_paths, path_text
from underlay.local.statements.lake import StatementLake
from underlay.local.statements.queries import NamedRows, StatementQueries, cast_to
from underlay.local.statements.target import find_target
from underlay.local.text.target_names import reads_table
from underlay.local.text.time_travel import quoted
from underlay.local.text.words import words_of
from underlay.schema.cast.conform import conform
from underlay.table.versions.snapshot import Snapshot
from underlay.values.no_rows import no_rows

_CHANGED = "underlay-changed"
"""The schema under which queries see the changed table's rows with their numbers, so that they refer to no other
table."""
_DOUBLED_HINT = "Leave one row for each in the source, or add a condition that holds for one of them."


@dataclass(slots=True)
class _Attempt:
    """One version, the numbers of its rows, and the result."""

    snapshot: Snapshot
    numbers: RowNumbers
    rows: NumberedDataset
    kept: list[pa.Table] = field(default_factory=list)
    answer: pa.Table | None = None


class RowQuery:
    """One statement whose rows a query chooses."""

    def __init__(self, statement: Update | Delete, lake: StatementLake, queries: StatementQueries) -> None:
        self._statement = statement
        self._lake = lake
        self._queries = queries
        self._name = find_target(statement.target, lake)
        self._alias = statement.alias
        self._has_alias = statement.alias.lower() != statement.target.table.lower()
        self._table = f"{quoted(_CHANGED)}.{quoted(statement.target.table)}"
        self._own = quoted(statement.alias) if self._has_alias else self._table
        """The qualifier of the table's columns in the query."""
        self._is_joined = self._check_sources()
        self._returning = statement.returning
        schema = lake.table(self._name).schema
        assignments = statement.assignments if isinstance(statement, Update) else ()
        self._values = [value for _, value in assignments]
        self._paths = find_paths([column for column, _ in assignments], schema, statement.alias)
        for value in self._values:
            if value.text.upper() == "DEFAULT":
                raise InvalidRequest(
                    "DEFAULT is not available here", place=value.place, hint="Write the value, or leave the column out."
                )
        others = (None if statement.source is None else statement.source.whole, statement.where)
        self._pieces = [*self._values, *(one for one in others if one is not None)]
        self._types = queries.types(schema, self._name, self._paths)
        self._last: _Attempt | None = None

    def run(self) -> tuple[Changed, pa.Table | None]:
        """Change the rows in one commit. Returns what was done, and RETURNING's answer."""
        done = self._change(dry_run=False)
        return done, None if self._last is None else self._last.answer

    def explain(self) -> tuple[Changed, pa.Table | None]:
        """What would be done, and DuckDB's plan of the query."""
        done = self._change(dry_run=True)
        if self._last is None:
            return done, None
        snapshot = self._last.snapshot
        text, pieces, at = self._text(snapshot), self._pieces, {self._name: snapshot.version}
        return done, self._queries.explained_choice(text, pieces, self._named(self._last), at)

    def _check_sources(self) -> bool:
        """Whether the table itself is among the sources under its own name. Raises InvalidRequest if that is
        ambiguous.
        """
        target, source = self._statement.target, self._statement.source
        if source is None or not reads_table(words_of(source.whole.text), target.dataset, target.table):
            return False
        if not self._has_alias:
            raise InvalidRequest(
                "the table and a source have the same name",
                place=source.piece.place,
                found=target.name,
                hint="Give one of them an alias: AS s.",
            )
        return True

    def _change(self, *, dry_run: bool) -> Changed:
        operation = Operation.UPDATE if isinstance(self._statement, Update) else Operation.DELETE
        source = self._statement.source
        named = {f"part {at}": piece for at, piece in enumerate((*self._pieces, self._returning))}
        named["the source"] = None if source is None else source.piece
        with Located(named):
            return self._lake.change_chosen(
                self._name, self._choose, operation, then=self._finish if self._returning else None, dry_run=dry_run
            )

    def _text(self, snapshot: Snapshot) -> str:
        """The query: row numbers, keys or all columns where needed, and new values."""
        own = self._own
        chosen = [f"{own}.{quoted(ROW_NUMBER)}", *(f"{own}.{quoted(name)}" for name in self._shown(snapshot))]
        for at, (path, value) in enumerate(zip(self._paths, self._values, strict=True)):
            kind = self._types[path_text(path)]
            chosen.append(f"{cast_to(_enclosed(self._written(value)), kind)} AS {quoted(f'v{at}')}")
        source, where = self._statement.source, self._statement.where
        rows = f"{self._table} AS {own}" if self._has_alias else self._table
        sources = "" if source is None else f", {self._written(source.whole)}"
        condition = "" if where is None else f"\nWHERE {_enclosed(self._written(where))}"
        return f"SELECT {', '.join(chosen)} FROM {rows}{sources}{condition}"

    def _shown(self, snapshot: Snapshot) -> tuple[str, ...]:
        """The columns that are read with the chosen rows: all for RETURNING, else those that errors show."""
        if self._returning is not None and isinstance(self._statement, Delete):
            return tuple(snapshot.schema.names)
        return key_columns(snapshot) if isinstance(self._statement, Update) else ()

    def _choose(self, snapshot: Snapshot, files: FileAccess) -> tuple[ChosenRows, ChosenValues | None]:
        numbers = RowNumbers()
        source = SnapshotSource(snapshot=snapshot, stores=files.stores, cache=files.cache, name=self._name)
        attempt = self._last = _Attempt(snapshot, numbers, NumberedDataset(source, numbers))
        text, at = self._text(snapshot), {self._name: snapshot.version}
        found = self._queries.chosen(text, self._pieces, self._named(attempt), at)
        rows = np.asarray(found.column(0), np.int64)
        is_update = isinstance(self._statement, Update)
        if is_update:
            self._check_once(rows, found.drop_columns([ROW_NUMBER]), key_columns(snapshot))
        else:
            rows, firsts = np.unique(rows, return_index=True)
            if self._returning is not None:
                attempt.kept.append(found.drop_columns([ROW_NUMBER]).take(firsts))
        chosen = ChosenRows(
            places=numbers.places(rows),
            predicate=numbers.predicate,
            reads_table=self._queries.names_table(text, self._name),
            block_count=numbers.block_count,
            fetch_bytes=numbers.fetch_bytes,
        )
        return chosen, self._new_values(attempt, found) if is_update else None

    def _new_values(self, attempt: _Attempt, found: pa.Table) -> ChosenValues:
        schema = attempt.snapshot.schema
        shown = key_columns(attempt.snapshot)
        stay = tuple(name for name in schema.names if (name,) not in self._paths)

        def make(rows: pa.Table, numbers: Numbers) -> pa.Table:
            columns = dict(zip(rows.schema.names, rows.columns, strict=True))
            for at, path in enumerate(self._paths):
                values = found.column(f"v{at}").take(numbers)
                columns[path[0]] = with_field(columns.get(path[0]), path[1:], values)
            made = conform(pa.table(columns), schema, row_name=name_row(rows, shown))
            if self._returning is not None:
                attempt.kept.append(made)
            return made

        read = {*stay, *shown} or {schema.names[0]}
        return ChosenValues(columns=tuple(name for name in schema.names if name in read), make=make)

    def _check_once(self, rows: Numbers, shown: pa.Table, key: Sequence[str]) -> None:
        """Raise InvalidRequest when a row is chosen twice: its new values would be arbitrary."""
        _, firsts, counts = np.unique(rows, return_index=True, return_counts=True)
        if (counts < 2).all():
            return
        row = int(firsts[np.flatnonzero(counts > 1)[0]])
        name = name_row(shown, key)(row) if key else "a row"
        source = self._statement.source
        raise InvalidRequest(
            f"{name} matches more than one row of the source",
            place=None if source is None else "the source",
            hint=_DOUBLED_HINT,
        )

    def _finish(self) -> None:
        """Compute RETURNING before the commit, so that an error in it changes nothing."""
        attempt, returning = self._last, self._returning
        if attempt is None or returning is None:
            return
        schema = self._lake.table(self._name).schema
        rows = pa.concat_tables(attempt.kept) if attempt.kept else no_rows(schema)
        attempt.answer = self._queries.returned(returning, self._statement.target, self._alias, rows)

    def _written(self, piece: Clause) -> str:
        values, target = self._queries.values, self._statement.target
        if self._is_joined:
            return values.text(piece)
        return values.of_query(piece, target, self._own, has_alias=self._has_alias)

    def _named(self, attempt: _Attempt) -> NamedRows:
        return NamedRows(_CHANGED, self._statement.target.table, attempt.rows)


def _enclosed(text: str) -> str:
    """An expression in parentheses, whose last line may be a comment."""
    return f"(\n{text}\n)"
