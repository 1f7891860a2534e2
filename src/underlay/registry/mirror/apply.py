"""Applies versions to the registry in one transaction, guarded by the head that it follows.

Nothing here begins or ends a transaction: `connection` is in one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Table, Update, and_, bindparam, delete, insert, select, update

from underlay.errors import RegistryRefused
from underlay.index.outline import FileFacts
from underlay.index.root import Retention
from underlay.registry.database.database_errors import RESTORE_HINT
from underlay.registry.database.schema import FILE_METADATA, NONE, REVISIONS, SEGMENTS, SOURCES, VERSIONS
from underlay.registry.mirror.fold import Mirrored, RegistryDelta, Row, VersionStep, fold, no_files
from underlay.runtime.pace import in_turns

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

PREPARED = "prepared"
"""The state of a revision that no catalog entry names yet."""


def mirrored(connection: Connection, revision: str) -> Mirrored:
    """What the registry holds about a revision. One statement; files are read on demand."""
    live = and_(SEGMENTS.c.revision == REVISIONS.c.revision, SEGMENTS.c.removed.is_(None))
    found = connection.execute(
        select(REVISIONS.c.head, REVISIONS.c.head_id, REVISIONS.c.file_count, SEGMENTS.c.segment)
        .select_from(REVISIONS.outerjoin(SEGMENTS, live))
        .where(REVISIONS.c.revision == revision)
    ).all()
    if not found or found[0].head == NONE:
        return Mirrored()
    return Mirrored(
        head=found[0].head,
        head_id=found[0].head_id,
        file_count=found[0].file_count,
        segments=frozenset(row.segment for row in found if row.segment is not None),
        live_files=lambda: live_files(connection, revision) if found[0].file_count else no_files(),
    )


def hold(connection: Connection, revision: str) -> None:
    """Lock the revision until the transaction ends, so that several statements see one state of it.

    A separate statement: on PostgreSQL, a statement that waited for a lock returns the locked row in its new state, but
    joined rows in their old one.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(REVISIONS.c.head).where(REVISIONS.c.revision == revision).with_for_update())


def live_files(connection: Connection, revision: str) -> Mapping[str, FileFacts]:
    """The files of the newest applied version, by location."""
    columns = [FILE_METADATA.c[name] for name in FileFacts._fields]
    wanted = select(*columns).where(FILE_METADATA.c.revision == revision, FILE_METADATA.c.removed.is_(None))
    return {row[0]: FileFacts(*row) for row in connection.execute(wanted)}


def apply_steps(connection: Connection, folder: str, revision: str, steps: Sequence[VersionStep]) -> int:
    """Apply the versions in `steps`, which are in order, that the registry lacks. Returns the head afterwards.

    The head may be newer than `steps`. If it is older, the registry lacks versions before them, and nothing was
    applied. Raises RegistryRefused when the registry holds another history.
    """
    if any(step.everything is not None for step in steps):
        hold(connection, revision)  # files are read after the head
    before = mirrored(connection, revision)
    known = next((step.outline for step in steps if step.outline.version == before.head), None)
    if known is not None and known.commit_id != before.head_id:
        raise RegistryRefused(
            f"the registry holds another version {before.head}",
            place=revision,
            expected=known.commit_id,
            found=before.head_id,
            hint=f"The registry or the store was restored from a copy. {RESTORE_HINT}",
        )
    new = [step for step in steps if step.outline.version > before.head]
    if not new or new[0].outline.version > before.head + 1:
        return before.head
    batch = fold(revision, before, new)
    if not apply_batch(connection, folder, batch):
        return mirrored(connection, revision).head
    return batch.last.version


def apply_batch(connection: Connection, folder: str, batch: RegistryDelta) -> bool:
    """Move a revision of the table in `folder` forward. Returns False, and writes nothing, if its head has moved since.

    Raises RegistryRefused when the registry lacks rows that the batch ends.
    """
    is_applied = _move_head(connection, batch) or (batch.before.head == NONE and _begin(connection, folder, batch))
    if is_applied:
        _write(connection, batch)
    return is_applied


