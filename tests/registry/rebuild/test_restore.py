"""A registry that follows and one that is rebuilt hold the same, and that is what the store holds."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, Table, or_, select

from tests.registry.databases import follow
from tests.registry.databases import on_sqlite as on_sqlite
from tests.registry.databases import registry as registry
from tests.registry.workload import Workload
from tests.table.entries import append, name, new_table
from underlay.errors import ChecksumMismatch, Inconsistent
from underlay.index.root import encode_root
from underlay.index.sources.tree import scan_all
from underlay.registry.database.database import Database
from underlay.registry.database.schema import FILE_METADATA, JOBS, LAKE, LEASES, MIRRORED, REVISIONS, SEGMENTS, SOURCES
from underlay.registry.mirror import catch_up as catching_up
from underlay.registry.mirror.apply_catalog import apply_catalog
from underlay.registry.rebuild.difference import compare
from underlay.registry.rebuild.restore import RestoreProgress, restore_rows
from underlay.store.store import Store
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.wrapper import StoreMethod
from underlay.table.coordination.intent import Intent, encode_intent
from underlay.table.coordination.lease import LeaseRecord, encode_lease
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import Snapshot


@pytest.mark.parametrize("seed", [0, 2])
def test_a_registry_that_follows_equals_one_that_is_rebuilt(registry: Database, seed: int) -> None:
    workload = Workload(seed)
    for _ in range(8):
        workload.run(workload.chance.randint(1, 12))
        if workload.chance.random() < 0.7:
            follow(registry, workload)
    follow(registry, workload)
    assert compare(registry, workload.store) == []


def test_a_restored_registry_says_of_every_version_what_the_store_says(on_sqlite: Database) -> None:
    workload = Workload(6)
    workload.run(100)
    restore_rows(on_sqlite, workload.store)
    with on_sqlite.read() as connection:
        for row in connection.execute(select(REVISIONS)).all():
            revision = Revision(workload.store, row.folder, row.revision, workload.lake.surroundings)
            assert row.head == revision.head().version
            for version in range(row.head + 1):
                check_version(connection, revision, version)
            uris = set(connection.scalars(select(SOURCES.c.uri).where(SOURCES.c.revision == row.revision)))
            head = Snapshot(workload.store, revision.keys, revision.head())
            assert uris == {record.uri for record in scan_all(head.root.sources, head.fetch_pages)}


def check_version(connection: Connection, revision: Revision, version: int) -> None:
    """Files and segments of a version by one statement each are those of its snapshot."""
    snapshot = Snapshot(revision.store, revision.keys, revision.root(version))
    locations = at_version(connection, FILE_METADATA, "location", revision.id, version)
    assert locations == sorted(file.location for file in snapshot.files())
    segments = at_version(connection, SEGMENTS, "segment", revision.id, version)
    assert segments == sorted(ref.id for ref in snapshot.root.segments)


def at_version(connection: Connection, table: Table, key: str, revision: str, version: int) -> list[str]:
    is_live = or_(table.c.removed.is_(None), table.c.removed > version)
    asked = select(table.c[key]).where(table.c.revision == revision, table.c.added <= version, is_live)
    return sorted(connection.scalars(asked))


def test_the_workload_does_what_is_hard() -> None:
    """Rollbacks, merged segments, pages of sources, dropped tables and closed revisions are all met."""
    workload = Workload(6)
    workload.run(100)
    catalog = workload.lake.catalog()
    assert catalog.dropped
    assert any(len(table.revisions) > 1 for table in catalog.tables.values())
    places = [(t.folder, r) for t in catalog.tables.values() for r in t.revisions]
    places += [(folder, r) for folder, record in catalog.dropped.items() for r in record.revisions]
    revisions = [Revision(workload.store, *place, workload.lake.surroundings) for place in places]
    roots = [revision.root(v) for revision in revisions for v in range(revision.head().version + 1)]
    assert any(root.delta.restored is not None for root in roots)
    assert any(root.sources.tree is not None for root in roots)
    assert any(root.delta.added_segments for root in roots)
    named = {ref.id for root in roots for ref in root.segments}
    assert named - {ref.id for revision in revisions for ref in revision.head().segments}


def test_many_versions_are_folded_in_parts(on_sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = Workload(5)
    workload.run(100)
    follow(on_sqlite, workload)
    monkeypatch.setattr(catching_up, "_APPLIED_AT_ONCE", 3)
    monkeypatch.setattr(catching_up, "_READ_AT_ONCE", 2)
    assert compare(on_sqlite, workload.store) == []


def test_a_restore_replaces_whatever_was_there(registry: Database) -> None:
    other, workload = Workload(1), Workload(2)
    other.run(15)
    workload.run(15)
    restore_rows(registry, other.store)
    restore_rows(registry, workload.store)
    assert compare(registry, workload.store) == []


def test_a_restore_that_fails_leaves_the_registry_as_it_was(on_sqlite: Database) -> None:
    _, revision = new_table()
    restore_rows(on_sqlite, revision.store)
    before = rows_of(on_sqlite)
    append(revision, name())
    root = encode_root(append(revision, name()))
    revision.store.put(revision.keys.root(2), root[:-1])
    with pytest.raises(ChecksumMismatch, match=revision.keys.root(2)):
        restore_rows(on_sqlite, revision.store)
    assert rows_of(on_sqlite) == before


def test_a_missing_root_is_named(on_sqlite: Database) -> None:
    _, revision = new_table()
    for _ in range(3):
        append(revision, name())
    revision.store.delete([revision.keys.root(1)])
    with pytest.raises(Inconsistent, match=revision.keys.root(1)):
        restore_rows(on_sqlite, revision.store)
    with on_sqlite.read() as connection:
        assert connection.execute(select(LAKE)).all() == []


def test_what_is_committed_meanwhile_is_applied(on_sqlite: Database) -> None:
    _, revision = new_table()
    append(revision, name())

    def commit_more(progress: RestoreProgress) -> None:
        if revision.head().version < 3:
            append(revision, name())

    restored = restore_rows(on_sqlite, revision.store, commit_more)
    assert restored.version_count == revision.head().version + 1 == 3
    assert compare(on_sqlite, revision.store) == []


def test_requests_are_one_for_each_root_and_two_for_each_revision(on_sqlite: Database) -> None:
    _, revision = new_table()
    for _ in range(20):
        append(revision, name())
    store = CountingStore(revision.store)
    restored = restore_rows(on_sqlite, store)
    assert (restored.table_count, restored.version_count, restored.file_count) == (1, 21, 20)
    roots = [
        served
        for served in store.log
        if served.request.op is StoreMethod.GET and served.request.keys[0].endswith("root")
    ]
    assert len(roots) == 21
    assert store.request_count(StoreMethod.LIST_OBJECTS) <= 3  # the revision, and the catalog as long as it has no hint


def test_jobs_and_leases_are_those_in_the_store(on_sqlite: Database) -> None:
    _, revision = new_table()
    store: Store = revision.store
    intent = Intent(job="nightly", owner="me", epoch=3, started_us=5, renewed_us=7, ttl_us=9)
    lease = LeaseRecord(reader="report", owner="you", version=0, started_us=1, renewed_us=2, ttl_us=3)
    store.put(revision.keys.intent(intent.lock), encode_intent(intent))
    store.put(revision.keys.lease(lease.reader), encode_lease(lease))
    restore_rows(on_sqlite, store)
    with on_sqlite.read() as connection:
        assert connection.execute(select(JOBS)).all() == [(revision.id, "nightly", "me", 3, 5, 7, 9)]
        assert connection.execute(select(LEASES)).all() == [(revision.id, "report", "you", 0, 1, 2, 3)]


def test_a_registry_that_lags_differs_by_what_it_lacks(on_sqlite: Database) -> None:
    lake, revision = new_table()
    with on_sqlite.write() as connection:
        apply_catalog(connection, lake.catalog(), revision.store.url)
    found = compare(on_sqlite, revision.store)
    assert [(one.table, one.kind) for one in found] == [("revisions", "different"), ("versions", "missing")]


def rows_of(database: Database) -> dict[str, list[tuple[object, ...]]]:
    with database.read() as connection:
        return {table.name: sorted(map(tuple, connection.execute(select(table)))) for table in MIRRORED}
