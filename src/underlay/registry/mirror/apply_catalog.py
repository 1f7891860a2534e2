"""Applies the catalog's newest entry to the registry: the lake, its tables, tags and revisions, and what was dropped.

Nothing here begins or ends a transaction: `connection` is in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Select, Table, bindparam, delete, insert, select, update

from underlay.errors import RegistryRefused
from underlay.index.catalog import Catalog, DroppedRecord, TableRecord
from underlay.registry.database.database_errors import RESTORE_HINT
from underlay.registry.database.schema import (
    FILE_METADATA,
    GC_MANIFEST,
    JOBS,
    LAKE,
    LEASES,
    NONE,
    PHYSICAL_TABLES,
    REVISIONS,
    RUNS,
    SEGMENTS,
    SOURCES,
    TAGS,
    VERSIONS,
)
from underlay.registry.mirror.apply import insert_new, insert_rows, upsert_rows
from underlay.registry.mirror.fold import Row

Tables = Mapping[str, TableRecord]
Dropped = Mapping[str, DroppedRecord]

DROPPED = "dropped"
_MOST_FOLDERS = 500
"""Beyond this many, folders are not looked up one by one."""
_OF_A_REVISION = (REVISIONS, SEGMENTS, FILE_METADATA, SOURCES, VERSIONS, JOBS, LEASES, RUNS)
"""The revision's own row comes first: a transaction that applies one of its versions locks that row."""


def apply_catalog(connection: Connection, catalog: Catalog, lake_url: str) -> bool:
    """Move the registry to this entry, skipping those between. False when it is at this entry or a newer one.

    Raises RegistryRefused when the registry belongs to another lake, or its entry is not in this history.
    """
    while True:
        known = connection.execute(select(LAKE)).one_or_none()
        if known is not None:
            _check_history(catalog, lake_url, known.lake_id, known.number, known.commit_id)
            if known.number >= catalog.number:
                return False
        # Another process may meanwhile move it to an entry older than this one: then check again.
        if _move(connection, None if known is None else known.commit_id, _lake_row(catalog, lake_url)):
            write_mapping(connection, catalog, since=None if known is None else known.number)
            return True


def _move(connection: Connection, known_id: str | None, row: Row) -> bool:
    if known_id is None:
        return insert_new(connection, LAKE, row)
    return connection.execute(update(LAKE).where(LAKE.c.commit_id == known_id).values(row)).rowcount == 1


def write_lake(connection: Connection, catalog: Catalog, lake_url: str) -> None:
    """Insert the row that binds a registry to this lake. There must be none yet."""
    connection.execute(insert(LAKE), _lake_row(catalog, lake_url))


def write_mapping(connection: Connection, catalog: Catalog, *, since: int | None = None) -> None:
    """Write the entry's tables, tags and revisions, only where they differ. Given the registry's entry (`since`),
    compares only folders of tables that changed since, if they are few.
    """
    folders = None if since is None else _changed_folders(catalog, since)
    tables = _tables_in(catalog, folders)
    dropped = {
        folder: catalog.dropped[folder]
        for folder in (catalog.dropped if folders is None else folders)
        if folder in catalog.dropped
    }
    _replace(connection, PHYSICAL_TABLES, _table_rows(tables), folders)
    _replace(connection, TAGS, _tag_rows(tables), folders)
    _replace(connection, GC_MANIFEST, _dropped_rows(dropped), folders)
    _replace_revisions(connection, _revision_rows(tables, dropped), folders)


def _changed_folders(catalog: Catalog, since: int) -> frozenset[str] | None:
    """The folders of tables that changed since an entry. A name that is gone was either renamed, and its folder appears
    under the new name, or dropped. None when there are too many.
    """
    changes = catalog.changed_since(since)
    if changes is None:
        return None
    living = (record.folder for record in changes.tables.values() if record is not None)
    tagged = (catalog.tables[name].folder for name in changes.tags)
    folders = frozenset((*living, *tagged, *changes.dropped))
    return folders if len(folders) <= _MOST_FOLDERS else None


def _tables_in(catalog: Catalog, folders: frozenset[str] | None) -> Mapping[str, TableRecord]:
    if folders is None:
        return catalog.tables
    named = (catalog.folders.get(folder.casefold()) for folder in folders)
    return {name: catalog.tables[name] for name in named if name is not None}


