"""Runs UPDATE, DELETE and MERGE. UPDATE … FROM and DELETE … USING are merges with one clause."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from underlay.change.update.result import Changed
from underlay.errors import InvalidRequest, UnknownColumn
from underlay.local.clauses.places import Located
from underlay.local.clauses.reader import Clause, NamedTable, WrittenName
from underlay.local.clauses.subqueries import first_subquery, refuse_subqueries
from underlay.local.clauses.syntax import Action, Delete, JoinedSource, Match, Update, WrittenMerge, WrittenWhen
from underlay.local.statements.columns import check_count, find_columns, find_paths, path_text
from underlay.local.statements.lake import StatementLake, StatementMerge, StatementTable, Values
from underlay.local.statements.queries import StatementQueries, cast_to
from underlay.local.statements.row_query import RowQuery
from underlay.local.statements.target import find_target
from underlay.prune.predicates.operand import ColumnPath, format_column
from underlay.table.versions.snapshot import Snapshot

_ALL_HINT = "* takes all columns of the source: name those that the table has, or choose them in a subquery."


@dataclass(frozen=True, slots=True)
class RowsChanged:
    """What a statement did to rows, with RETURNING's answer, or the plan of the query that chose the rows."""

    done: Changed
    answer: pa.Table | None = None


def change_rows(
    statement: Update | Delete | WrittenMerge, lake: StatementLake, queries: StatementQueries, *, dry_run: bool = False
) -> RowsChanged:
    """Change rows of a table in one commit, or count what would be changed."""
    if isinstance(statement, Update | Delete) and _needs_query(statement, queries):
        query = RowQuery(statement, lake, queries)
        return RowsChanged(*query.explain() if dry_run else query.run())
    changing = _Changing(statement, lake, queries, dry_run=dry_run)
    match statement:
        case Update():
            return RowsChanged(changing.update(statement))
        case Delete():
            return RowsChanged(changing.delete(statement))
        case WrittenMerge():
            return RowsChanged(changing.merge(statement.source, statement.on, statement.clauses))


def _needs_query(statement: Update | Delete, queries: StatementQueries) -> bool:
    """Whether choosing the rows needs a query, rather than an expression over one row, or over pairs with a source."""
    if statement.returning is not None:
        return True
    if statement.source is not None and statement.source.alias is None:
        return True
    values = [value for _, value in statement.assignments] if isinstance(statement, Update) else []
    return any(first_subquery(piece) is not None for piece in (statement.where, *values) if piece is not None)


