"""A vacuum leaves few files, few versions, and no object that no root names."""

from __future__ import annotations

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
from underlay.errors import InvalidRequest, UnderlayError
from underlay.store import Store, open_store
from underlay.store.testing import Crashed, Fault, at_every_request


def make(lake: Lake, name: str) -> Table:
    table = lake.create_table(name, "id bigint, word string", key=["id"])
    for number in range(20):
        table.append(pa.table({"id": [number, 100 + number], "word": ["a", None]}))
    table.delete("id = 3")
    return table


def test_a_vacuum_is_a_dry_run_unless_told_otherwise(store):
    lake = connect(store, registry="none")
    table = make(lake, "shop.sales")
    store.late = timedelta(days=40)
    objects = {found.key for found in store.list_objects()}
    found = table.vacuum()
    assert {found.key for found in store.list_objects()} == objects
    assert found.is_dry_run
    assert (found.compacted[0].files_before, found.expired[0].version_count) == (20, 12)


def test_after_a_vacuum_nothing_is_left_over_and_nothing_is_missing(store):
    lake = connect(store, registry="none")
    tables = [make(lake, "shop.sales"), make(lake, "shop.other")]
    before = [sorted(table.to_arrow()["id"].to_pylist()) for table in tables]
    store.late = timedelta(days=40)
    done = tables[0].vacuum("1h", 1, dry_run=False)
    assert done.compacted[0].files_after == 1
    assert lake.table("shop.other").at(version=1).count() == 2
    found = lake.vacuum("1h", 1, dry_run=False)
    store.late = timedelta(days=80)
    lake.vacuum("1h", 1, dry_run=False)
    assert found.size_bytes > 0
    assert audit(store) == (set(), set())
    assert [sorted(table.to_arrow()["id"].to_pylist()) for table in tables] == before
    assert not [key for key in (one.key for one in store.list_objects()) if key.endswith(".parquet")][2:]


def test_what_a_sweep_refuses_is_refused_before_anything_is_done(store):
    table = make(connect(store, registry="none"), "shop.sales")
    with pytest.raises(InvalidRequest):
        table.vacuum(grace="1m", dry_run=False)
    assert table.version == 21


def test_a_fault_at_any_request_loses_nothing_and_later_vacuums_finish():
    late = timedelta(days=40)

    def begin() -> Store:
        inner = open_store(f"memory://{uuid4()}")
        table = connect(inner, registry="none").create_table("shop.sales", "id bigint", key=["id"])
        for number in range(3):
            table.append(pa.table({"id": [number, 100 + number]}))
        table.delete("id = 101")
        return inner

    for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_RESPONSE, Fault.LOST_REQUEST):
        for faulty in at_every_request(begin, [fault], **every_third()):
            with suppress(Crashed, UnderlayError):
                connect(LateStore(faulty, late), registry="none").vacuum("1h", 1, dry_run=False)
            store = LateStore(faulty.inner, late)
            assert audit(store).missing == set()
            for _ in range(2):  # the first one's old versions and files are old enough for the second
                store.late += late
                connect(store, registry="none").vacuum("1h", 1, dry_run=False)
            table = connect(store, registry="none").table("shop.sales")
            assert sorted(table.to_arrow()["id"].to_pylist()) == [0, 1, 2, 100, 102]
            assert table.snapshot().root.file_count == 1
            assert audit(store) == (set(), set())
