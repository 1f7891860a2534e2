"""The verbs of a lake that take tables of other systems in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from underlay.api.changing.exporting_lake import ExportingLake

if TYPE_CHECKING:
    from underlay.api.table import Table
    from underlay.change.register.read_footers import Progress


class ImportingLake(ExportingLake):
    """A lake that takes in tables of other systems."""

    def import_table(self, name: str, source: str, *, progress: Progress | None = None) -> Table:
        """Make a table from one of another system, without copying: `delta:s3://bucket/trips`, `iceberg:/lake/ns/t`,
        `iceberg+rest://host/ns.t`, `hive:/data/trips`.

        Its files stay where they are and must never change; `Table.sync` follows what the other system does to it.
        Raises TableExists, and Unsupported with a list of everything that cannot be represented: then there is no
        table.
        """
        from underlay.api.table import Table
        from underlay.interop.import_table import import_table  # few processes need it

        context = self._context
        revision = import_table(context.catalog, context.stores, name, source, progress=progress)
        return Table(context.open_new_table(name, revision), context)
