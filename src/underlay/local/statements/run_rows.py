"""Runs INSERT, UPDATE, DELETE, MERGE and TRUNCATE."""

from __future__ import annotations

import pyarrow as pa

from underlay.change.update.result import Changed
from underlay.errors import InvalidRequest
from underlay.local.clauses.parse import RowChange
from underlay.local.clauses.reader import Clause, place_of
from underlay.local.clauses.syntax import Delete, Insert, Truncate
from underlay.local.statements.columns import check_count, columns_by_name, find_columns
from underlay.local.statements.counts import StatementCounts
from underlay.local.statements.lake import ReadRows, StatementLake
from underlay.local.statements.places import Located
from underlay.local.statements.queries import StatementQueries
from underlay.local.statements.target import find_target
from underlay.local.text.words import WordType, words_of


def run_rows(statement: RowChange, lake: StatementLake, queries: StatementQueries) -> StatementCounts:
    """Change rows of a table."""
    match statement:
        case Insert():
            return insert(statement, lake, queries)
        case Delete():
            return StatementCounts.of(delete(statement, lake, queries))
        case Truncate():
            return StatementCounts.of(lake.table(find_target(statement.target, lake)).truncate())


def insert(statement: Insert, lake: StatementLake, queries: StatementQueries) -> StatementCounts:
    """Append the rows. A query that reads the table itself reads the version that they are added to."""
    name = find_target(statement.target, lake)
    is_of_table = not statement.values and queries.names_table(statement.rows, name)
    done = lake.insert(name, inserted_rows(statement, name, lake.table(name).schema, queries), is_of_table=is_of_table)
    return StatementCounts(version=done.version, inserted=done.row_count)


def inserted_rows(statement: Insert, name: str, schema: pa.Schema, queries: StatementQueries) -> ReadRows:
    """The rows for the columns of the table. Raises InvalidRequest and UnknownColumn with the place in the text."""
    rows, values = statement.rows, statement.values
    types = queries.types(schema, name)
    are_chosen = bool(statement.columns)
    if values:
        names = find_columns(statement.columns, schema)
        for row in values:
            check_count(names, len(row), row[0].place, are_chosen=are_chosen)
        return lambda version: queries.rows_of_values(rows, values, names, types)
    columns = queries.columns(rows)
    if statement.is_by_name:
        names = columns_by_name(columns, schema, rows)
    else:
        names = find_columns(statement.columns, schema)
        check_count(names, len(columns), rows.place, are_chosen=are_chosen)
    return lambda version: queries.rows_for(rows, columns, names, types, {name: version})


def delete(statement: Delete, lake: StatementLake, queries: StatementQueries, *, dry_run: bool = False) -> Changed:
    """Delete the rows for which the condition is true."""
    table = lake.table(find_target(statement.target, lake))
    where = statement.where
    if statement.source is not None:
        raise InvalidRequest("USING is not available", place=statement.source.piece.place)
    if where is None:
        return table.delete(dry_run=dry_run)
    refuse_queries(where)
    text = queries.values.of_rows(where, statement.target, statement.alias)
    with Located(where):
        return table.delete(text, params=queries.values.used(where), dry_run=dry_run)


def refuse_queries(clause: Clause) -> None:
    """Raise InvalidRequest for a subquery: conditions and values are of one row."""
    words = (word for word in words_of(clause.text) if word.token_type is WordType.VAR)
    found = next((word for word in words if word.text.upper() in ("SELECT", "TABLE", "VALUES")), None)
    if found is not None:
        raise InvalidRequest(
            "a subquery is not available here",
            place=place_of(clause.statement, clause.begin + found.start),
            found=found.text,
            hint="Join with it: DELETE … USING (SELECT …) AS s, UPDATE … FROM (SELECT …) AS s, or MERGE.",
        )
