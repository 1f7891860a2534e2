"""Runs INSERT, UPDATE, DELETE, MERGE and TRUNCATE."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from underlay.errors import InvalidRequest
from underlay.local.clauses.parse import RowChange
from underlay.local.clauses.places import Located
from underlay.local.clauses.reader import Clause
from underlay.local.clauses.syntax import Insert, Truncate
from underlay.local.statements.change_rows import change_rows
from underlay.local.statements.columns import check_count, columns_by_name, find_columns
from underlay.local.statements.counts import StatementCounts
from underlay.local.statements.lake import ReadRows, StatementLake
from underlay.local.statements.queries import StatementQueries
from underlay.local.statements.target import find_target

_DEFAULT = "DEFAULT"


def run_rows(statement: RowChange, lake: StatementLake, queries: StatementQueries) -> pa.Table:
    """Change rows of a table. Returns a row of counts, or RETURNING's answer."""
    match statement:
        case Insert():
            return insert(statement, lake, queries)
        case Truncate():
            name = find_target(statement.target, lake)
            return StatementCounts.of(lake.table(name).truncate(token=lake.token), lambda: name, lake).to_arrow()
        case _:
            changed = change_rows(statement, lake, queries)
            if changed.answer is not None:
                return changed.answer
            return StatementCounts.of(changed.done, lambda: find_target(statement.target, lake), lake).to_arrow()


def insert(statement: Insert, lake: StatementLake, queries: StatementQueries) -> pa.Table:
    """Append the rows. A query that reads the table itself reads the version that they are added to."""
    name = find_target(statement.target, lake)
    is_of_table = queries.names_table(statement.rows.text, name)
    returning = statement.returning
    answers: list[pa.Table] = []

    def answer(rows: pa.Table) -> None:
        if returning is None:
            return
        with Located(returning):
            answers.append(queries.returned(returning, statement.target, statement.alias, rows))

    rows = inserted_rows(statement, name, lake.table(name).schema, queries)
    done = lake.insert(name, rows, is_of_table=is_of_table, then=None if returning is None else answer)
    return answers[-1] if answers else StatementCounts.of_insert(done, name, lake).to_arrow()


def inserted_rows(statement: Insert, name: str, schema: pa.Schema, queries: StatementQueries) -> ReadRows:
    """The rows for the columns of the table. Raises InvalidRequest and UnknownColumn with the position in the text."""
    rows, values = statement.rows, statement.values
    types = queries.types(schema, name)
    are_chosen = bool(statement.columns)
    if values:
        names = find_columns(statement.columns, schema)
        for row in values:
            check_count(names, len(row), row[0].place, are_chosen=are_chosen)
        given = _given(values)
        chosen = [[row[at] for at in given] for row in values]
        return lambda version: queries.rows_of_values(rows, chosen, [names[at] for at in given], types, {name: version})
    columns = queries.columns(rows)
    if statement.is_by_name:
        names = columns_by_name(columns, schema, rows)
    else:
        names = find_columns(statement.columns, schema)
        check_count(names, len(columns), rows.place, are_chosen=are_chosen)
    return lambda version: queries.rows_for(rows, columns, names, types, {name: version})


def _given(values: Sequence[Sequence[Clause]]) -> list[int]:
    """The columns with values, without those that are DEFAULT in every row. Raises InvalidRequest."""
    by_column = list(zip(*values, strict=True))
    given = [at for at, column in enumerate(by_column) if any(value.text.upper() != _DEFAULT for value in column)]
    for at in given:
        default = next((value for value in by_column[at] if value.text.upper() == _DEFAULT), None)
        if default is not None:
            raise InvalidRequest(
                "DEFAULT stands for a column in all rows or in none",
                place=default.place,
                hint="Insert the other rows with a statement of their own.",
            )
    if not given:
        raise InvalidRequest("a row needs a value", place=values[0][0].place, hint="Write one that is not DEFAULT.")
    return given
