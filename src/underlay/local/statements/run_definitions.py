"""Runs CREATE TABLE, DROP TABLE and COMMENT ON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from underlay.change.define.evolution import Evolution
from underlay.errors import TableExists, TableNotFound
from underlay.local.clauses.definitions import AlterStep, AlterTable, CommentOn, CreateTable, DropTable
from underlay.local.clauses.places import Located
from underlay.local.statements.columns import find_column
from underlay.local.statements.counts import StatementCounts
from underlay.local.statements.lake import StatementLake, StatementTable
from underlay.local.statements.queries import StatementQueries
from underlay.local.statements.target import find_target, known_as


def run_definition(
    statement: CreateTable | AlterTable | DropTable | CommentOn, lake: StatementLake, queries: StatementQueries
) -> StatementCounts:
    """Create, alter, rename, drop or comment on a table."""
    match statement:
        case CreateTable():
            return create(statement, lake, queries)
        case AlterTable():
            return alter(statement, lake)
        case DropTable():
            return drop(statement, lake)
        case CommentOn():
            return comment(statement, lake)


def create(statement: CreateTable, lake: StatementLake, queries: StatementQueries) -> StatementCounts:
    """Create the table. With a query, the table exists only once the rows are in it."""
    target = statement.target
    known = known_as(target, lake.names())
    if known is not None and statement.is_optional:
        return StatementCounts(version=lake.table(known).version)
    replaces = lake.table(known).version if known is not None and statement.is_replacing else None
    rows = None
    counted = [0]
    if statement.rows is not None:
        queries.columns(statement.rows)
        read = queries.rows(statement.rows, {} if replaces is None or known is None else {known: replaces})
        rows = pa.RecordBatchReader.from_batches(read.schema, _counting(read, counted))
    places = {**statement.checks, **{f"layout {at}": piece for at, piece in enumerate(statement.layout)}}
    try:
        with Located(places):
            lake.create_table(
                known or target.name,
                statement.columns,
                data=rows,
                replaces=replaces,
                key=statement.key,
                sort_by=statement.sort_by,
                partition_by=statement.partition_by,
                comment=statement.comment,
                properties=statement.properties,
                checks={name: queries.values.text(condition) for name, condition in statement.checks.items()},
            )
    except TableExists as error:
        if statement.is_optional:
            return StatementCounts(version=lake.table(target.name).version)
        raise error.at(target.piece.place) from None
    # The table exists, so that nothing may fail: its rows are its second version.
    return StatementCounts(version=1 if counted[0] else 0, inserted=counted[0])


def _counting(batches: Iterable[pa.RecordBatch], counted: list[int]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        counted[0] += batch.num_rows
        yield batch


def alter(statement: AlterTable, lake: StatementLake) -> StatementCounts:
    """Change the table's definition in one commit, or rename it."""
    if statement.is_optional and known_as(statement.target, lake.names()) is None:
        return StatementCounts(version=None)
    name = find_target(statement.target, lake)
    if statement.new_name is not None:
        version = lake.table(name).version  # before the rename: once it is done, nothing may fail
        with Located(statement.new_name.piece):
            lake.rename_table(name, statement.new_name.name)
        return StatementCounts(version=version)
    table = lake.table(name)
    change = table.evolve().begin()
    apply_steps(statement.steps, table, change)
    with Located({str(at): step.piece for at, step in enumerate(statement.steps)}), change:
        pass  # committed at the end of the block, where rows are checked too
    return StatementCounts(version=table.version if change.result is None else change.result.version)


def apply_steps(steps: Sequence[AlterStep], table: StatementTable, change: Evolution) -> None:
    """Make each change whose condition holds. Raises InvalidRequest with the position of a change that fails."""
    definition = table.definition
    known = {name.lower() for name in table.schema.names} | {f"check {name}" for name in definition.checks}
    for step in steps:
        if step.condition is None or (step.condition[0].lower() in known) == step.condition[1]:
            with Located(step.piece):
                step.apply(change)


def drop(statement: DropTable, lake: StatementLake) -> StatementCounts:
    """Drop the table."""
    if statement.is_optional and known_as(statement.target, lake.names()) is None:
        return StatementCounts(version=None)
    try:
        lake.drop_table(find_target(statement.target, lake))
    except TableNotFound:  # somebody else dropped it meanwhile
        if not statement.is_optional:
            raise
    return StatementCounts(version=None)


def comment(statement: CommentOn, lake: StatementLake) -> StatementCounts:
    """Set or remove a comment."""
    table = lake.table(find_target(statement.target, lake))
    column = None if statement.column is None else find_column(statement.column, table.schema)
    table.comment(statement.text, column)
    return StatementCounts(version=table.version)