def _check_history(catalog: Catalog, lake_url: str, lake_id: str, number: int, commit_id: str) -> None:
    if lake_id != catalog.lake_id:
        raise RegistryRefused(
            "the registry belongs to another lake",
            place=lake_url,
            expected=catalog.lake_id,
            found=lake_id,
            hint=f"Give this lake a registry of its own. {RESTORE_HINT}",
        )
    same = {catalog.number: catalog.commit_id, catalog.number - 1: catalog.parent_id}.get(number, commit_id)
    if same != commit_id:
        raise RegistryRefused(
            f"the registry holds another entry {number} of the catalog",
            place=lake_url,
            expected=same,
            found=commit_id,
            hint=f"The registry or the store was restored from a copy. {RESTORE_HINT}",
        )


def _lake_row(catalog: Catalog, lake_url: str) -> Row:
    return {
        "one": 1,
        "lake_id": catalog.lake_id,
        "url": lake_url,
        "number": catalog.number,
        "commit_id": catalog.commit_id,
        "committed_us": catalog.committed_us,
    }


def _table_rows(tables: Tables) -> list[Row]:
    return [{"folder": table.folder, "name": name, "active": table.active} for name, table in tables.items()]


def _tag_rows(tables: Tables) -> list[Row]:
    return [
        {"folder": table.folder, "tag": tag, "revision": record.revision, "version": record.version}
        for table in tables.values()
        for tag, record in table.tags.items()
    ]


def _dropped_rows(dropped: Dropped) -> list[Row]:
    return [
        {"revision": revision, "folder": folder, "name": record.name, "dropped_us": record.dropped_us}
        for folder, record in dropped.items()
        for revision in record.revisions
    ]


def _revision_rows(tables: Tables, dropped: Dropped) -> list[Row]:
    """Rows of revisions as they are before a version is applied. For dropped tables the catalog no longer knows when a
    revision was created: the first version says so.
    """
    living = [
        (revision, table.folder, record.state, record.created_us)
        for table in tables.values()
        for revision, record in table.revisions.items()
    ]
    gone = [
        (revision, folder, DROPPED, record.dropped_us)
        for folder, record in dropped.items()
        for revision in record.revisions
    ]
    return [
        {
            "revision": revision,
            "folder": folder,
            "state": state,
            "created_us": created_us,
            "head": NONE,
            "head_id": None,
            "row_count": 0,
            "file_count": 0,
            "data_bytes": 0,
        }
        for revision, folder, state, created_us in (*living, *gone)
    ]


def _replace(connection: Connection, table: Table, rows: Iterable[Row], folders: frozenset[str] | None) -> None:
    """Make the table, or its part for these folders, consist of these rows. Deletes before it inserts, since two tables
    may swap names.
    """
    names = [column.name for column in table.primary_key]
    wanted = {tuple(row[name] for name in names): row for row in rows}
    known = {
        tuple(row[name] for name in names): dict(row)
        for row in connection.execute(_of(select(table), table, folders)).mappings()
    }
    gone = [key for key, row in known.items() if wanted.get(key) != row]
    if gone:
        is_it = [table.c[name] == bindparam(f"of_{name}") for name in names]
        keys = [{f"of_{name}": part for name, part in zip(names, key, strict=True)} for key in gone]
        connection.execute(delete(table).where(*is_it), keys)
    insert_rows(connection, table, [row for key, row in wanted.items() if known.get(key) != row])


def _of(asked: Select[Any], table: Table, folders: frozenset[str] | None) -> Select[Any]:
    return asked if folders is None else asked.where(table.c.folder.in_(sorted(folders)))


def _replace_revisions(connection: Connection, rows: Iterable[Row], folders: frozenset[str] | None) -> None:
    """Make `revisions` consist of these, for these folders or for all. Rows about a revision's versions stay as long as
    the revision does, and are deleted with it.
    """
    columns = REVISIONS.c
    asked = _of(select(columns.revision, columns.folder, columns.state), REVISIONS, folders)
    known = {row.revision: (row.folder, row.state) for row in connection.execute(asked)}
    wanted = {str(row["revision"]): row for row in rows}
    new = [row for name, row in wanted.items() if name not in known]
    upsert_rows(connection, REVISIONS, new, changed=("folder", "state"))
    moved = [row for name, row in wanted.items() if name in known and known[name] != (row["folder"], row["state"])]
    if moved:
        is_it = columns.revision == bindparam("of_revision")
        values = [{"of_revision": r["revision"], "folder": r["folder"], "state": r["state"]} for r in moved]
        statement = update(REVISIONS).where(is_it).values(folder=bindparam("folder"), state=bindparam("state"))
        connection.execute(statement, values)
    gone = [{"of_revision": name} for name in known if name not in wanted]
    for table in _OF_A_REVISION if gone else ():
        connection.execute(delete(table).where(table.c.revision == bindparam("of_revision")), gone)
