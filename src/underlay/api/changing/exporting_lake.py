"""The verbs of a lake that make its tables readable for other engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from underlay.api.changing.caring_lake import CaringLake
from underlay.errors import NotExportable, TableNotFound

if TYPE_CHECKING:
    from underlay.interop.export.status import ExportStatus
    from underlay.interop.exported.exported_version import Exported


class ExportingLake(CaringLake):
    """A lake whose tables can be exported."""

    def export(
        self,
        kind: str = "iceberg",
        *,
        base_url: str | None = None,
        columns: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
        without: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
        format: int | None = None,
        to: str | None = None,
        dry_run: bool = False,
    ) -> list[Exported]:
        """Do for every table what `Table.export` does.

        `columns` and `without` are by table, or names that count for every table that has them. A table that cannot be
        exported truthfully is in the list with the reasons in `refused`, and the others are exported.
        """
        from underlay.interop.export.exporting import export_version  # few processes need it
        from underlay.interop.exported.exported_version import refused_table
        from underlay.interop.exported.settings import settings_of

        found = []
        for name in sorted(self._context.newest_catalog().tables):
            try:
                opened = self._context.open_table(name)
                head = opened.head()
            except TableNotFound:  # dropped meanwhile
                continue
            snapshot = opened.snapshot(head)
            names = snapshot.schema.names
            settings = settings_of(
                head.root.definition.properties,
                columns=_of_table(columns, name, names),
                without=_of_table(without, name, names),
                base_url=base_url,
                format=format,
            )
            try:
                exported = export_version(
                    snapshot, name, head, kind, settings, to=to, options=self._context.options, dry_run=dry_run
                )
            except NotExportable as error:
                exported = refused_table(name, kind, head.root.version, error, is_dry_run=dry_run)
            found.append(exported)
        return found

    def exports(self) -> list[ExportStatus]:
        """The exports of all tables: their versions, and why the newest versions cannot be exported."""
        from underlay.interop.export.status import export_status

        found = []
        for name in sorted(self._context.newest_catalog().tables):
            try:
                opened = self._context.open_table(name)
                head = opened.head()
            except TableNotFound:
                continue
            found += export_status(opened.snapshot(head), name, head)
        return found


def _of_table(
    given: Mapping[str, Sequence[str]] | Sequence[str] | None, table: str, columns: Sequence[str]
) -> Sequence[str] | None:
    """What is given for a table; None for nothing."""
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, Mapping):
        return given.get(table)
    return [name for name in given if name in columns] or None
