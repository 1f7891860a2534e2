"""Statements that change rows, clause by clause, as text that is not evaluated yet."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from underlay.local.clauses.reader import Clause, NamedTable, WrittenName

Assignments = tuple[tuple[WrittenName, Clause], ...]
"""Columns and the expressions for their new values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """`INSERT INTO`. Without `columns` the rows have those of the table, in their order unless they go `by_name`."""

    target: NamedTable
    alias: str
    columns: tuple[WrittenName, ...]
    is_by_name: bool
    rows: Clause
    values: tuple[tuple[Clause, ...], ...] = ()
    """The expressions of each row of VALUES; empty for any other query."""
    returning: Clause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedSource:
    """What a change joins the table with: a table, a frame, or a query in parentheses.

    Several of these, joins, and functions share no alias.
    """

    piece: Clause
    alias: str | None
    whole: Clause
    """The source with its alias, if it has one."""
    table: NamedTable | None = None
    """A table without an alias, whose columns are qualified by a name of two parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """`UPDATE`, with FROM if there is a source."""

    target: NamedTable
    alias: str
    assignments: Assignments
    source: JoinedSource | None
    where: Clause | None
    returning: Clause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """`DELETE`, with USING if there is a source."""

    target: NamedTable
    alias: str
    source: JoinedSource | None
    where: Clause | None
    returning: Clause | None = None


class Match(Enum):
    """Which rows a clause of MERGE is for."""

    BOTH = "MATCHED"
    SOURCE_ONLY = "NOT MATCHED"
    TARGET_ONLY = "NOT MATCHED BY SOURCE"


class Action(Enum):
    """What a clause of MERGE does."""

    UPDATE = "UPDATE"
    UPDATE_ALL = "UPDATE *"
    DELETE = "DELETE"
    INSERT = "INSERT"
    INSERT_ALL = "INSERT *"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenWhen:
    """`WHEN … THEN …`. An INSERT without columns has values for those of the table, in their order."""

    match: Match
    condition: Clause | None
    action: Action
    columns: tuple[WrittenName, ...] = ()
    values: tuple[Clause, ...] = ()
    piece: Clause


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenMerge:
    """`MERGE INTO`."""

    target: NamedTable
    alias: str
    source: JoinedSource
    on: Clause
    clauses: tuple[WrittenWhen, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    """`TRUNCATE`."""

    target: NamedTable