def _write(connection: Connection, batch: RegistryDelta) -> None:
    """Write the rows of a batch after the head was moved."""
    _end(connection, SEGMENTS, "segment", batch.revision, batch.ended_segments)
    _end(connection, FILE_METADATA, "location", batch.revision, batch.ended_files)
    if batch.replaces_sources:
        connection.execute(delete(SOURCES).where(SOURCES.c.revision == batch.revision))
    insert_rows(connection, VERSIONS, batch.versions)
    insert_rows(connection, SEGMENTS, batch.segments)
    insert_rows(connection, FILE_METADATA, batch.files)
    upsert_rows(connection, SOURCES, batch.sources)
    if batch.retention is not None:
        _forget(connection, batch.revision, batch.retention)


def _forget(connection: Connection, revision: str, left: Retention) -> None:
    """Delete the rows of expired versions, and let older rows begin with the first version of the unbroken rest: so it
    makes no difference whether versions were applied before they expired, or never.
    """
    columns = VERSIONS.c
    is_expired = and_(columns.revision == revision, columns.version < left.begin, columns.version.not_in(left.also))
    connection.execute(delete(VERSIONS).where(is_expired))
    for table in (SEGMENTS, FILE_METADATA):
        connection.execute(delete(table).where(table.c.revision == revision, table.c.removed <= left.begin))
        older = update(table).where(table.c.revision == revision, table.c.added < left.begin)
        connection.execute(older.values(added=left.begin))


def _head_values(batch: RegistryDelta) -> Row:
    """The columns of `revisions` that a batch sets."""
    last = batch.last
    values: Row = {
        "head": last.version,
        "head_id": last.commit_id,
        "row_count": last.row_count,
        "file_count": last.file_count,
        "data_bytes": last.data_bytes,
    }
    return values if batch.created_us is None else values | {"created_us": batch.created_us}


def insert_rows(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows that do not exist yet."""
    for some in in_turns(rows) if rows else ():
        connection.execute(insert(table), some)


def upsert_rows(connection: Connection, table: Table, rows: Sequence[Row], changed: Collection[str] = ()) -> None:
    """Insert rows; if a key exists, set these columns of its row, or all."""
    if not rows:
        return
    statement = _insert_into(connection, table)
    names = changed or [column.name for column in table.c if not column.primary_key]
    values = {name: statement.excluded[name] for name in names}
    connection.execute(statement.on_conflict_do_update(index_elements=table.primary_key, set_=values), rows)


def insert_new(connection: Connection, table: Table, row: Row) -> bool:
    """Insert a row unless its key exists. Returns whether it was inserted."""
    # Drivers disagree on the row count of an insert.
    statement = _insert_into(connection, table).on_conflict_do_nothing().returning(*table.primary_key)
    return connection.execute(statement, row).first() is not None


def _insert_into(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """An insert with ON CONFLICT."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql  # takes 40 ms to import, which SQLite users are spared

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


def _move_head(connection: Connection, batch: RegistryDelta) -> bool:
    before, columns = batch.before, REVISIONS.c
    is_same = columns.head_id.is_(None) if before.head_id is None else columns.head_id == before.head_id
    guarded = update(REVISIONS).where(columns.revision == batch.revision, columns.head == before.head, is_same)
    return connection.execute(guarded.values(_head_values(batch))).rowcount == 1


def _begin(connection: Connection, folder: str, batch: RegistryDelta) -> bool:
    """Insert the row of a revision that no catalog entry names yet."""
    row = {"revision": batch.revision, "folder": folder, "state": PREPARED, **_head_values(batch)}
    return insert_new(connection, REVISIONS, row)


def _end(connection: Connection, table: Table, key: str, revision: str, ended: Mapping[str, int]) -> None:
    """End rows that are no longer true. Must come before new rows, which may have the same key."""
    if not ended:
        return
    statement: Update = (
        update(table)
        .where(table.c.revision == revision, table.c[key] == bindparam("of"), table.c.removed.is_(None))
        .values(removed=bindparam("since"))
    )
    found = connection.execute(statement, [{"of": of, "since": since} for of, since in ended.items()]).rowcount
    if found != len(ended):
        raise RegistryRefused(
            f"the registry lacks rows of {table.name} that the store's versions end",
            place=revision,
            expected=len(ended),
            found=found,
            hint=RESTORE_HINT,
        )
