"""Records of runs in the registry are those in the store, followed, restored and compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Row, delete, select, update

from tests.registry.database.test_migration import stamp
from tests.registry.databases import on_sqlite as on_sqlite
from tests.registry.databases import registry as registry
from tests.table.entries import new_table
from underlay.registry.database.database import Database
from underlay.registry.database.migration import NEWEST, REVISIONS, migrate, recreate
from underlay.registry.database.schema import METADATA, RUNS
from underlay.registry.mirror.catch_up import follow
from underlay.registry.rebuild.difference import DifferenceKind, compare
from underlay.registry.rebuild.restore import restore_rows
from underlay.registry.registry import Registry
from underlay.table.coordination.run_record import RunRecord, State, encode_record
from underlay.table.versions.revision import Revision

RECORD = RunRecord(
    job="ingest-1",
    owner="host:1:ab",
    operation="ingest",
    state="failed",
    started_us=10,
    ended_us=30,
    duration_us=20,
    asked="in/*.csv",
    workers="this process",
    source_count=3,
    failed_count=1,
    row_count=300,
    rejected_count=2,
    source_bytes=4096,
    versions=(2, 4),
    version_count=2,
    reason="in/x.csv: cut short",
)


def put(revision: Revision, job: str = RECORD.job, state: State = "failed") -> None:
    record = RunRecord(
        **{name: getattr(RECORD, name) for name in RECORD.__struct_fields__} | {"job": job, "state": state}
    )
    revision.store.put(revision.keys.record(job), encode_record(record))


def runs_in(database: Database) -> list[Row]:
    with database.read() as connection:
        return list(connection.execute(select(RUNS).order_by(RUNS.c.job)))


def test_a_restore_brings_every_record_that_can_be_read(registry: Database):
    _, revision = new_table()
    put(revision)
    put(revision, "ingest-2")
    revision.store.put(revision.keys.record("ingest-3"), b"garbage")
    restore_rows(registry, revision.store)
    first, second = runs_in(registry)
    assert first._asdict() == {
        "revision": revision.id,
        **{name: getattr(RECORD, name) for name in RECORD.__struct_fields__ if name not in ("format", "ttl_us")},
        "versions": "[2,4]",
    }
    assert second.job == "ingest-2"
    assert compare(registry, revision.store) == []


def test_a_record_that_the_registry_lacks_has_too_many_or_says_otherwise_is_a_difference(on_sqlite: Database):
    _, revision = new_table()
    put(revision, "a")
    put(revision, "b")
    restore_rows(on_sqlite, revision.store)
    put(revision, "c")
    with on_sqlite.write() as connection:
        connection.execute(delete(RUNS).where(RUNS.c.job == "a"))
        connection.execute(update(RUNS).where(RUNS.c.job == "b").values(row_count=1))
    found = [(one.table, one.key[1], one.kind) for one in compare(on_sqlite, revision.store)]
    assert found == [
        ("runs", "a", DifferenceKind.MISSING),
        ("runs", "b", DifferenceKind.DIFFERENT),
        ("runs", "c", DifferenceKind.MISSING),
    ]


def test_follow_brings_new_records_and_renewed_ones_and_takes_those_away_that_are_gone(registry: Database):
    _, revision = new_table()
    put(revision, "gone")
    put(revision, "watch", "watching")
    recreate(registry)
    restore_rows(registry, revision.store)
    put(revision, "new")
    put(revision, "watch", "stopped")
    revision.store.delete([revision.keys.record("gone")])
    follow(registry, revision.store)
    assert [(row.job, row.state) for row in runs_in(registry)] == [("new", "failed"), ("watch", "stopped")]
    assert compare(registry, revision.store) == []


@pytest.mark.parametrize("earlier", REVISIONS[:-1])
def test_after_a_migration_from_every_earlier_schema_all_records_are_there(on_sqlite: Database, earlier: str):
    _, revision = new_table()
    put(revision)
    recreate(on_sqlite)
    restore_rows(on_sqlite, revision.store)
    later = {"0001": ("runs", "footer_cache", "jobs", "leases", "gc_manifest"), "0002": ("runs", "footer_cache")}
    with on_sqlite.write() as connection:
        for name in later.get(earlier, ("runs",)):
            METADATA.tables[name].drop(connection)
    stamp(on_sqlite, earlier)
    assert migrate(on_sqlite) == (earlier, NEWEST)
    follow(on_sqlite, revision.store)
    assert len(runs_in(on_sqlite)) == 1
    assert compare(on_sqlite, revision.store) == []


def test_a_record_that_was_put_is_mirrored_in_the_background(tmp_path: Path):
    _, revision = new_table()
    followed = Registry(f"sqlite:///{tmp_path / 'r.sqlite'}", revision.store)
    put(revision)
    followed.saw_run(revision.keys, revision.id, RECORD.job)
    assert followed.wait(120)
    followed.follow()
    assert followed.differences() == []
    followed.close()
