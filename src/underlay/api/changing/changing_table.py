"""The verbs of a table that make a new version: each is one call of the layer that does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

from underlay.api.opened.condition import Params, ReadWhere, Where, read_where
from underlay.api.opened.info import Version, describe
from underlay.api.opened.versioned_table import VersionedTable
from underlay.change.define.check_data import DataCheck
from underlay.change.define.evolution import Evolution, set_comment
from underlay.change.register import register as registering
from underlay.change.register import unregister as unregistering
from underlay.change.register.read_footers import Progress
from underlay.change.rows import append as appending
from underlay.change.update import delete as deleting
from underlay.change.update import overwrite as overwriting
from underlay.change.update import update as updating
from underlay.change.update import upsert as upserting
from underlay.change.update.condition import Condition
from underlay.change.update.edit import FileAccess
from underlay.change.update.result import Changed
from underlay.errors import InvalidRequest
from underlay.hot.questdb.register import read_questdb_tables, split_questdb
from underlay.table.versions.snapshot import Snapshot
from underlay.values.literal import Literal

if TYPE_CHECKING:
    from underlay.api.changing.merger import TableMerger


class ChangingTable(VersionedTable):
    """A table whose rows and definition can be changed."""

    def append(self, data: object, *, token: str | None = None) -> appending.Appended:
        """Add rows, all or none: an Arrow table, batch, reader or dataset, a pandas or Polars frame, a list of dicts.

        With a token, the rows are added only once, however often this is called with the same token.
        """
        return appending.append(self.writable(), data, token=token)

    def upsert(
        self,
        rows: object,
        key: str | Sequence[str] | None = None,
        token: str | None = None,
        *,
        dry_run: bool = False,
    ) -> Changed:
        """Replace rows that have the same key, and add rows whose key is new. Takes anything that `append` takes.

        The key is the table's unless columns are named. Replaced rows keep their values in columns that `rows` lacks.
        `dry_run` only counts. With a token, this is done only once, however often it is called with the same token.
        """
        return upserting.upsert(self.writable(), self.file_access, rows, key=key, token=token, dry_run=dry_run)

    def delete(
        self,
        where: Where = None,
        *,
        rows: object = None,
        key: str | Sequence[str] | None = None,
        params: Params | None = None,
        token: str | None = None,
        dry_run: bool = False,
    ) -> Changed:
        """Delete the rows for which the condition is true, or whose key is in `rows`; without either, all rows.

        The key is the table's unless columns are named. `dry_run` only counts. With a token, this is done only once,
        however often it is called with the same token.
        """
        table, files = self.writable(), self.file_access
        if rows is not None:
            if where is not None:
                raise InvalidRequest("give a condition or rows, not both")
            return deleting.delete_keys(table, files, rows, key=key, token=token, dry_run=dry_run)
        if key is not None:
            raise InvalidRequest(
                "a key was given without rows", hint="Give the rows whose keys are to be deleted: rows=…."
            )
        return deleting.delete(table, files, self._condition(where, params), token=token, dry_run=dry_run)

    def overwrite(
        self, rows: object, where: Where = None, *, params: Params | None = None, token: str | None = None
    ) -> Changed:
        """Replace the rows for which the condition is true, or all rows, with anything that `append` takes.

        Raises CommitConflict when another commit added or changed such rows meanwhile.
        """
        return overwriting.overwrite(
            self.writable(), self.file_access, rows, self._condition(where, params), token=token
        )

    def truncate(self, *, token: str | None = None) -> Changed:
        """Delete all rows. Older versions keep theirs."""
        return deleting.truncate(self.writable(), self.file_access, token=token)

    def update(
        self,
        values: Mapping[str, str | Literal],
        where: Where = None,
        *,
        params: Params | None = None,
        token: str | None = None,
        dry_run: bool = False,
    ) -> Changed:
        """Set columns to new values in the rows for which the condition is true, or in all: `{"fare": "fare * 1.1"}`.

        Values are SQL over the columns of the row as it was; Python values are `ul.lit(value)`. `params` are values for
        `$name` or `?` in their texts and in that of the condition. A value that does not fit the column exactly is
        refused. `dry_run` only counts.
        """
        from underlay.local.expressions.update_statement import UpdateStatement  # loads DuckDB

        statement = UpdateStatement(values, where, params)
        return updating.update(
            self.writable(),
            self.file_access,
            statement.change,
            lambda snapshot: read_where(*statement.where(snapshot), snapshot),
            token=token,
            dry_run=dry_run,
        )

    def merge(
        self,
        source: object,
        predicate: str,
        source_alias: str | None = None,
        target_alias: str | None = None,
        *,
        params: Params | None = None,
        token: str | None = None,
        dry_run: bool = False,
    ) -> TableMerger:
        """Change, delete and insert rows by those of a source: add clauses to what this returns, then `execute()` it.

        `source` is anything that `append` takes. It may be this table itself or a scan of it, which is then read at the
        version that is changed. `predicate` is any SQL condition over both, such as `target.id = source.id`; aliases
        rename the two.
        """
        from underlay.api.changing.merger import TableMerger  # loads DuckDB
        from underlay.local.expressions.merge_statement import MergeStatement

        statement = MergeStatement(
            condition=predicate,
            source_alias="source" if source_alias is None else source_alias,
            target_alias="target" if target_alias is None else target_alias,
            given=params,
        )
        return TableMerger(self.writable(), self.file_access, source, statement, token=token, dry_run=dry_run)

    def register(
        self,
        *files: str | PathLike[str],
        ignore_surplus: bool = False,
        hive: bool = True,
        skip_known: bool = False,
        refresh: bool = False,
        progress: Progress | None = None,
    ) -> registering.Registered:
        """Add existing Parquet files to the table without copying them: paths, URLs, patterns such as `data/*.parquet`.

        `questdb:PATH` means the Parquet partitions of the QuestDB table in this directory, at its committed version.
        The files must never change. `ignore_surplus` allows columns that the table does not have, `hive` takes values
        from folders such as `year=2024`. Files that the table already has are refused, unless `skip_known` skips them
        or `refresh` replaces those whose bytes changed.
        """
        patterns, tables = split_questdb(files)
        described, native = read_questdb_tables(tables, self._context.stores)
        done = registering.register(
            self.writable(),
            patterns,
            self._context.stores,
            ignore_surplus=ignore_surplus,
            hive=hive,
            skip_known=skip_known,
            refresh=refresh,
            progress=progress,
            described=described,
        )
        return replace(done, native_partitions=native)

    def unregister(self, *files: str | PathLike[str]) -> unregistering.Unregistered:
        """Remove registered files from the table: paths, URLs, folders, patterns. The files themselves stay."""
        return unregistering.unregister(self.writable(), files, self._context.stores)

    def evolve(self) -> Evolution:
        """Change columns, key, order, partitions, checks, properties, comments: all in one version.

        `with trips.evolve() as change: change.add_column("tip", "double", default=0.0)`.
        """

        def read_condition(text: str, snapshot: Snapshot) -> ReadWhere:
            return read_where(text, None, snapshot)

        return Evolution(self.writable(), DataCheck(files=self.file_access, read_condition=read_condition))

    def comment(self, text: str | None, column: str | None = None) -> Version:
        """Set the comment of the table or of a column."""
        return describe(set_comment(self.writable(), text, column))

    @property
    def file_access(self) -> FileAccess:
        """What verbs read its files with."""
        return FileAccess(stores=self._context.stores, cache=self._context.cache)

    def _condition(self, where: Where, params: Params | None) -> Condition:
        return lambda snapshot: read_where(where, params, snapshot)
