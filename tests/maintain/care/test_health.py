"""The health of a table comes from its metadata, and names what mends it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pyarrow as pa
import pytest

from underlay.api.lake import Lake, connect
from underlay.store import open_store
from underlay.store.testing import CountingStore, StoreMethod
from underlay.table.versions.environment import Surroundings


@pytest.fixture
def store() -> CountingStore:
    return CountingStore(open_store(f"memory://{uuid4()}"))


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids)})


def test_a_new_table_is_healthy(store):
    table = connect(store, registry="none").create_table("shop.sales", "id bigint", data=rows(1, 2, 3))
    health = table.health()
    assert (health.is_healthy, health.file_count, health.unsorted_share) == (True, 1, None)


def test_small_files_dead_rows_order_versions_and_orphans_are_found(store):
    lake = connect(store, registry="none")
    table = lake.create_table("shop.sales", "id bigint", sort_by=["id"])
    for number in range(24):
        table.append(rows(number, 100 - number))
    table.delete("id < 5")
    folder = table.snapshot().keys.folder
    for number in range(6):
        store.put(f"{folder}/{number:09}-{number:016x}.parquet", b"left")
    health = table.health()
    kinds = {one.kind: one.command for one in health.findings}
    assert kinds == {
        "small files": "underlay compact shop.sales",
        "dead rows": "underlay compact shop.sales",
        "unsorted": "underlay compact shop.sales --order sort",
        "versions": "underlay expire shop.sales --yes",
        "orphans": "underlay sweep --yes",
    }
    assert (health.small_file_count, health.dead_row_count, health.version_count) == (24, 5, 26)
    assert (health.sampled_count, round(health.orphan_share, 2), health.unsorted_share) == (30, 0.2, 23 / 24)


def test_orphans_that_a_sweep_would_leave_are_said_to_stay_until_they_are_old_enough():
    store = open_store(f"memory://{uuid4()}")
    table = connect(store, registry="none").create_table("shop.sales", "id bigint", data=rows(1))
    for number in range(2):
        store.put(f"{table.snapshot().keys.folder}/{number:09}-{number:016x}.parquet", b"left")
    later = max(one.modified for one in store.list_objects()) + timedelta(days=1)

    def text(now: datetime) -> str:
        clock = Surroundings(now_us=lambda: int(now.timestamp() * 1_000_000))
        (found,) = Lake(store, surroundings=clock).table("shop.sales").health().findings
        return found.text

    assert text(datetime.now(UTC)).endswith(
        f"; all are younger than 1d, and a sweep leaves them until {later:%Y-%m-%d %H:%M} UTC"
    )
    assert text(later + timedelta(seconds=1)).endswith("(of a sample of 3)")


def test_files_in_order_are_sorted(store):
    table = connect(store, registry="none").create_table("shop.sales", "id bigint", sort_by=["id"])
    for number in range(9):
        table.append(rows(10 * number, 10 * number + 9))
    assert table.health().unsorted_share == 0


def test_no_data_file_is_read_and_nothing_is_written(store):
    table = connect(store, registry="none").create_table("shop.sales", "id bigint", sort_by=["id"])
    for number in range(60):
        table.append(rows(number))
    store.reset()
    table.health()
    assert store.request_count(StoreMethod.PUT, StoreMethod.CREATE, StoreMethod.DELETE) == 0
    assert not any(key.endswith(".parquet") for served in store.log for key in served.request.keys)
    assert store.request_count() < 20
