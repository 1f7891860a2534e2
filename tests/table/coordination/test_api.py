"""Jobs and leases as users take them."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay
from tests.table.coordination.owners import LaterStore
from underlay.api.jobs_and_leases import list_jobs, list_leases
from underlay.errors import InvalidRequest, JobTakenOver, LeaseHeld, RevisionClosed, TableNotFound
from underlay.store import Store, open_store
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.coordination.intent import Intent
from underlay.table.coordination.lease import LeaseRecord

ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def store() -> Store:
    return open_store(f"memory://{os.urandom(6).hex()}")


@pytest.fixture
def trips(store: Store) -> underlay.Table:
    table = underlay.connect(store).create_table("taxi.trips", "id bigint")
    table.append(ROWS)
    return table


def later(store: Store) -> underlay.Table:
    return underlay.connect(LaterStore(store)).table("taxi.trips")


def test_a_job_writes_through_its_table(trips: underlay.Table):
    with trips.job("nightly") as job:
        assert (job.name, job.epoch, job.is_lost) == ("nightly", 1, False)
        assert job.table.append(ROWS).version == 3
        assert job.table.count() == 4
    assert trips.count() == 4
    assert [version.operation for version in trips.history()] == ["append", "job", "append", "create"]


def test_every_change_of_a_job_that_was_taken_over_is_refused(trips: underlay.Table, store: Store, tmp_path: Path):
    pq.write_table(ROWS, tmp_path / "more.parquet")
    with trips.job("nightly") as job, later(store).job("nightly"):
        version = trips.version
        for change in (
            lambda: job.table.append(ROWS),
            lambda: job.table.register(str(tmp_path / "more.parquet")),
            lambda: job.table.comment("cabs"),
            lambda: job.table.rollback(1),
        ):
            with pytest.raises(JobTakenOver):
                change()
        assert trips.version == version
        assert not job.renew()
        assert job.is_lost


def test_the_same_changes_go_through_while_the_job_is_held(trips: underlay.Table, tmp_path: Path):
    pq.write_table(ROWS, tmp_path / "more.parquet")
    with trips.job("nightly") as job:
        job.table.append(ROWS)
        job.table.register(str(tmp_path / "more.parquet"))
        job.table.comment("cabs")
        assert job.table.count() == 6
        job.table.rollback(1)
        assert (trips.count(), trips.definition.comment) == (2, None)


def test_a_job_does_not_follow_a_dropped_table(trips: underlay.Table, store: Store):
    with trips.job("nightly") as job:
        underlay.connect(store).drop_table("taxi.trips")
        with pytest.raises(RevisionClosed, match="The table was dropped"):
            job.table.append(ROWS)
        with pytest.raises(RevisionClosed):
            job.table.count()


def test_nothing_is_changed_by_a_job_that_was_released(trips: underlay.Table, tmp_path: Path):
    pq.write_table(ROWS, tmp_path / "more.parquet")
    with trips.job("nightly") as job:
        pass
    version = trips.version
    for change in (
        lambda: job.table.append(ROWS),
        lambda: job.table.register(str(tmp_path / "more.parquet")),
        lambda: job.table.comment("cabs"),
        lambda: job.table.rollback(1),
    ):
        with pytest.raises(InvalidRequest, match="the job nightly was released"):
            change()
    assert trips.version == version
    assert job.table.count() == 2
    trips.append(ROWS)


def test_one_exclusive_job_at_a_time(trips: underlay.Table, store: Store):
    with trips.job("ingest", exclusive=True), pytest.raises(LeaseHeld):
        trips.job("compact", exclusive=True)
    with trips.job("compact", exclusive=True) as job, trips.job("other", take_over=True):
        job.table.append(ROWS)


def test_a_version_takes_no_job(trips: underlay.Table):
    with pytest.raises(InvalidRequest):
        trips.at(version=1).job("nightly")


def test_a_job_ends_with_an_error_of_its_work(trips: underlay.Table):
    with pytest.raises(ZeroDivisionError), trips.job("nightly"):
        _ = 1 / 0
    trips.job("nightly").release()


def test_a_lease_reads_one_version(trips: underlay.Table, store: Store):
    with trips.lease("report") as held:
        trips.append(ROWS)
        assert (held.version, held.table.version, held.table.count(), held.is_lost) == (1, 1, 2, False)
        assert held.reader.startswith("report-")
        assert held.renew()
        [listed] = list_leases(LakeCatalog(store), "taxi.trips")
        assert (listed.table, listed.version, listed.reader, listed.is_alive) == ("taxi.trips", 1, held.reader, True)
    assert list_leases(LakeCatalog(store)) == []


def test_a_lease_on_an_older_version(trips: underlay.Table, store: Store):
    with trips.at(version=0).lease() as held:
        assert held.table.count() == 0
        assert [one.version for one in list_leases(LakeCatalog(store))] == [0]


def test_jobs_of_all_tables_are_listed_with_their_state(trips: underlay.Table, store: Store):
    zones = underlay.connect(store).create_table("taxi.zones", "id bigint")
    with (
        trips.job("nightly", note="May") as old,
        trips.job("weekly", ttl_seconds=6000),
        zones.job("compact", exclusive=True),
        later(store).job("monthly"),
    ):
        found = list_jobs(LakeCatalog(LaterStore(store, 300)))
        assert [(job.table, job.job, job.is_alive, job.is_exclusive, job.epoch) for job in found] == [
            ("taxi.trips", "monthly", False, False, 1),
            ("taxi.trips", "nightly", False, False, 1),
            ("taxi.trips", "weekly", True, False, 1),
            ("taxi.zones", "compact", False, True, 1),
        ]
        assert (found[1].note, found[1].ttl.total_seconds(), found[1].is_fenced) == ("May", 60, False)
        assert found[1].started <= found[1].renewed
        assert [job.job for job in list_jobs(LakeCatalog(store), "taxi.zones")] == ["compact"]
        assert old.renew()


def test_a_job_that_was_taken_over_is_shown_as_such(trips: underlay.Table, store: Store):
    with trips.job("nightly"):
        key = next(found.key for found in store.list_objects() if "/intents/" in found.key)
        data = bytes(store.get(key)[0])
        with later(store).job("nightly"):
            store.put(key, data)
            [listed] = list_jobs(LakeCatalog(store))
            assert (listed.epoch, listed.is_fenced) == (1, True)


def test_an_intent_and_a_lease_that_cannot_be_read_are_listed_as_such(trips: underlay.Table, store: Store):
    with trips.job("nightly"), trips.lease("report"):
        for part, name in (("/intents/", "nightly"), ("/leases/", "report")):
            key = next(found.key for found in store.list_objects() if part in found.key)
            store.put(key.replace(name, f"x{name}"), b"garbage")
        good_job, bad_job = list_jobs(LakeCatalog(store))
        good_lease, bad_lease = list_leases(LakeCatalog(store))
    assert (good_job.job, good_job.problem, good_lease.version, good_lease.problem) == ("nightly", None, 2, None)
    assert (bad_job.job, bad_job.owner, bad_job.epoch, bad_job.started) == ("xnightly", None, None, None)
    assert (bad_job.is_alive, bad_job.is_fenced) == (True, None)
    assert "_index/intents/xnightly" in (bad_job.problem or "")
    assert bad_lease.reader.startswith("xreport-")
    assert (bad_lease.owner, bad_lease.version, bad_lease.started, bad_lease.is_alive) == (None, None, None, True)
    assert "_index/leases/xreport-" in (bad_lease.problem or "")


def test_jobs_are_listed_under_a_root_that_cannot_be_read(trips: underlay.Table, store: Store):
    with trips.job("nightly"):
        root = max(found.key for found in store.list_objects() if found.key.endswith(".root"))
        store.put(root, b"garbage")
        [listed] = list_jobs(LakeCatalog(store))
    assert (listed.job, listed.is_alive, listed.is_fenced) == ("nightly", True, None)


def test_the_registry_skips_what_cannot_be_read(tmp_path: Path):
    lake = underlay.connect(tmp_path / "lake", registry=f"sqlite:///{tmp_path}/registry.sqlite")
    trips = lake.create_table("taxi.trips", "id bigint")
    assert lake.registry is not None
    with trips.job("nightly") as job, trips.lease("report"):
        for part in ("intents", "leases"):
            for file in (tmp_path / "lake").rglob(f"_index/{part}/*"):
                file.write_bytes(b"garbage")
                file.with_name("other").write_bytes(b"garbage")
        lake.registry.restore()
        job.table.append(ROWS)
        assert lake.registry.wait(120)
        assert lake.registry.status().problem is None
    assert lake.registry.wait(120)
    assert lake.registry.differences() == []


def test_jobs_of_a_table_that_is_not_there(store: Store, trips: underlay.Table):
    with pytest.raises(TableNotFound):
        list_jobs(LakeCatalog(store), "taxi.none")
    with pytest.raises(TableNotFound):
        list_leases(LakeCatalog(store), "taxi.none")


@pytest.mark.parametrize("record", [Intent, LeaseRecord], ids=["intent", "lease"])
def test_every_field_is_described(record: type[msgspec.Struct]):
    text = (Path(__file__).parents[3] / "docs" / "leases.md").read_text()
    for field in record.__struct_fields__:
        assert f"`{field}`" in text, field