class _Changing:
    """One statement and the table that it changes."""

    def __init__(
        self,
        statement: Update | Delete | WrittenMerge,
        lake: StatementLake,
        queries: StatementQueries,
        *,
        dry_run: bool,
    ) -> None:
        self._target: NamedTable = statement.target
        self._alias = statement.alias
        self._queries = queries
        self._token = lake.token
        self._dry_run = dry_run
        self._name = find_target(statement.target, lake)
        self._table: StatementTable = lake.table(self._name)
        self._schema: pa.Schema = self._table.schema
        self._source: NamedTable | None = None

    def update(self, statement: Update) -> Changed:
        """Update the rows for which the condition is true, from a source if there is one."""
        columns = tuple(column for column, _ in statement.assignments)
        values = tuple(value for _, value in statement.assignments)
        if statement.source is not None:
            when = _when(Action.UPDATE, statement.source.piece, columns=columns, values=values)
            return self.merge(statement.source, statement.where, [when])
        paths = find_paths(columns, self._schema, self._alias)
        names = [path_text(path) for path in paths]
        types = self._queries.types(self._schema, self._name, paths)
        texts = {
            name: cast_to(self._text(value, self._of_rows), types[name])
            for name, value in zip(names, values, strict=True)
        }
        where = None if statement.where is None else self._text(statement.where, self._of_rows)
        used = self._queries.values.used(*values, statement.where)
        named: dict[str, Clause | None] = {"where": statement.where}
        for path, value in zip(paths, values, strict=True):
            named |= {path_text(path): value, format_column(path): value}
        with Located(named):
            return self._table.update(texts, where, params=used, token=self._token, dry_run=self._dry_run)

    def delete(self, statement: Delete) -> Changed:
        """Delete the rows for which the condition is true, or that match a row of a source."""
        if statement.source is not None:
            return self.merge(statement.source, statement.where, [_when(Action.DELETE, statement.source.piece)])
        where = statement.where
        if where is None:
            return self._table.delete(token=self._token, dry_run=self._dry_run)
        text = self._text(where, self._of_rows)
        with Located(where):
            used = self._queries.values.used(where)
            return self._table.delete(text, params=used, token=self._token, dry_run=self._dry_run)

    def merge(self, source: JoinedSource, on: Clause | None, clauses: Sequence[WrittenWhen]) -> Changed:
        """Change, delete and insert rows by those of a source."""
        if source.alias is None:
            raise InvalidRequest("a merge has one source", place=source.piece.place, hint="Write (SELECT …) AS s.")
        if source.alias.lower() == self._alias.lower():
            raise InvalidRequest(
                "the table and the source have the same name", place=source.piece.place, found=source.alias,
                hint="Give one of them an alias: AS s.",
            )  # fmt: skip
        self._source = source.table
        targets = [self._targets_of(one) for one in clauses]
        types = self._queries.types(self._schema, self._name, [path for paths in targets for path in paths])
        condition = "true" if on is None else self._text(on, self._of_pairs)
        pieces = [on, *(piece for one in clauses for piece in (one.condition, *one.values))]
        rows = self._rows_of(source)
        merge = self._table.merge(
            rows,
            condition,
            source.alias,
            self._alias,
            params=self._queries.values.used(*pieces),
            token=self._token,
            dry_run=self._dry_run,
        )
        named: dict[str, Clause | None] = {"the condition": on or source.piece, "the source": source.piece}
        for number, (clause, paths) in enumerate(zip(clauses, targets, strict=True), 1):
            names = [path_text(path) for path in paths]
            predicate = None if clause.condition is None else self._text(clause.condition, self._of_pairs)
            values = {
                name: cast_to(self._text(value, self._of_pairs), types[name])
                for name, value in zip(names, clause.values, strict=True)
            }
            place = f"clause {number} ({_add(merge, clause, values, predicate)})"
            named |= {place: clause.piece, f"{place}, predicate": clause.condition}
            named |= {f"{place}, {name}": value for name, value in zip(names, clause.values, strict=True)}
        with Located(named):
            try:
                return merge.execute()
            except UnknownColumn as error:
                error.hint = _ALL_HINT if "except_cols" in (error.hint or "") else error.hint
                raise

    def _rows_of(self, source: JoinedSource) -> object:
        """The rows of a source. Rows that depend on the table are read at the version that is changed."""
        if self._queries.names_table(source.piece.text, self._name):
            return _RowsOfTable(lambda version: self._queries.joined(source, {self._name: version}))
        return self._queries.joined(source)

    def _targets_of(self, clause: WrittenWhen) -> list[ColumnPath]:
        """What a clause sets."""
        if clause.action is Action.UPDATE:
            return find_paths(clause.columns, self._schema, self._alias)
        if clause.action is not Action.INSERT:
            return []
        names = find_columns(clause.columns, self._schema)
        check_count(names, len(clause.values), clause.values[0].place, are_chosen=bool(clause.columns))
        return [(name,) for name in names]

    def _of_rows(self, clause: Clause) -> str:
        return self._queries.values.of_rows(clause, self._target, self._alias)

    def _of_pairs(self, clause: Clause) -> str:
        return self._queries.values.of_pairs(clause, self._target, self._alias, self._source)

    def _text(self, clause: Clause, write: Callable[[Clause], str]) -> str:
        refuse_subqueries(clause, "the clauses of MERGE", "Have it in the source: USING (SELECT …) AS s.")
        if clause.text.upper() == "DEFAULT":
            raise InvalidRequest(
                "DEFAULT is not available here", place=clause.place, hint="Write the value, or leave the column out."
            )
        return write(clause)


@dataclass(frozen=True, slots=True)
class _RowsOfTable:
    """Rows that depend on the table, read at the version that a merge changes."""

    read: Callable[[int], pa.Table]

    def on_version(self, snapshot: Snapshot) -> _RowsOfVersion:
        return _RowsOfVersion(self.read, snapshot.version)


@dataclass(frozen=True, slots=True)
class _RowsOfVersion:
    read: Callable[[int], pa.Table]
    version: int

    def table(self) -> pa.Table:
        return self.read(self.version)


def _when(
    action: Action, piece: Clause, columns: tuple[WrittenName, ...] = (), values: tuple[Clause, ...] = ()
) -> WrittenWhen:
    return WrittenWhen(match=Match.BOTH, condition=None, action=action, columns=columns, values=values, piece=piece)


def _add(merge: StatementMerge, clause: WrittenWhen, values: Values, predicate: str | None) -> str:
    """Add a clause. Returns its name in the merge's errors."""
    match clause.match, clause.action:
        case Match.BOTH, Action.UPDATE:
            merge.when_matched_update(values, predicate)
        case Match.BOTH, Action.UPDATE_ALL:
            merge.when_matched_update_all(predicate)
        case Match.BOTH, _:
            merge.when_matched_delete(predicate)
        case Match.SOURCE_ONLY, Action.INSERT:
            merge.when_not_matched_insert(values, predicate)
        case Match.SOURCE_ONLY, _:
            merge.when_not_matched_insert_all(predicate)
        case _, Action.UPDATE:
            merge.when_not_matched_by_source_update(values, predicate)
        case _:
            merge.when_not_matched_by_source_delete(predicate)
    deed = clause.action.value.rstrip(" *").lower()
    return f"when {clause.match.value.lower()}, {deed}"
