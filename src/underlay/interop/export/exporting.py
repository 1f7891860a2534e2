"""Exports a version of a table as a kind of table that other engines read."""

from __future__ import annotations

from collections.abc import Mapping

from underlay.errors import Inconsistent, InvalidRequest
from underlay.index.keys import ICEBERG as WAREHOUSE
from underlay.index.keys import delta_log, iceberg_folder
from underlay.interop.delta.export import export_delta
from underlay.interop.delta.log import ExportLog
from underlay.interop.exported.exported_version import Exported
from underlay.interop.exported.places import ExportPlaces, unquoted
from underlay.interop.exported.settings import (
    DEFAULTS,
    DELTA,
    ICEBERG,
    ExportSettings,
    check_kind,
    read_asked,
    settings_of,
)
from underlay.interop.iceberg.columns.types import Json
from underlay.interop.iceberg.export import IcebergTarget, export_iceberg
from underlay.interop.iceberg.folder import NONE, WarehouseFolder, properties_of
from underlay.interop.iceberg.objects.metadata import ASKED, COMMIT, NUMBER
from underlay.store.open import open_store
from underlay.store.store import Store
from underlay.table.open_table import Head
from underlay.table.versions.snapshot import Snapshot


def export_version(
    snapshot: Snapshot,
    name: str,
    head: Head,
    kind: str,
    settings: ExportSettings,
    *,
    to: str | None = None,
    options: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> Exported:
    """Export this version of the table `name`: into the lake, or into the folder at the URL `to`.

    Raises NotExportable, unless it is a dry run; InvalidRequest; and what the store raises.
    """
    check_kind(kind)
    lake = snapshot.store
    if kind == DELTA:
        return _export_delta(snapshot, name, head, settings, to, dry_run=dry_run)
    places = ExportPlaces(lake.url, settings.base_url)
    store, root, url = _warehouse(lake, places, to, options)
    folder = iceberg_folder(name)
    target = IcebergTarget(
        folder=WarehouseFolder(store, f"{root}/{folder}" if root else folder),
        location=f"{url}/{folder}",
        places=places,
        revision=head.revision.id,
        is_newest=to is None,
    )
    return export_iceberg(snapshot, name, target, settings, dry_run=dry_run)


def _export_delta(
    snapshot: Snapshot, name: str, head: Head, settings: ExportSettings, to: str | None, *, dry_run: bool
) -> Exported:
    """Readers find files by their path below the log's folder, so the log is in the table's, and only there."""
    if to is not None:
        raise InvalidRequest("a table of Delta is where its files are", found=to, hint="Leave --to out.")
    folder = head.revision.table_folder
    log = ExportLog(snapshot.store, delta_log(folder))
    url = f"{(settings.base_url or unquoted(snapshot.store.url)).rstrip('/')}/{folder}"
    return export_delta(snapshot, name, log, head.revision.id, settings, url=url, dry_run=dry_run)


def current_iceberg(
    snapshot: Snapshot, name: str, head: Head, options: Mapping[str, str] | None = None
) -> tuple[str, Json]:
    """Where the metadata of the newest version is, and what it says; exported first unless it was. Columns that the
    newest export leaves out are left out again, unless the table's properties say what to leave out."""
    lake = snapshot.store
    folder = WarehouseFolder(lake, f"{WAREHOUSE}/{iceberg_folder(name)}")
    number = folder.newest()
    metadata = folder.read(number) if number != NONE else None
    properties = head.root.definition.properties
    known = properties_of(metadata) if isinstance(metadata, dict) else {}
    asked = {} if not DEFAULTS.isdisjoint(properties) else read_asked(known.get(ASKED))
    if known.get(NUMBER) != str(number) or known.get(COMMIT) != head.root.commit_id or metadata is None:
        exported = export_version(snapshot, name, head, ICEBERG, settings_of(properties, **asked), options=options)
        number = int((exported.metadata_url or "").rpartition("/v")[2].partition(".")[0])
        metadata = folder.read(number)
    if metadata is None:
        raise Inconsistent("an export that was just written is gone", place=lake.place_of(folder.metadata_key(number)))
    return f"{metadata['location']}/metadata/v{number}.metadata.json", metadata


def _warehouse(
    lake: Store, places: ExportPlaces, to: str | None, options: Mapping[str, str] | None
) -> tuple[Store, str, str]:
    """The store of the warehouse, its folder there, and its URL."""
    if to is None:
        return lake, WAREHOUSE, places.of_key(WAREHOUSE)
    is_alike = to.partition("://")[0] == lake.url.partition("://")[0] and not lake.url.startswith("file:")
    store = open_store(to, options if is_alike else None)
    return store, "", unquoted(store.url).rstrip("/")
