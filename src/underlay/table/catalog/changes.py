"""Changes of the catalog, each a pure function from one entry's mapping to the changes of the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from underlay.errors import TableExists, TableNotFound
from underlay.index.catalog import (
    ACTIVE,
    CLOSED,
    Catalog,
    CatalogDelta,
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


class CatalogEdit(NamedTuple):
    """The name of a change, and the records that it changes."""

    operation: str
    changes: CatalogDelta


CatalogChange = Callable[[Catalog], CatalogEdit | None]
"""Returns the changes, None for nothing; number, ids and time are set when they are published."""


def free_folder(catalog: Catalog, name: str, suffix: str) -> str:
    """The folder for a new table: its name, with a suffix when another table has or had that folder."""
    dataset, table = split_name(name)
    folder = table_folder(dataset, table)
    return folder if folder.casefold() not in catalog.folders else table_folder(dataset, f"{table}-{suffix}")


def create_table(name: str, folder: str, revision: str, created_us: int) -> CatalogChange:
    """A new table. Raises TableExists for the name, InvalidRequest for the folder."""

    def change(catalog: Catalog) -> CatalogEdit | None:
        check_free(catalog, name)
        if folder.casefold() in catalog.folders:
            raise TableExists(f"the folder {folder} was taken by another process", hint="Try again.")
        record = TableRecord(
            folder=folder, active=revision, revisions={revision: RevisionRecord(state=ACTIVE, created_us=created_us)}
        )
        return CatalogEdit(f"create {name}", CatalogDelta({name: record}))

    return change


def rename_table(old: str, new: str) -> CatalogChange:
    """Rename a table; its folder stays. The new name may differ only in case."""

    def change(catalog: Catalog) -> CatalogEdit | None:
        record = find_table(catalog, old)
        check_free(catalog, new, other_than=old)
        return CatalogEdit(f"rename {old} to {new}", CatalogDelta({old: None, new: record}))

    return change


def activate_revision(folder: str, closed: str, successor: str, created_us: int) -> CatalogChange:
    """`successor` replaces the revision `closed` of the table in `folder`. Nothing changes when that one is no longer
    active."""

    def change(catalog: Catalog) -> CatalogEdit | None:
        name = owner_of(catalog, folder, closed)
        if name is None or catalog.tables[name].active != closed:
            return None
        record = catalog.tables[name]
        revisions = record.revisions | {
            closed: replace(record.revisions[closed], state=CLOSED),
            successor: RevisionRecord(state=ACTIVE, created_us=created_us),
        }
        after = replace(record, active=successor, revisions=revisions)
        return CatalogEdit(f"activate {name}", CatalogDelta({name: after}))

    return change


def drop_table(folder: str, closed: str, dropped_us: int) -> CatalogChange:
    """Drop the table in `folder` whose active revision is `closed`. Nothing changes if there is none."""

    def change(catalog: Catalog) -> CatalogEdit | None:
        name = owner_of(catalog, folder, closed)
        if name is None or catalog.tables[name].active != closed:
            return None
        record = catalog.tables[name]
        gone = DroppedRecord(name=name, revisions=tuple(record.revisions), dropped_us=dropped_us)
        return CatalogEdit(f"drop {name}", CatalogDelta({name: None}, {record.folder: gone}))

    return change


def tag_version(name: str, tag: str, revision: str, version: int) -> CatalogChange:
    """`tag` names this version from now on, instead of any other."""
    check_tag(tag)

    def change(catalog: Catalog) -> CatalogEdit | None:
        record = find_table(catalog, name)
        if revision not in record.revisions:
            raise TableNotFound(
                f"{name} is a different table now", hint="It was renamed, or dropped and created again. Open it again."
            )
        named = TagRecord(revision=revision, version=version)
        return CatalogEdit(f"tag {name} {tag}", CatalogDelta(tags={name: {tag: named}}))

    return change


def untag_version(name: str, tag: str) -> CatalogChange:
    """Remove `tag`."""

    def change(catalog: Catalog) -> CatalogEdit | None:
        record = find_table(catalog, name)
        find_tag(record, name, tag)
        return CatalogEdit(f"untag {name} {tag}", CatalogDelta(tags={name: {tag: None}}))

    return change
