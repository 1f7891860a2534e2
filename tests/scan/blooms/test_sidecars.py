from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, memory, quick, rows
from tests.end_to_end.test_environment import ReadOnlyStore
from underlay.cache.settings import memory_cache
from underlay.scan.blooms.sidecars import SidecarRebuilt
from underlay.store import Store
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.wrapper import StoreMethod

EVEN, ODD = range(0, 2_000, 2), range(1, 2_000, 2)


@pytest.fixture
def store() -> Store:
    """Two files whose ranges overlap, so that only bloom filters tell which one has an id."""
    store = memory()
    table = quick(store).create_table(NAME, SCHEMA, key=["id"])
    table.append(rows(EVEN))
    table.append(rows(ODD))
    return store


def sidecar_keys(store: Store) -> list[str]:
    return [found.key for found in store.list_objects() if "/_pm/" in found.key]


def fresh(store: Store) -> underlay.Table:
    memory_cache().start_afresh()
    return quick(store).table(NAME)


def found_files(table: underlay.Table) -> int:
    plan = table.plan(where="id = 1000")
    assert table.scan(["id"], "id = 1000").to_arrow()["id"].to_pylist() == [1000]
    return plan.kept.files


def damage_all(store: Store, change: bytes | None) -> dict[str, bytes]:
    """Other bytes for all sidecars, or none at all; what they were."""
    before = {key: bytes(store.get(key)[0]) for key in sidecar_keys(store)}
    for key in before:
        store.delete([key])
        if change is not None:
            store.put(key, change)
    return before


def test_filters_of_sidecars_drop_the_other_file(store: Store):
    assert found_files(fresh(store)) == 1


def test_each_sidecar_is_read_once(store: Store):
    counting = CountingStore(store)
    table = fresh(counting)
    table.plan(where="id = 1000")
    counting.reset()
    table.plan(where="id = 1001")
    assert [served.request.op for served in counting.log] == [StoreMethod.HEAD]


def test_no_sidecar_is_read_without_an_equality(store: Store):
    counting = CountingStore(store)
    table = fresh(counting)
    table.plan(where="id > 1000")
    assert not [served for served in counting.log if "/_pm/" in served.request.keys[0]]


def test_a_missing_sidecar_is_built_again_and_put_back(store: Store):
    before = damage_all(store, None)
    with pytest.warns(SidecarRebuilt, match="_pm/"):
        assert found_files(fresh(store)) == 1
    assert {key: bytes(store.get(key)[0]) for key in sidecar_keys(store)} == before
    assert found_files(fresh(store)) == 1


@pytest.mark.parametrize("at", [0, 8, 40, -1])
def test_a_damaged_sidecar_is_built_again_and_put_back(store: Store, at: int):
    before = {key: bytes(store.get(key)[0]) for key in sidecar_keys(store)}
    for key, data in before.items():
        broken = bytearray(data)
        broken[at] ^= 0x10
        store.put(key, broken)
    with pytest.warns(SidecarRebuilt):
        assert found_files(fresh(store)) == 1
    assert {key: bytes(store.get(key)[0]) for key in sidecar_keys(store)} == before


def test_a_sidecar_that_is_cut_short_is_built_again(store: Store):
    before = {key: bytes(store.get(key)[0]) for key in sidecar_keys(store)}
    for key, data in before.items():
        store.put(key, data[:100])
    with pytest.warns(SidecarRebuilt):
        assert found_files(fresh(store)) == 1
    assert {key: bytes(store.get(key)[0]) for key in sidecar_keys(store)} == before


def test_the_sidecar_of_another_file_is_not_believed(store: Store):
    first, second = sidecar_keys(store)
    one, other = store.get(first)[0], store.get(second)[0]
    store.put(first, other)
    store.put(second, one)
    with pytest.warns(SidecarRebuilt):
        assert found_files(fresh(store)) == 1


def test_without_the_right_to_write_the_answer_is_the_same(store: Store):
    damage_all(store, b"nonsense")
    with pytest.warns(SidecarRebuilt):
        assert found_files(fresh(ReadOnlyStore(store))) == 1
    assert {bytes(store.get(key)[0]) for key in sidecar_keys(store)} == {b"nonsense"}


def test_a_registered_file_with_filters_needs_no_sidecar_in_the_store(store: Store):
    table = quick(store).create_table("some.registered", SCHEMA)
    for name, numbers in (("even", EVEN), ("odd", ODD)):
        sink = io.BytesIO()
        pq.write_table(rows(numbers), sink, bloom_filter_options={"id": {"ndv": 1_000, "fpp": 0.001}})
        store.put(f"in/{name}.parquet", sink.getvalue())
    table.register(f"{store.url}/in/*.parquet")
    plan = table.plan(where="id = 1000")
    assert plan.kept.files == 1
    assert (
        table.scan(["id"], "id = 1000")
        .to_arrow()
        .equals(pa.table({"id": pa.array([1000], pa.int64())}).cast(table.scan(["id"]).schema))
    )
    assert len(sidecar_keys(store)) == 2
