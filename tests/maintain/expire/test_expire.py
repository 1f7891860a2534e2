"""Versions expire by age and number; tags, leases and jobs keep theirs; the chain stays whole."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from uuid import uuid4

import pyarrow as pa
import pytest

from tests.gate import every_third
from tests.maintain.late_store import LateStore
from underlay.api.lake import Lake, connect
from underlay.api.table import Table
from underlay.errors import CommitConflict, InvalidRequest, SnapshotExpired, UnderlayError, Unsupported, VersionNotFound
from underlay.index.root import Retention, decode_root, decode_tombstone
from underlay.index.sealed_json import decode_ids
from underlay.maintain.expire.expire import expire
from underlay.store import Store, open_store
from underlay.store.testing import Crashed, Fault, FaultyStore, at_every_request
from underlay.table.time_travel import rollback

WEEKS = timedelta(days=30)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)})


def lake_of(store: Store) -> Lake:
    return connect(store, registry="none")


def make(store: Store, versions: int = 6) -> Table:
    table = lake_of(store).create_table("shop.sales", "id bigint")
    for number in range(versions):
        table.append(rows(number))
    return table


def seen(store: Store, versions: range) -> dict[int, int]:
    """Rows of each version that can be read, as a process sees it that knows nothing."""
    found = {}
    for version in versions:
        try:
            found[version] = lake_of(store).table("shop.sales", version=version).to_arrow().num_rows
        except SnapshotExpired:
            continue
    return found


def test_a_dry_run_is_the_default_and_changes_nothing(store):
    table = make(store)
    store.late = WEEKS
    found = table.expire()
    assert (found.is_dry_run, found.version_count, table.version) == (True, 0, 6)
    found = table.expire(keep=2)
    assert (found.version_count, found.examples, found.oldest_left) == (5, (0, 1, 2, 3, 4), 5)
    assert table.version == 6
    assert len(seen(store, range(7))) == 7


def test_versions_expire_by_age_and_number_and_the_others_read_the_same(store):
    table = make(store)
    store.late = WEEKS
    done = table.expire("7d", 2, dry_run=False)
    assert (done.version, done.version_count, done.tombstone_count, done.waiting_count) == (7, 5, 5, 0)
    assert seen(store, range(8)) == {5: 5, 6: 6, 7: 6}
    assert [version.version for version in table.history()] == [7, 6, 5]


def test_a_young_version_stays(store):
    table = make(store)
    assert table.expire("7d", 1, dry_run=False).version_count == 0
    assert table.version == 6


def test_the_roots_of_versions_that_a_reader_may_have_open_stay_for_the_reader_age(store):
    table = make(store)
    done = table.expire("0s", 1, dry_run=False)
    assert (done.version_count, done.tombstone_count, done.waiting_count) == (6, 0, 6)
    with pytest.raises(SnapshotExpired):
        table.at(version=2)
    store.late = timedelta(hours=2)
    assert table.expire("0s", 10, dry_run=False).tombstone_count == 6


def test_the_error_says_what_is_left_wherever_the_version_is_asked_for(store):
    table = make(store)
    moment = next(version.committed for version in table.history() if version.version == 2)
    table.tag("audit", 1)
    store.late = WEEKS
    table.expire("1s", 2, dry_run=False)
    lake = lake_of(store)
    for ask in (
        lambda: lake.table("shop.sales", version=2),
        lambda: lake.table("shop.sales", as_of=moment),
        lambda: lake.sql("from shop.sales version as of 2").arrow(),
        lambda: lake.table("shop.sales").rollback(2),
        lambda: lake.table("shop.sales").tag("old", 2),
    ):
        with pytest.raises(SnapshotExpired, match=r"version 2 has expired.*Versions are 1 and 5 to 7"):
            ask()
    with pytest.raises(SnapshotExpired, match="Ask for later versions"):
        lake.table("shop.sales").changes(2).to_arrow()
    with pytest.raises(VersionNotFound, match="Versions are 1 and 5 to 7"):
        lake.table("shop.sales", version=99)
    assert lake.table("shop.sales", tag="audit").to_arrow().num_rows == 1


def test_a_lease_keeps_its_version_until_it_ends(store):
    table = make(store)
    with table.at(version=2).lease(ttl_seconds=604_800) as held:
        store.late = timedelta(days=1)
        done = table.expire("1h", 1, dry_run=False)
        assert (done.also_left, list(done.leases.values())) == ((2,), [2])
        assert held.table.to_arrow().num_rows == 2
    assert table.expire("0s", 10, dry_run=False).examples == (2,)
    with pytest.raises(SnapshotExpired):
        table.at(version=2)


def test_the_root_of_a_version_that_was_held_on_its_own_goes_when_it_is_let_go(store):
    table = make(store)
    key = table.snapshot().keys.root(2)
    table.tag("audit", 2)
    for _ in range(3):  # all expired versions around it are tombstones
        store.late += WEEKS
        table.expire("0s", keep=1, dry_run=False)
    assert decode_tombstone(store.get(key)[0]) is None
    table.untag("audit")
    table.expire("0s", keep=1, dry_run=False)
    assert decode_tombstone(store.get(key)[0]) is not None
    table.expire("0s", keep=1, dry_run=False)
    assert table.read_head().root.retention.buried > 2


def test_a_lease_on_an_expired_version_is_refused(store):
    table = make(store)
    old = table.at(version=2)
    lake_of(store).table("shop.sales").expire("0s", 1, dry_run=False)
    with pytest.raises(SnapshotExpired):
        old.lease()
    assert lake_of(store).leases() == []


def test_a_running_job_keeps_the_version_that_it_began_with_and_all_since(store):
    table = make(store, 3)
    with lake_of(store).table("shop.sales").job("nightly", ttl_seconds=604_800):
        taken = table.version
        table.append(rows(8))
        table.append(rows(9))
        store.late = timedelta(days=2)
        table.expire("1h", 1, dry_run=False)
        assert table.at(version=taken).to_arrow().num_rows == 3
    table.expire("1h", 1, dry_run=False)
    with pytest.raises(SnapshotExpired):
        table.at(version=taken)


def test_the_epoch_of_a_job_that_ended_is_forgotten_and_never_given_again(store):
    table = make(store, 1)
    with table.job("old") as job:
        epoch = job.epoch
    for number in range(3):
        table.append(rows(number))
    store.late = WEEKS
    assert table.expire("1h", 1, dry_run=False).jobs == ("old",)
    assert table.read_head().root.fences == {}
    with table.job("old") as job:
        assert job.epoch > epoch


def test_a_rollback_that_lost_to_the_expiry_of_its_version_is_refused(store):
    table = make(store)
    revision = table.read_head().revision
    other = lake_of(store).table("shop.sales")
    old_head = revision.head

    def overtaken(*arguments: float):
        root = old_head(*arguments)
        if other.version == 6:
            other.expire("0s", 1, dry_run=False)
        return root

    revision.head = overtaken  # type: ignore[method-assign]
    with pytest.raises((CommitConflict, SnapshotExpired)):
        rollback(revision, 2)
    assert lake_of(store).table("shop.sales").count() == 6


def test_a_writer_whose_base_has_expired_meanwhile_does_its_work_again(store):
    table = make(store, 2)
    head = table.read_head()
    other = lake_of(store).table("shop.sales")
    for number in range(5):
        other.append(rows(10 + number))
    store.late = WEEKS
    other.expire("1h", 1, dry_run=False)
    known = head.revision
    known.head = lambda staleness=0.0: head.root if staleness else type(known).head(known)  # type: ignore[method-assign]
    table.append(rows(99), token="once")
    assert sorted(other.to_arrow()["id"].to_pylist()) == [0, 1, 10, 11, 12, 13, 14, 99]


def test_an_expired_root_is_a_tombstone_with_the_ids_of_the_root(store):
    table = make(store)
    keys = table.snapshot().keys
    before = [decode_ids(store.get(keys.root(version))[0]) for version in range(7)]
    store.late = WEEKS
    table.expire("1h", 2, dry_run=False)
    assert [decode_ids(store.get(keys.root(version))[0]) for version in range(7)] == before
    data = store.get(keys.root(0))[0]
    assert decode_tombstone(data) is not None
    with pytest.raises(SnapshotExpired):
        decode_root(data)


def test_a_release_that_knows_no_tombstone_refuses_it_in_words(store, monkeypatch):
    table = make(store)
    store.late = WEEKS
    table.expire("1h", 2, dry_run=False)
    data = store.get(table.snapshot().keys.root(0))[0]
    monkeypatch.setattr("underlay.index.root.FORMATS", (1, 2, 3))
    with pytest.raises(Unsupported, match="Update Underlay"):
        decode_root(data)


@pytest.mark.parametrize(
    "arguments",
    [{"keep": 0}, {"keep": True}, {"keep": "3"}, {"older_than": "a week"}, {"older_than": "-1d"}, {"older_than": 7}],
)
def test_what_is_no_span_or_number_is_refused(store, arguments):
    table = make(store, 1)
    with pytest.raises(InvalidRequest):
        table.expire(**arguments, dry_run=False)
    assert table.version == 1


def test_properties_say_how_much_is_left(store):
    table = lake_of(store).create_table(
        "shop.sales", "id bigint", properties={"care.keep_versions": 3, "care.keep_for": "1h"}
    )
    for number in range(6):
        table.append(rows(number))
    store.late = timedelta(hours=3)
    assert table.expire(dry_run=False).oldest_left == 4
    with pytest.raises(InvalidRequest, match=r"care\.keep_for"):
        lake_of(store).create_table("shop.other", "id bigint", properties={"care.keep_for": "soon"})


def test_a_fault_at_any_request_leaves_every_version_whole_or_expired():
    def begin() -> Store:
        inner = open_store(f"memory://{uuid4()}")
        make(inner, 4)
        return inner

    for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_RESPONSE, Fault.LOST_REQUEST):
        for faulty in at_every_request(begin, [fault], **every_third()):
            _expire_with(faulty)


def _expire_with(faulty: FaultyStore) -> None:
    with suppress(Crashed, UnderlayError):
        lake_of(LateStore(faulty, WEEKS)).table("shop.sales").expire("1h", 2, dry_run=False)
    late = LateStore(faulty.inner, WEEKS)
    found = seen(late, range(5))
    assert all(count == version for version, count in found.items())
    assert {3, 4} <= found.keys()
    expire(lake_of(late).table("shop.sales")._opened, older_than="1h", keep=2, dry_run=False)
    head = lake_of(late).table("shop.sales").read_head().root
    assert head.retention.begin >= 3 or head.retention == Retention()
    assert not any(one.findings for one in lake_of(late).verify().tables[0].revisions)
