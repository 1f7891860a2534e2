"""What an acceptance review tried."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

import underlay
from tests.contract.worlds import World
from underlay.errors import Damaged, Inconsistent, InvalidRequest, TableNotFound, Truncated
from underlay.store import open_store
from underlay.values.ranges import ByteRange

ROWS = pa.table({"n": [1, 2, 3]})


def filled(world: World, versions: int = 1):
    table = world.lake.create_table("a.t", ROWS.schema)
    for _ in range(versions):
        table.append(ROWS)
    return table


def test_every_changed_character_of_a_root_is_an_error_that_names_it(memory: World):
    filled(memory)
    (key,) = [key for key in memory.keys("_index/") if key.endswith("1.root")]
    root = bytes(memory.store.get(key)[0])
    for place in range(0, len(root), 7):
        memory.overwrite(key, root[:place] + bytes([root[place] ^ 1]) + root[place + 1 :])
        with pytest.raises(Damaged, match=r"1\.root"):
            memory.again().table("a.t").count()


def test_every_changed_character_of_the_catalog_is_an_error_that_names_it(memory: World):
    filled(memory)
    key = max(key for key in memory.keys("_catalog/") if key.endswith(".json"))
    entry = bytes(memory.store.get(key)[0])
    for place in range(0, len(entry), 11):
        memory.overwrite(key, entry[:place] + bytes([entry[place] ^ 1]) + entry[place + 1 :])
        with pytest.raises(Damaged, match="_catalog"):
            memory.again().tables()


def test_a_missing_root_before_the_head_is_an_error(memory: World):
    filled(memory, versions=10)
    (key,) = [key for key in memory.keys("_index/") if key.endswith("09.root")]
    memory.store.delete([key])
    with pytest.raises(Inconsistent, match="missing"):
        memory.again().table("a.t").count()


def test_a_tag_through_a_stale_handle_lands_on_no_other_table(memory: World):
    table = filled(memory)
    other = memory.again()
    other.rename_table("a.t", "a.z")
    other.create_table("a.t", ROWS.schema)
    with pytest.raises(TableNotFound, match="a different table now"):
        table.tag("stray")
    assert other.table("a.t").tags == {}


@pytest.mark.parametrize("version", ["3", 1.0, True, None.__class__])
def test_a_version_that_is_no_number_is_refused(memory: World, version: object):
    filled(memory)
    with pytest.raises(InvalidRequest):
        memory.lake.table("a.t", version=version)


def test_a_moment_that_is_none_is_refused(memory: World):
    filled(memory)
    with pytest.raises(InvalidRequest):
        memory.lake.table("a.t", as_of=12345)
    assert memory.lake.table("a.t", as_of=datetime.now(UTC)).version == 1


@pytest.mark.parametrize("url", ["", None, 3])
def test_a_place_that_is_none_is_no_lake(url: object):
    with pytest.raises(InvalidRequest):
        underlay.connect(url)


def test_properties_may_be_numbers(memory: World):
    table = memory.lake.create_table("a.n", ROWS.schema, properties={"block_rows": 1})
    table.append(ROWS)
    assert table.plan().total.blocks == 3


def test_a_name_that_is_no_text_is_refused(memory: World):
    with pytest.raises(InvalidRequest):
        memory.lake.create_table(None, ROWS.schema)


def test_a_range_beyond_the_end_takes_no_memory(tmp_path):
    store = open_store(tmp_path)
    store.put("a", b"hello")
    with pytest.raises(Truncated):
        store.get_ranges("a", [ByteRange(0, 1 << 50)])


def test_a_plan_tells_the_bytes_and_who_reads_them(memory: World):
    table = memory.lake.create_table("a.n", ROWS.schema, properties={"block_rows": 1})
    table.append(ROWS)
    plan = table.plan(where="n >= 2")
    ((begin, end),) = next(iter(plan.ranges().values()))
    assert 0 < begin < end
    assigned = plan.assign({"a": 1, "b": 1})
    assert len(assigned) == 2
    assert all({first, second} == {"a", "b"} for first, second in assigned.values())
