"""A sweep deletes what no version references, and nothing else, whoever writes and reads meanwhile."""

from __future__ import annotations

import shutil
from contextlib import suppress
from datetime import timedelta
from uuid import uuid4

import pyarrow as pa
import pytest

from tests.gate import every_third
from tests.maintain.audit import audit
from tests.maintain.late_store import LateStore
from underlay.api.lake import Lake, connect
from underlay.api.table import Table
from underlay.change.rows.append import add_rows
from underlay.errors import CommitConflict, Inconsistent, InvalidRequest, UnderlayError
from underlay.index.keys import ObjectKind, RevisionKeys
from underlay.index.operation import Operation
from underlay.store import Store, open_store
from underlay.store.testing import CountingStore, Crashed, Fault, StoreMethod, at_every_request
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.catalog.lifecycle import prepare_successor
from underlay.table.commit import flush_and_merge
from underlay.table.commit.commit import commit
from underlay.table.coordination.upload_intent import announce
from underlay.table.open_table import Head
from underlay.table.versions.environment import wait_for_background

WEEKS = timedelta(days=30)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "word": [f"w{one}" for one in ids]})


def lake_of(store: Store) -> Lake:
    return connect(store, registry="none")


def make(store: Store) -> Table:
    table = lake_of(store).create_table("shop.sales", "id bigint, word string", key=["id"])
    for number in range(4):
        table.append(rows(number))
    table.overwrite(rows(7, 8, 9))
    return table


def litter(store: Store, table: Table) -> list[str]:
    """What writers that died left."""
    keys = table.snapshot().keys
    gone = f"{0:09}-{1:016x}.parquet"
    left = [
        f"{keys.folder}/{gone}",
        keys.sidecar(gone),
        keys.segment(str(uuid4())),
        keys.source_page(str(uuid4())),
        f"{keys.staging('write-dead')}/part-0.parquet",
    ]
    for key in left:
        store.put(key, b"left")
    return left


def all_keys(store: Store) -> set[str]:
    return {found.key for found in store.list_objects()}


def test_a_dry_run_is_the_default_and_deletes_nothing(store):
    table = make(store)
    left = litter(store, table)
    store.late = WEEKS
    before = all_keys(store)
    found = lake_of(store).sweep()
    assert (found.is_dry_run, found.object_count, found.size_bytes) == (True, len(left), 4 * len(left))
    assert set(found.examples) == set(left)
    assert all_keys(store) == before


def test_what_died_writers_left_goes_and_nothing_else(store):
    table = make(store)
    left = litter(store, table)
    foreign = [f"{table.snapshot().keys.folder}/notes.txt", "shop/sales/readme.md", "other/file.parquet"]
    for key in foreign:
        store.put(key, b"mine")
    store.late = WEEKS
    before = all_keys(store)
    done = lake_of(store).sweep(dry_run=False)
    assert (done.object_count, done.folders[0].version) == (len(left), 6)
    assert before - all_keys(store) == set(left)
    assert audit(store) == (set(), set())
    assert sorted(lake_of(store).table("shop.sales").to_arrow()["id"].to_pylist()) == [7, 8, 9]
    assert lake_of(store).table("shop.sales", version=4).count() == 4


def test_files_of_expired_versions_go_and_those_of_others_stay(store):
    table = make(store)
    table.tag("audit", 2)
    store.late = WEEKS
    table.expire("1d", 1, dry_run=False)
    done = lake_of(store).sweep(dry_run=False)
    assert done.folders[0].kinds["file"] == 2
    assert audit(store) == (set(), set())
    fresh = lake_of(store).table("shop.sales")
    assert (fresh.count(), fresh.at(tag="audit").to_arrow().num_rows) == (3, 2)
    assert not any(one.findings for one in lake_of(store).verify().tables[0].revisions)


def test_what_is_younger_than_the_grace_period_stays(store):
    table = make(store)
    litter(store, table)
    store.late = timedelta(hours=2)
    assert lake_of(store).sweep("3h", dry_run=False).object_count == 0
    assert lake_of(store).sweep("1h", dry_run=False).object_count == 5
    assert lake_of(store).table("shop.sales").version == 6


def test_a_sweep_that_finds_nothing_commits_nothing(store):
    make(store)
    store.late = WEEKS
    assert lake_of(store).sweep(dry_run=False).object_count == 0
    assert lake_of(store).table("shop.sales").version == 5


def test_what_a_running_job_uploaded_stays_until_the_job_is_dead(store):
    table = make(store)
    intent = announce(table.read_head().revision, ttl_seconds=604_800)
    keys = table.snapshot().keys
    store.put(f"{keys.staging(intent.job)}/part-0.parquet", b"x")
    litter(store, table)
    store.late = timedelta(days=3)
    assert lake_of(store).sweep("1h", dry_run=False).object_count == 0
    store.late = WEEKS
    done = lake_of(store).sweep("1h", dry_run=False)
    assert done.folders[0].kinds == {
        "file": 1,
        "sidecar": 1,
        "segment": 1,
        "source page": 1,
        "staged file": 2,
        "intent": 1,
    }


