"""Statements that define tables, as values: CREATE, ALTER, DROP and COMMENT."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from underlay.change.define.evolution import Evolution
from underlay.local.clauses.reader import Clause, NamedTable, WrittenName
from underlay.schema.table_schema import TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """`CREATE TABLE`, with columns or with the rows of a query."""

    target: NamedTable
    is_replacing: bool
    is_optional: bool
    """IF NOT EXISTS."""
    columns: TableSchema | None = None
    rows: Clause | None = None
    key: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    checks: Mapping[str, Clause] = field(default_factory=dict)
    layout: tuple[Clause, ...] = ()
    """The clauses of key, order and partitions, with their positions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterStep:
    """One change of ALTER TABLE: its words, and the change that they request.

    `condition` is the column, or `check name`, that must exist, or must not, for the change to be made.
    """

    piece: Clause
    apply: Callable[[Evolution], object]
    condition: tuple[str, bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    """`ALTER TABLE`, with one or more changes, or with a new name."""

    target: NamedTable
    is_optional: bool
    """IF EXISTS."""
    steps: tuple[AlterStep, ...] = ()
    new_name: NamedTable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTable:
    """`DROP TABLE`."""

    target: NamedTable
    is_optional: bool
    """IF EXISTS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOn:
    """`COMMENT ON TABLE` and `COMMENT ON COLUMN`."""

    target: NamedTable
    column: WrittenName | None
    text: str | None
