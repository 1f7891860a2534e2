"""Reads, in one statement, where to begin looking for the newest catalog entry and version."""

from __future__ import annotations

from sqlalchemy import Connection, literal, select

from underlay.errors import InvalidRequest, RegistryRefused
from underlay.registry.database.database_errors import RESTORE_HINT
from underlay.registry.database.schema import LAKE, NONE, PHYSICAL_TABLES, REVISIONS
from underlay.store.key import check_key
from underlay.table.versions.registry_protocol import Known, KnownTable, Opening


def find_opening(connection: Connection, name: str | None) -> Opening | None:
    """What the registry knows about the catalog, and about the table of this name; None for an empty registry."""
    is_asked = PHYSICAL_TABLES.c.name == literal(name or "")
    found = connection.execute(
        select(
            LAKE.c.number,
            LAKE.c.commit_id,
            REVISIONS.c.folder,
            REVISIONS.c.revision,
            REVISIONS.c.head,
            REVISIONS.c.head_id,
        ).select_from(
            LAKE.outerjoin(PHYSICAL_TABLES, is_asked).outerjoin(
                REVISIONS, REVISIONS.c.revision == PHYSICAL_TABLES.c.active
            )
        )
    ).one_or_none()
    if found is None:
        return None
    catalog = _known(found.number, found.commit_id)
    if found.head is None or found.head == NONE:
        return Opening(catalog=catalog, table=None)
    head = _known(found.head, found.head_id)
    folder, revision = _place(found.folder, found.revision)
    return Opening(catalog=catalog, table=KnownTable(folder=folder, revision=revision, head=head))


def _known(number: object, commit_id: object) -> Known:
    """Check a row's values: SQLite accepts anything in any column, and somebody else may have written there."""
    if not isinstance(number, int) or number < 0 or not isinstance(commit_id, str):
        raise _strange("a commit", (number, commit_id))
    return Known(number, commit_id)


def _place(folder: object, revision: object) -> tuple[str, str]:
    try:
        if isinstance(folder, str) and folder and isinstance(revision, str) and check_key(f"{folder}/{revision}"):
            return folder, revision
    except InvalidRequest:
        pass
    raise _strange("a table's place", (folder, revision))


def _strange(what: str, found: object) -> RegistryRefused:
    return RegistryRefused(f"the registry holds an impossible value for {what}", found=repr(found), hint=RESTORE_HINT)
