"""The verbs of a table that make a new version: each is one call of the layer that does it."""

from __future__ import annotations

from os import PathLike

from underlay.api.opened.info import Version, describe
from underlay.api.opened.versioned_table import VersionedTable
from underlay.change.define.evolve import set_comment
from underlay.change.register import register as registering
from underlay.change.register import unregister as unregistering
from underlay.change.rows import append as appending


class ChangingTable(VersionedTable):
    """A table that rows can be added to, and its definition changed."""

    def append(self, data: object, *, token: str | None = None) -> appending.Appended:
        """Add rows: an Arrow table, batch or reader, a pandas or Polars frame, a DuckDB relation; all or none.

        With a token, rows are added once however often this is called with it.
        """
        return appending.append(self.writable(), data, token=token)

    def register(
        self,
        *files: str | PathLike[str],
        ignore_surplus: bool = False,
        hive: bool = True,
        skip_known: bool = False,
        refresh: bool = False,
        progress: registering.Progress | None = None,
    ) -> registering.Registered:
        """Make Parquet files part of the table where they are: paths, URLs, patterns such as `data/*.parquet`.

        They must never change. `ignore_surplus` allows columns that the table does not have, `hive` takes values from
        folders such as `year=2024`. Files that are part of the table are refused, unless `skip_known` leaves them alone
        or `refresh` replaces those whose bytes changed.
        """
        return registering.register(
            self.writable(),
            files,
            self._context.stores,
            ignore_surplus=ignore_surplus,
            hive=hive,
            skip_known=skip_known,
            refresh=refresh,
            progress=progress,
        )

    def unregister(self, *files: str | PathLike[str]) -> unregistering.Unregistered:
        """Remove registered files from the table: paths, URLs, folders, patterns. The files themselves stay."""
        return unregistering.unregister(self.writable(), files, self._context.stores)

    def comment(self, text: str | None, column: str | None = None) -> Version:
        """Set the comment of the table or of a column."""
        return describe(set_comment(self.writable(), text, column))
