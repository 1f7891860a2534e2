"""Checks whether a registry belongs to this store's history."""

from __future__ import annotations

from sqlalchemy import select

from underlay.errors import Damaged, NotFound, RegistryRefused
from underlay.index.catalog import decode_entry
from underlay.index.keys import RevisionKeys, catalog_key
from underlay.index.sealed_json import decode_ids
from underlay.registry.database.database import Database
from underlay.registry.database.database_errors import RESTORE_HINT
from underlay.registry.database.schema import LAKE, NONE, REVISIONS
from underlay.registry.mirror.read_versions import readers
from underlay.runtime.threads import side_by_side
from underlay.store.store import Store


def check_history(database: Database, store: Store) -> None:
    """Refuse a registry whose catalog entry is not in the store. One statement, one request."""
    with database.read() as connection:
        known = connection.execute(select(LAKE)).one_or_none()
    if known is None:
        return
    key = catalog_key(known.number)
    try:
        found = decode_entry(store.get(key)[0]).commit_id
    except NotFound:
        found = None
    except Damaged as error:
        raise error.at(store.place_of(key)) from None
    if found != known.commit_id:
        raise _ahead(store.place_of(key), known.commit_id, found)


def check_head(store: Store, folder: str, revision: str, head: int, head_id: str | None) -> None:
    """Refuse a registry whose newest version of a revision is not in the store. One request.

    That happens when the store was restored from an older copy, which may have grown again since.
    """
    key = RevisionKeys.of(folder, revision).root(head)
    try:
        found = decode_ids(store.get(key)[0]).commit_id
    except NotFound:
        found = None
    except Damaged as error:
        raise error.at(store.place_of(key)) from None
    if found != head_id:
        raise _ahead(store.place_of(key), head_id, found)


def find_problem(database: Database, store: Store) -> RegistryRefused | None:
    """Why the registry does not match this store; None when it does. One request, and one for each revision."""
    try:
        check_history(database, store)
        with database.read() as connection:
            known = connection.execute(select(REVISIONS).where(REVISIONS.c.head != NONE)).all()
        side_by_side(
            lambda row: check_head(store, row.folder, row.revision, row.head, row.head_id), known, readers(store)
        )
    except RegistryRefused as error:
        return error
    return None


def _ahead(place: str, known: str | None, found: str | None) -> RegistryRefused:
    return RegistryRefused(
        "the registry knows a commit that the store does not have",
        place=place,
        expected=known,
        found=found or "nothing",
        hint="It belongs to another lake, or the store was restored from an older copy. Check the lake first. "
        + RESTORE_HINT,
    )
