"""Runs CREATE TABLE, DROP TABLE and COMMENT ON."""

from __future__ import annotations

from underlay.errors import InvalidRequest, TableExists, TableNotFound
from underlay.local.clauses.definitions import CommentOn, CreateTable, DropTable
from underlay.local.statements.columns import find_column
from underlay.local.statements.counts import StatementCounts
from underlay.local.statements.lake import StatementLake
from underlay.local.statements.queries import StatementQueries
from underlay.local.statements.target import find_target, known_as


def run_definition(
    statement: CreateTable | DropTable | CommentOn, lake: StatementLake, queries: StatementQueries
) -> StatementCounts:
    """Change what tables there are, or what one of them is."""
    match statement:
        case CreateTable():
            return create(statement, lake, queries)
        case DropTable():
            return drop(statement, lake)
        case CommentOn():
            return comment(statement, lake)


def create(statement: CreateTable, lake: StatementLake, queries: StatementQueries) -> StatementCounts:
    """Create the table; the rows of a query are in it when it is there."""
    target = statement.target
    for condition in statement.checks.values():
        raise InvalidRequest("checks are not available", place=condition.place, found=condition.text)
    known = known_as(target, lake.names())
    if known is not None and statement.is_optional:
        return StatementCounts(version=lake.table(known).version)
    replaces = lake.table(known).version if known is not None and statement.is_replacing else None
    rows = None
    if statement.rows is not None:
        queries.columns(statement.rows)
        rows = queries.rows(statement.rows, {} if replaces is None or known is None else {known: replaces})
    try:
        table = lake.create_table(
            known or target.name,
            statement.columns,
            data=rows,
            replaces=replaces,
            key=statement.key,
            sort_by=statement.sort_by,
            partition_by=statement.partition_by,
            comment=statement.comment,
            properties=statement.properties,
        )
    except TableExists as error:
        if statement.is_optional:
            return StatementCounts(version=lake.table(target.name).version)
        raise error.at(target.piece.place) from None
    return StatementCounts(version=table.version, inserted=len(table))


def drop(statement: DropTable, lake: StatementLake) -> StatementCounts:
    """Drop the table."""
    if statement.is_optional and known_as(statement.target, lake.names()) is None:
        return StatementCounts(version=None)
    try:
        lake.drop_table(find_target(statement.target, lake))
    except TableNotFound:  # dropped by another since
        if not statement.is_optional:
            raise
    return StatementCounts(version=None)


def comment(statement: CommentOn, lake: StatementLake) -> StatementCounts:
    """Set or remove a comment."""
    table = lake.table(find_target(statement.target, lake))
    column = None if statement.column is None else find_column(statement.column, table.schema)
    table.comment(statement.text, column)
    return StatementCounts(version=table.version)
