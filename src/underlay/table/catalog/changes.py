"""Changes of the catalog, each a pure function from one entry's mapping to the next one's."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from underlay.errors import TableExists, TableNotFound
from underlay.index.catalog import (
    ACTIVE,
    CLOSED,
    Catalog,
    DroppedRecord,
    RevisionRecord,
    TableRecord,
    TagRecord,
    check_free,
    check_tag,
    find_table,
    find_tag,
    owner_of,
    split_name,
)
from underlay.index.keys import table_folder

CatalogChange = Callable[[Catalog], Catalog]
"""Gives the mapping after a change; number, ids and time are set when it is published."""


def free_folder(catalog: Catalog, name: str, suffix: str) -> str:
    """The folder for a new table: by its name, with a suffix when that is or was another table's."""
    dataset, table = split_name(name)
    folder = table_folder(dataset, table)
    return folder if folder.casefold() not in _taken_folders(catalog) else table_folder(dataset, f"{table}-{suffix}")


def _taken_folders(catalog: Catalog) -> set[str]:
    living = (record.folder for record in catalog.tables.values())
    return {folder.casefold() for folder in (*living, *catalog.dropped)}


def create_table(name: str, folder: str, revision: str, created_us: int) -> CatalogChange:
    """A new table. Raises TableExists for the name, InvalidRequest for the folder."""

    def change(catalog: Catalog) -> Catalog:
        check_free(catalog, name)
        if folder.casefold() in _taken_folders(catalog):
            raise TableExists(f"the folder {folder} was taken by another process", hint="Try again.")
        record = TableRecord(
            folder=folder, active=revision, revisions={revision: RevisionRecord(state=ACTIVE, created_us=created_us)}
        )
        return replace(catalog, operation=f"create {name}", tables=catalog.tables | {name: record})

    return change


def rename_table(old: str, new: str) -> CatalogChange:
    """Another name for a table; its folder stays. A change of upper and lower case is a rename too."""

    def change(catalog: Catalog) -> Catalog:
        record = find_table(catalog, old)
        others = {name: other for name, other in catalog.tables.items() if name != old}
        check_free(replace(catalog, tables=others), new)
        return replace(catalog, operation=f"rename {old} to {new}", tables=others | {new: record})

    return change


def activate_revision(closed: str, successor: str, created_us: int) -> CatalogChange:
    """`successor` takes over from the revision `closed`. Nothing changes when that one is no longer active."""

    def change(catalog: Catalog) -> Catalog:
        name = owner_of(catalog, closed)
        if name is None or catalog.tables[name].active != closed:
            return catalog
        record = catalog.tables[name]
        revisions = record.revisions | {
            closed: replace(record.revisions[closed], state=CLOSED),
            successor: RevisionRecord(state=ACTIVE, created_us=created_us),
        }
        after = replace(record, active=successor, revisions=revisions)
        return replace(catalog, operation=f"activate {name}", tables=catalog.tables | {name: after})

    return change


def drop_table(closed: str, dropped_us: int) -> CatalogChange:
    """Drop the table whose active revision is `closed`. Nothing changes when there is no such table."""

    def change(catalog: Catalog) -> Catalog:
        name = owner_of(catalog, closed)
        if name is None or catalog.tables[name].active != closed:
            return catalog
        record = catalog.tables[name]
        tables = {other: kept for other, kept in catalog.tables.items() if other != name}
        gone = DroppedRecord(name=name, revisions=tuple(record.revisions), dropped_us=dropped_us)
        dropped = catalog.dropped | {record.folder: gone}
        return replace(catalog, operation=f"drop {name}", tables=tables, dropped=dropped)

    return change


def tag_version(name: str, tag: str, revision: str, version: int) -> CatalogChange:
    """`tag` names this version from now on, and no other."""
    check_tag(tag)

    def change(catalog: Catalog) -> Catalog:
        record = find_table(catalog, name)
        if revision not in record.revisions:
            raise TableNotFound(
                f"{name} is a different table now", hint="It was renamed, or dropped and created again. Open it again."
            )
        after = replace(record, tags=record.tags | {tag: TagRecord(revision=revision, version=version)})
        return replace(catalog, operation=f"tag {name} {tag}", tables=catalog.tables | {name: after})

    return change


def untag_version(name: str, tag: str) -> CatalogChange:
    """Remove `tag`."""

    def change(catalog: Catalog) -> Catalog:
        record = find_table(catalog, name)
        find_tag(record, name, tag)
        after = replace(record, tags={other: kept for other, kept in record.tags.items() if other != tag})
        return replace(catalog, operation=f"untag {name} {tag}", tables=catalog.tables | {name: after})

    return change
