"""Parses a statement that changes tables."""

from __future__ import annotations

import re
from collections.abc import Callable

import duckdb

from underlay.local.clauses.definitions import AlterTable, CommentOn, CreateTable, DropTable
from underlay.local.clauses.read_alter import read_alter
from underlay.local.clauses.read_changes import (
    read_delete,
    read_insert,
    read_merge,
    read_truncate,
    read_update,
    read_with,
)
from underlay.local.clauses.read_definitions import read_comment, read_create, read_drop
from underlay.local.clauses.reader import Clause, StatementReader, WrittenName
from underlay.local.clauses.syntax import Delete, Insert, Truncate, Update, WrittenMerge
from underlay.local.sql.duckdb_errors import from_duckdb
from underlay.local.sql.engine import give_back, take_engine
from underlay.local.text.time_travel import rewrite_time_travel

_INK = re.compile(r"\S")

RowChange = Insert | Update | Delete | WrittenMerge | Truncate
Statement = RowChange | CreateTable | AlterTable | DropTable | CommentOn

_ROW_CHANGES: dict[str, Callable[[StatementReader], RowChange]] = {
    "INSERT": read_insert,
    "UPDATE": read_update,
    "DELETE": read_delete,
    "MERGE": read_merge,
    "TRUNCATE": read_truncate,
}
_DEFINITIONS: dict[str, Callable[[StatementReader], Statement]] = {
    "CREATE": read_create,
    "ALTER": read_alter,
    "DROP": read_drop,
    "COMMENT": read_comment,
}


def parse_statement(text: str) -> tuple[Clause | None, Statement]:
    """The statement's WITH, if it begins with one, and the statement that changes a table.

    Raises InvalidRequest with the position of what it cannot parse. DuckDB's own grammar checks changes of rows, but it
    does not know all of our definitions of tables.
    """
    reader = StatementReader(text)
    queries = read_with(reader)
    first = reader.next_word()
    if queries is not None and first not in _ROW_CHANGES:
        raise reader.refuse("INSERT, UPDATE, DELETE or MERGE")
    reader.take(first)
    if first in _ROW_CHANGES:
        found = _ROW_CHANGES[first](reader)
        _check_grammar(_with_plain_names(text, found))
        return queries, found
    return None, _DEFINITIONS[first](reader)


def _with_plain_names(text: str, statement: RowChange) -> str:
    """The text with plain names for fields of structs that it sets, which DuckDB's grammar lacks; all stays in its
    place."""
    columns: list[WrittenName] = []
    if isinstance(statement, Update):
        columns = [column for column, _ in statement.assignments]
    elif isinstance(statement, WrittenMerge):
        columns = [column for clause in statement.clauses for column in clause.columns]
    for piece in (column.piece for column in columns if column.fields):
        text = f"{text[: piece.begin]}x{_INK.sub(' ', piece.text[1:])}{text[piece.end :]}"
    return text


def _check_grammar(text: str) -> None:
    engine = take_engine(external_access=False, pushdown=True)
    connection = engine.begin()
    try:
        connection.extract_statements(rewrite_time_travel(text).text)
    except duckdb.Error as error:
        raise from_duckdb(error, (), ()) from error
    finally:
        give_back(engine, connection)
