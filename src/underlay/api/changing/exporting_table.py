"""The verb of a table that makes it readable for other engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from underlay.api.changing.caring_table import CaringTable

if TYPE_CHECKING:
    from underlay.interop.exported.exported_version import Exported


class ExportingTable(CaringTable):
    """A table that can be exported."""

    def iceberg_metadata(self) -> tuple[str, dict[str, object]]:
        """Where the Iceberg metadata of the newest version is, and the metadata: exported first unless it was.

        It is exported as before, or as the properties `export.…` say. Raises NotExportable.
        """
        from underlay.interop.export.exporting import current_iceberg

        head = self.writable().head()
        return current_iceberg(self._opened.snapshot(head), self.name, head, self._context.options)

    def export(
        self,
        kind: str = "iceberg",
        *,
        columns: Sequence[str] | None = None,
        without: Sequence[str] | None = None,
        base_url: str | None = None,
        format: int | None = None,
        to: str | None = None,
        dry_run: bool = False,
    ) -> Exported:
        """Write metadata by which other engines read the version that is read: `iceberg` or `delta`.

        Files stay as they are. Iceberg's metadata goes to `_iceberg/` in the lake, a complete warehouse, or to the
        folder at the URL `to`. `columns` are exported, or all but those `without`. `base_url` is what other engines
        call the lake's folder, `format` Iceberg's: 2 unless something needs 3. What is not given comes from the
        properties `export.without`, `export.base_url` and `export.format`. Raises NotExportable for a table that the
        format cannot represent truthfully; a `dry_run` returns the reasons instead, and writes nothing. An older
        version needs `to`.
        """
        from underlay.interop.export.exporting import export_version  # few processes need it
        from underlay.interop.exported.settings import settings_of

        if to is None:
            self.writable()
        head = self.read_head() if self._pinned else self._opened.head()
        properties = head.root.definition.properties
        settings = settings_of(properties, columns=columns, without=without, base_url=base_url, format=format)
        return export_version(
            self._opened.snapshot(head),
            self.name,
            head,
            kind,
            settings,
            to=to,
            options=self._context.options,
            dry_run=dry_run,
        )
