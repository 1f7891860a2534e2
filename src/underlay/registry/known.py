"""Where to begin looking for the newest of everything: one statement."""

from __future__ import annotations

from sqlalchemy import Connection, literal, select

from underlay.registry.schema import LAKE, NONE, PHYSICAL_TABLES, REVISIONS
from underlay.table.known import Known, KnownTable, Opening


def find_opening(connection: Connection, name: str | None) -> Opening | None:
    """What the registry knows of the catalog, and of the table of this name; None when it was never told anything."""
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
    is_known = found.head is not None and found.head != NONE
    return Opening(
        catalog=Known(found.number, found.commit_id),
        table=KnownTable(folder=found.folder, revision=found.revision, head=Known(found.head, found.head_id))
        if is_known
        else None,
    )
