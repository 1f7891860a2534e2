"""Makes a table of ours from one of another system, whose files stay where they are, and follows its changes."""

from __future__ import annotations

from underlay.change.define.define import define
from underlay.change.register.read_footers import Progress
from underlay.errors import InvalidRequest, TableExists
from underlay.index.segment.packed import MAX_BOUND_BYTES
from underlay.interop.imports.follow import Synced, check_history, columns_of, follow, note_of
from underlay.interop.imports.note import find_note
from underlay.interop.imports.registered import registered_files
from underlay.interop.imports.source_table import SourceTable
from underlay.interop.open_source import open_source
from underlay.scan.read.file_stores import FileStores
from underlay.schema.arrow_aliases import AnyScalar
from underlay.schema.convert.arrow import from_arrow, to_arrow
from underlay.table.catalog import lifecycle
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.open_table import OpenTable
from underlay.table.versions.revision import Revision


def import_table(
    lake: LakeCatalog, stores: FileStores, name: str, address: str, *, progress: Progress | None = None
) -> Revision:
    """Create a table with the columns and rows of another one. The catalog names it only once it has them.

    Raises TableExists, NotFound, Unsupported with all reasons why it cannot be a table of ours.
    """
    lake.initialise()
    if name in lake.catalog().tables:
        raise TableExists(
            f"the table {name} exists",
            hint='To bring an imported table up to date: "underlay sync", table.sync(). Else choose another name.',
        )
    source = open_source(address, stores)
    found = source.read({}, None)
    columns = columns_of(found, {}, 0)
    from_arrow(to_arrow(columns.schema))  # names that a table cannot have
    definition = define(columns.schema, comment=found.comment, partition_by=_partitions(found))

    def fill(revision: Revision) -> None:
        opened = OpenTable(lake, name, revision=revision)
        follow(opened, stores, source, found, first=note_of(source, found), progress=progress)

    return lifecycle.create(lake, name, definition, fill)


def _partitions(found: SourceTable) -> list[str]:
    """The source's partition columns; none unless our statistics prove each file's partition by its constants."""
    by_name = found.columns.by_name()
    columns = [by_name[name] for name in found.partition_by]
    ids = {column.id for column in columns}
    values = {one for file in found.files for one in file.values if one[0] in ids}
    if not all(_has_exact_bounds(value) for _, value in values):
        return []
    return [column.name for column in columns]


def _has_exact_bounds(value: AnyScalar | None) -> bool:
    plain = None if value is None else value.as_py()
    if isinstance(plain, str):
        return len(plain.encode()) <= MAX_BOUND_BYTES
    return bool(plain == plain)  # not NaN


def sync_table(table: OpenTable, stores: FileStores, *, progress: Progress | None = None) -> Synced:
    """Bring an imported table to its source's newest version in one commit; no commit when nothing is new.

    Raises InvalidRequest for a table that was not imported, SourceChanged, and what an import raises.
    """
    head = table.head()
    snapshot = table.snapshot(head)
    note = find_note(snapshot)
    if note is None:
        raise InvalidRequest(
            "the table was not imported", place=table.name, hint="Make one: underlay import NAME SOURCE."
        )
    source = open_source(note.address, stores)
    if source.newest() == note.mark and note.stamp is not None:
        return Synced(version=head.root.version, is_new=False, source=note.address, source_version=note.version)
    found = source.read(registered_files(snapshot), snapshot.schema)
    check_history(note, source, found)
    return follow(table, stores, source, found, progress=progress)