def test_a_writer_that_lost_to_a_sweep_writes_its_files_again(store):
    table = make(store)
    head = table.read_head()
    sweeper = lake_of(store)

    def overtaken() -> None:
        litter(store, table)
        store.late = WEEKS
        sweeper.sweep("1h", dry_run=False)

    class Overtaking(LateStore):
        swept = False

        def create(self, key, data):
            if key.endswith(".root") and not self.swept:
                self.swept = True
                overtaken()
            return super().create(key, data)

    slow = connect(Overtaking(store), registry="none").table("shop.sales")
    slow.append(rows(42))
    assert sorted(lake_of(store).table("shop.sales").to_arrow()["id"].to_pylist()) == [7, 8, 9, 42]
    assert audit(store).missing == set()
    assert lake_of(store).table("shop.sales").version == head.root.version + 2


def test_a_writer_whose_work_cannot_be_done_again_is_refused_and_nothing_is_lost(store):
    table = make(store)
    opened = table.writable()
    head = table.read_head()
    other = lake_of(store)
    transaction = opened.begin(Head(head.revision, head.root), Operation.APPEND)
    add_rows(transaction, lambda: rows(1).to_reader())
    for key, data in transaction.objects.items():
        store.put(key, data)
    transaction.objects.clear()
    store.late = WEEKS
    other.sweep("1h", dry_run=False)
    with pytest.raises(CommitConflict, match="horizon of a sweep"):
        commit(transaction)
    assert lake_of(store).table("shop.sales").count() == 3


def test_a_dropped_table_goes_after_its_retention(store):
    table = make(store)
    folder = table.snapshot().keys.folder
    lake = lake_of(store)
    lake.drop_table("shop.sales")
    store.late = timedelta(days=2)
    assert lake_of(store).sweep(dry_run=False).object_count == 0
    store.late = timedelta(days=9)
    done = lake_of(store).sweep(dry_run=False)
    assert done.folders[0].reason == "dropped"
    assert not any(key.startswith(folder) for key in all_keys(store))
    again = lake_of(store).create_table("shop.sales", "id bigint")
    assert again.count() == 0


def test_a_replaced_revision_goes_after_its_retention_unless_a_tag_keeps_it(store):
    table = make(store)
    table.tag("audit", 2)
    old = table.snapshot().keys.folder
    lake_of(store).sql("create or replace table shop.sales (id bigint)")
    store.late = WEEKS
    assert lake_of(store).sweep(dry_run=False).object_count == 0
    assert lake_of(store).table("shop.sales", tag="audit").to_arrow().num_rows == 2
    lake_of(store).table("shop.sales").untag("audit")
    assert {one.reason for one in lake_of(store).sweep(dry_run=False).folders} == {"replaced"}
    assert not any(key.startswith(old) for key in all_keys(store))
    assert len(lake_of(store).revisions("shop.sales")) == 1


def test_a_revision_that_was_never_named_goes(store):
    table = make(store)
    left = prepare_successor(LakeCatalog(store), "shop.sales", table.definition)
    assert lake_of(store).sweep("1h", dry_run=False).object_count == 0
    store.late = WEEKS
    assert {one.reason for one in lake_of(store).sweep(dry_run=False).folders} == {"never named"}
    assert not any(key.startswith(left.place) for key in all_keys(store))


def test_a_grace_period_below_the_reader_age_is_refused(store):
    make(store)
    for grace in ("0s", "59m", timedelta(0)):
        with pytest.raises(InvalidRequest, match=r"minimum reader age.*care\.reader_age"):
            lake_of(store).sweep(grace)
    with pytest.raises(InvalidRequest, match="span of time"):
        lake_of(store).sweep("tomorrow")


def test_a_lake_inside_another_is_refused(tmp_path):
    outer, inner = open_store(tmp_path / "lake"), open_store(tmp_path / "lake" / "shop")
    make(outer)
    make(inner)
    for store in (outer, inner):
        with pytest.raises(InvalidRequest, match="another lake"):
            lake_of(store).sweep()


def test_a_store_that_was_put_back_from_an_older_copy_is_refused(store):
    table = make(store)
    table.tag("audit")
    keys = table.snapshot().keys
    store.delete([keys.root(5), keys.root(4)])
    store.late = WEEKS
    with pytest.raises(Inconsistent, match="restored from an older copy"):
        lake_of(store).sweep(dry_run=False)


def test_a_store_that_is_older_than_its_registry_is_refused(tmp_path):
    registry = f"sqlite:///{tmp_path / 'registry.sqlite'}"
    with connect(tmp_path / "lake", registry=registry) as lake:
        table = lake.create_table("shop.sales", "id bigint")
        table.append(pa.table({"id": [1]}))
        shutil.copytree(tmp_path / "lake", tmp_path / "copy")
        table.append(pa.table({"id": [2]}))
        assert lake.registry.wait(600)
    shutil.rmtree(tmp_path / "lake")
    shutil.copytree(tmp_path / "copy", tmp_path / "lake")
    with connect(tmp_path / "lake", registry=registry) as lake:
        for work in (lake.sweep, lake.vacuum, lake.table("shop.sales").vacuum):
            with pytest.raises(Inconsistent, match="the registry names version 2, but the newest in the store is 1"):
                work(dry_run=False)
        assert lake.table("shop.sales").version == 1


