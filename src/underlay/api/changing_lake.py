"""The lake as SQL statements change it: each method is one call of the layer that does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from underlay.api.create import create_table
from underlay.api.opened.context import LakeContext
from underlay.api.table import Table
from underlay.change.rows.append import Appended, append_read
from underlay.change.update.chosen import Choose, change_chosen
from underlay.change.update.edit import FileAccess
from underlay.change.update.result import Changed
from underlay.errors import NotFound
from underlay.index.operation import Operation
from underlay.local.statements.lake import ReadRows
from underlay.table.catalog.changes import rename_table
from underlay.table.catalog.lifecycle import drop


class ChangingLake:
    """What `underlay.local.statements` needs. With a `token`, a change of rows is done only once, however often it is
    run.
    """

    def __init__(self, context: LakeContext, *, token: str | None = None) -> None:
        self._context = context
        self._token = token

    @property
    def token(self) -> str | None:
        """Marks commits of this statement."""
        return self._token

    def counts_of(self, name: str, version: int) -> Mapping[str, int]:
        """What the commit of a version counted; empty if the version has expired."""
        try:
            return self._context.open_table(name).active().root(version).counts
        except NotFound:
            return {}

    def names(self) -> list[str]:
        """The names of all tables; empty if the lake does not exist."""
        try:
            return sorted(self._context.newest_catalog().tables)
        except NotFound:
            return []

    def table(self, name: str) -> Table:
        """A table. Raises TableNotFound."""
        return Table(self._context.open_table(name), self._context)

    def insert(
        self, name: str, read: ReadRows, *, is_of_table: bool, then: Callable[[pa.Table], object] | None = None
    ) -> Appended:
        """Add rows. `is_of_table`: the new rows depend on the table's own, and are computed again if those change.

        `then` gets the rows as the table will store them, before the commit.
        """
        opened = self._context.open_table(name)
        return append_read(opened, read, is_of_table=is_of_table, then=then, token=self._token)

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
        files = FileAccess(stores=self._context.stores, cache=self._context.cache)
        opened = self._context.open_table(name)
        return change_chosen(opened, files, choose, operation, then=then, token=self._token, dry_run=dry_run)

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
    ) -> Table:
        """Create a table, or replace the given version of one. Raises TableExists, CommitConflict."""
        opened = create_table(
            self._context,
            name,
            schema,
            data=data,
            exist_ok=False,
            key=key,
            sort_by=sort_by,
            partition_by=partition_by,
            comment=comment,
            properties=properties,
            replaces=replaces,
            checks=checks,
        )
        return Table(opened, self._context)

    def rename_table(self, name: str, new_name: str) -> None:
        """Rename a table. Raises TableNotFound, TableExists."""
        self._context.catalog.change(rename_table(name, new_name))

    def drop_table(self, name: str) -> None:
        """Drop a table. Raises TableNotFound."""
        drop(self._context.catalog, name)
