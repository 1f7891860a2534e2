"""Which version of a table its newest export has, and what stands in the way of a newer one."""

from __future__ import annotations

import json
from dataclasses import dataclass

from underlay.errors import InvalidRequest
from underlay.index.keys import ICEBERG as WAREHOUSE
from underlay.index.keys import delta_log, iceberg_folder
from underlay.interop.delta.columns import choose_delta
from underlay.interop.delta.log import NONE as EMPTY_LOG
from underlay.interop.delta.log import ExportLog
from underlay.interop.exported.exported_version import Refusal
from underlay.interop.exported.settings import DELTA, ICEBERG, kinds_of, settings_of
from underlay.interop.iceberg.choose import choose
from underlay.interop.iceberg.folder import NONE, WarehouseFolder, properties_of
from underlay.interop.iceberg.objects.metadata import LEFT_OUT, NUMBER, VERSION
from underlay.table.open_table import Head
from underlay.table.versions.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportStatus:
    """One kind of export of one table."""

    table: str
    kind: str
    version: int
    """The table's newest version."""
    exported_version: int | None
    """That of the newest export; None without one."""
    is_automatic: bool
    """Whether the table is exported after each commit."""
    format: int | None = None
    left_out: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    """Why the newest version cannot be exported."""
    problem: str | None = None
    """What is wrong with the export that is there."""

    @property
    def is_current(self) -> bool:
        """Whether the newest version is exported."""
        return self.exported_version == self.version and self.problem is None


def export_status(snapshot: Snapshot, name: str, head: Head) -> list[ExportStatus]:
    """The table's exports in the lake."""
    found = [_iceberg(snapshot, name, head)]
    delta = _delta(snapshot, name, head)
    return found if delta is None else [*found, delta]


def _delta(snapshot: Snapshot, name: str, head: Head) -> ExportStatus | None:
    """None for a table that nobody exports to Delta."""
    log = ExportLog(snapshot.store, delta_log(head.revision.table_folder))
    number = log.newest()
    properties = head.root.definition.properties
    problem = None
    try:
        is_automatic = DELTA in kinds_of(properties)
        if number == EMPTY_LOG and not is_automatic:
            return None
        refused = choose_delta(snapshot, settings_of(properties)).refusals
    except InvalidRequest as error:
        is_automatic, refused, problem = False, (), str(error)
    known = log.exported_by(number) if number != EMPTY_LOG else {}
    if number != EMPTY_LOG and not known:
        problem = f"entry {number} of the log was not written by Underlay"
    elif known and known.get("revision") != head.revision.id:
        problem = "the export is of an earlier revision"
    return ExportStatus(
        table=name,
        kind=DELTA,
        version=snapshot.version,
        exported_version=known.get("version"),
        is_automatic=is_automatic,
        left_out=tuple(known.get("left_out", ())),
        refused=refused,
        problem=problem,
    )


def _iceberg(snapshot: Snapshot, name: str, head: Head) -> ExportStatus:
    folder = WarehouseFolder(snapshot.store, f"{WAREHOUSE}/{iceberg_folder(name)}")
    number = folder.newest()
    metadata = folder.read(number) if number != NONE else None
    known = properties_of(metadata) if isinstance(metadata, dict) else {}
    problem = None
    if number != NONE and known.get(NUMBER) != str(number):
        problem = f"v{number}.metadata.json was not written by Underlay"
    elif metadata is not None and metadata.get("table-uuid") != head.revision.id:
        problem = "the export is of an earlier revision, or of another table of this name"
    properties = head.root.definition.properties
    try:
        is_automatic, settings = ICEBERG in kinds_of(properties), settings_of(properties)
        refused = choose(snapshot, settings).refusals
    except InvalidRequest as error:
        is_automatic, refused, problem = False, (), str(error)
    version = known.get(VERSION, "")
    return ExportStatus(
        table=name,
        kind=ICEBERG,
        version=snapshot.version,
        exported_version=int(version) if version.isdecimal() and metadata is not None else None,
        is_automatic=is_automatic,
        format=metadata.get("format-version") if metadata is not None else None,
        left_out=tuple(json.loads(known.get(LEFT_OUT, "[]"))),
        refused=refused,
        problem=problem,
    )
