"""The interface of a lake and its tables that statements need; `api` implements it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from underlay.change.define.evolution import Evolution
from underlay.change.rows.append import Appended
from underlay.change.update.chosen import Choose
from underlay.change.update.result import Changed
from underlay.index.operation import Operation
from underlay.index.root import Definition

ReadRows = Callable[[int], pa.RecordBatchReader]
"""Returns the rows to insert, given the version of the table that they are added to."""


Values = Mapping[str, str]
"""SQL expressions by column."""


class StatementMerge(Protocol):
    """A merge to which clauses are added."""

    def when_matched_update(self, updates: Values, predicate: str | None = None) -> object:
        """Update matching rows."""

    def when_matched_update_all(self, predicate: str | None = None) -> object:
        """Update all columns of matching rows."""

    def when_matched_delete(self, predicate: str | None = None) -> object:
        """Delete matching rows."""

    def when_not_matched_insert(self, updates: Values, predicate: str | None = None) -> object:
        """Insert source rows without a match."""

    def when_not_matched_insert_all(self, predicate: str | None = None) -> object:
        """The same with all their columns."""

    def when_not_matched_by_source_update(self, updates: Values, predicate: str | None = None) -> object:
        """Update rows that no row of the source matches."""

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> object:
        """Delete rows that no row of the source matches."""

    def execute(self) -> Changed:
        """Run the merge."""


class StatementTable(Protocol):
    """A table that a statement changes."""

    @property
    def name(self) -> str:
        """`dataset.table`."""

    @property
    def version(self) -> int:
        """The newest version."""

    @property
    def definition(self) -> Definition:
        """The table's definition."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""

    def __len__(self) -> int:
        """How many rows the newest version has."""

    def delete(
        self,
        where: str | None = None,
        *,
        params: Mapping[str, object] | None = None,
        token: str | None = None,
        dry_run: bool = False,
    ) -> Changed:
        """Delete rows."""

    def update(
        self,
        values: Mapping[str, str],
        where: str | None = None,
        *,
        params: Mapping[str, object] | None = None,
        token: str | None = None,
        dry_run: bool = False,
    ) -> Changed:
        """Set columns of rows."""

    def merge(
        self,
        source: object,
        predicate: str,
        source_alias: str = ...,
        target_alias: str = ...,
        *,
        params: Mapping[str, object] | None = None,
        token: str | None = None,
        dry_run: bool = False,
    ) -> StatementMerge:
        """Change rows by those of a source."""

    def evolve(self) -> Evolution:
        """Change the table's definition."""

    def truncate(self, *, token: str | None = None) -> Changed:
        """Delete all rows."""

    def comment(self, text: str | None, column: str | None = None) -> object:
        """Set the comment of the table or of a column."""


class StatementLake(Protocol):
    """A lake whose tables statements change."""

    @property
    def token(self) -> str | None:
        """Marks commits: a change of rows with the same token is committed once, however often it is run."""

    def counts_of(self, name: str, version: int) -> Mapping[str, int]:
        """What the commit of a version counted; empty if the version has expired."""

    def names(self) -> list[str]:
        """The names of all tables."""

    def table(self, name: str) -> StatementTable:
        """A table. Raises TableNotFound."""

    def insert(
        self, name: str, read: ReadRows, *, is_of_table: bool, then: Callable[[pa.Table], object] | None = None
    ) -> Appended:
        """Add rows. `is_of_table`: the new rows depend on the table's own, and are computed again if those change.

        `then` gets the rows as the table will store them, before the commit.
        """

    def change_chosen(
        self,
        name: str,
        choose: Choose,
        operation: Operation,
        *,
        then: Callable[[], object] | None = None,
        dry_run: bool = False,
    ) -> Changed:
        """Delete or update the chosen rows; `then` is called before the commit."""

    def create_table(
        self,
        name: str,
        schema: object,
        *,
        data: pa.RecordBatchReader | None,
        replaces: int | None,
        key: Sequence[str],
        sort_by: Sequence[str],
        partition_by: Sequence[str],
        comment: str | None,
        properties: Mapping[str, str | int],
        checks: Mapping[str, str],
    ) -> StatementTable:
        """Create a table, or replace the given version of one. Raises TableExists, and CommitConflict when the replaced
        table has other rows by now.
        """

    def rename_table(self, name: str, new_name: str) -> None:
        """Rename a table. Raises TableNotFound, TableExists."""

    def drop_table(self, name: str) -> None:
        """Drop a table. Raises TableNotFound."""