class OvertakenStore(LateStore):
    """Whenever the hint of the head is read, another writer has just committed, and left a newer hint."""

    commits = 0

    def around(self, request, call, received_bytes):
        if any(key.endswith("/_index/hint") for key in request.keys) and request.op is StoreMethod.GET:
            table = lake_of(self.inner).table("shop.sales")
            for number in range(20, 28):  # the writer of every eighth version leaves a hint
                table.append(rows(number))
                self.commits += 1
            wait_for_background()
        return call()


def test_commits_of_others_while_a_sweep_begins_are_not_taken_for_a_restored_copy():
    inner = open_store(f"memory://{uuid4()}")
    left = litter(inner, make(inner))
    before = lake_of(inner).table("shop.sales").version
    store = OvertakenStore(inner, WEEKS)
    assert lake_of(store).sweep(dry_run=False).object_count == len(left)
    assert store.commits
    assert lake_of(inner).table("shop.sales").version == before + store.commits + 1
    assert audit(inner) == (set(), set())


def test_a_clock_that_went_back_is_refused(store):
    make(store)
    store.late = -timedelta(days=2)
    with pytest.raises(Inconsistent, match="clock"):
        lake_of(store).sweep(dry_run=False)


def test_requests_grow_with_the_listing_and_not_with_the_number_of_objects(store):
    table = make(store)
    folder = table.snapshot().keys.folder
    for number in range(2500):
        store.put(f"{folder}/{number:09}-{number + 1:016x}.parquet", b"x")
    store.late = WEEKS
    counting = CountingStore(store)
    done = lake_of(counting).sweep(dry_run=False)
    assert done.object_count == 2500
    assert counting.request_count(StoreMethod.DELETE) <= 3 + 3
    assert counting.request_count(StoreMethod.HEAD) + counting.request_count(StoreMethod.GET) < 60


def test_every_key_of_a_revision_is_known_for_what_it_is(store):
    keys = RevisionKeys("a/b/01890000-0000-7000-8000-000000000000")
    name = f"{3:09}-{5:016x}.parquet"
    found = {
        keys.file(name): ObjectKind.FILE,
        keys.sidecar(name): ObjectKind.SIDECAR,
        keys.root(4): ObjectKind.ROOT,
        keys.hint: ObjectKind.HINT,
        keys.segment(str(uuid4())): ObjectKind.SEGMENT,
        keys.source_page(str(uuid4())): ObjectKind.PAGE,
        keys.intent("x"): ObjectKind.INTENT,
        keys.record("x"): ObjectKind.RECORD,
        keys.lease("x"): ObjectKind.LEASE,
        f"{keys.staging('x')}/a/b.parquet": ObjectKind.STAGED,
        f"{keys.folder}/data.parquet": ObjectKind.FOREIGN,
        f"{keys.folder}/_index/notes": ObjectKind.FOREIGN,
        f"{keys.folder}/_index/segments/x.arrow": ObjectKind.FOREIGN,
        f"{keys.folder}/sub/{name}": ObjectKind.FOREIGN,
        f"{keys.folder}/_staging": ObjectKind.FOREIGN,
    }
    assert {key: keys.kind_of(key)[0] for key in found} == found


def test_a_fault_at_any_request_loses_nothing_and_the_next_sweep_finishes():
    def begin() -> Store:
        inner = open_store(f"memory://{uuid4()}")
        table = make(inner)
        table.expire("0s", 1, dry_run=False)
        litter(inner, table)
        return inner

    for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_RESPONSE, Fault.LOST_REQUEST):
        for faulty in at_every_request(begin, [fault], **every_third()):
            with suppress(Crashed, UnderlayError):
                lake_of(LateStore(faulty, WEEKS)).sweep(dry_run=False)
            late = LateStore(faulty.inner, WEEKS)
            assert audit(late).missing == set()
            lake_of(late).sweep(dry_run=False)
            assert audit(late) == (set(), set())
            assert lake_of(late).table("shop.sales").count() == 3


def test_files_of_a_segment_that_no_version_has_any_more_are_no_loss_after_their_sweep(store, monkeypatch):
    monkeypatch.setattr(flush_and_merge, "TAIL_BYTES", 2000)
    table = lake_of(store).create_table("shop.sales", "id bigint, word string", key=["id"])
    for number in range(12):
        table.append(rows(number))
    table.compact()
    table.append(rows(100))
    root = table.snapshot().root
    assert root.segments
    assert root.removed
    store.late = WEEKS
    table.expire("0s", 1, dry_run=False)
    store.late = 2 * WEEKS
    swept = lake_of(store).sweep(dry_run=False)
    assert swept.object_count >= 12
    assert audit(store) == (set(), set())
    assert [one.findings for one in lake_of(store).verify(deep=True).tables[0].revisions] == [()]
    assert table.count() == 13
