"""Answers EXPLAIN for statements that change tables: what would be read and written. Changes nothing."""

from __future__ import annotations

import pyarrow as pa

from underlay.change.update.result import Changed
from underlay.errors import TableExists
from underlay.local.clauses.definitions import AlterTable, CommentOn, CreateTable, DropTable
from underlay.local.clauses.parse import Statement
from underlay.local.clauses.syntax import Delete, Insert, Truncate, Update, WrittenMerge
from underlay.local.show.change import show_change
from underlay.local.statements.change_rows import change_rows
from underlay.local.statements.columns import find_column
from underlay.local.statements.lake import StatementLake
from underlay.local.statements.queries import StatementQueries
from underlay.local.statements.run_definitions import apply_steps
from underlay.local.statements.run_rows import inserted_rows
from underlay.local.statements.target import find_target, known_as

_NO_FILES = "no data file is read or written"


def explain(statement: Statement, lake: StatementLake, queries: StatementQueries) -> pa.Table:
    """The answer, in the form of DuckDB's EXPLAIN: what would happen to the table, and the query's plan if there is a
    query.

    Raises what the statement would raise.
    """
    match statement:
        case Insert():
            return _insert(statement, lake, queries)
        case Update() | Delete() | WrittenMerge():
            name = find_target(statement.target, lake)
            changed = change_rows(statement, lake, queries, dry_run=True)
            return _dry_run(name, changed.done, changed.answer)
        case Truncate():
            name = find_target(statement.target, lake)
            return _dry_run(name, lake.table(name).delete(dry_run=True))
        case CreateTable():
            return _create(statement, lake, queries)
        case AlterTable():
            return _alter(statement, lake)
        case DropTable():
            if statement.is_optional and known_as(statement.target, lake.names()) is None:
                return _explanation(f"{statement.target.name}: there is no such table, so nothing would be done")
            return _explanation(f"{find_target(statement.target, lake)}: would be dropped; {_NO_FILES}")
        case CommentOn():
            name = find_target(statement.target, lake)
            if statement.column is not None:
                find_column(statement.column, lake.table(name).schema)
            return _explanation(f"{_now(lake, name)}: a comment would be set; {_NO_FILES}")


def _alter(statement: AlterTable, lake: StatementLake) -> pa.Table:
    if statement.is_optional and known_as(statement.target, lake.names()) is None:
        return _explanation(f"{statement.target.name}: there is no such table, so nothing would be done")
    name = find_target(statement.target, lake)
    if statement.new_name is not None:
        return _explanation(f"{_now(lake, name)}: would be called {statement.new_name.name}; {_NO_FILES}")
    table = lake.table(name)
    apply_steps(statement.steps, table, table.evolve().begin())
    words = "; ".join(dict.fromkeys(step.piece.text for step in statement.steps))
    return _explanation(f"{_now(lake, name)}: one commit would {words}; no data file is rewritten")


def _insert(statement: Insert, lake: StatementLake, queries: StatementQueries) -> pa.Table:
    name = find_target(statement.target, lake)
    inserted_rows(statement, name, lake.table(name).schema, queries)
    count = _counted(len(statement.values)) if statement.values else "the rows of the query"
    deed = f"{_now(lake, name)}: {count} would be appended in new files; no file of the table is rewritten"
    return _explanation(deed, None if statement.values else queries.explained(statement.rows))


def _create(statement: CreateTable, lake: StatementLake, queries: StatementQueries) -> pa.Table:
    known = known_as(statement.target, lake.names())
    if known is not None and not statement.is_optional and not statement.is_replacing:
        raise TableExists(f"there is a table {known}").at(statement.target.piece.place)
    if known is not None and statement.is_optional:
        return _explanation(f"{_now(lake, known)}: the table exists, so nothing would be done")
    deed = f"{known or statement.target.name}: would be {'replaced' if known else 'created'}"
    if statement.rows is None:
        return _explanation(f"{deed}; {_NO_FILES}")
    return _explanation(f"{deed}, with the rows of the query", queries.explained(statement.rows))


def _dry_run(name: str, done: Changed, plan: pa.Table | None = None) -> pa.Table:
    return _explanation(show_change(name, done, is_dry_run=True), plan)


def _counted(rows: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def _now(lake: StatementLake, name: str) -> str:
    return f"{name}, version {lake.table(name).version}"


def _explanation(deed: str, plan: pa.Table | None = None) -> pa.Table:
    first = pa.table({"explain_key": ["underlay_change"], "explain_value": [f"{deed}\n"]})
    return first if plan is None else pa.concat_tables([first, plan])
