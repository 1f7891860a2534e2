"""What a table does, the same on every store."""

from __future__ import annotations

from datetime import timedelta

import duckdb
import polars
import pyarrow as pa
import pytest

from tests.contract.worlds import delete_positions
from underlay import col
from underlay.errors import InvalidRequest, TableExists, TableNotFound, VersionNotFound

ROWS = pa.table({"id": pa.array([3, 1, 2, 4], pa.int64()), "name": ["c", "a", None, "d"]})
MORE = pa.table({"id": pa.array([10, 11], pa.int64()), "name": ["x", "y"]})
SCHEMA = "id bigint not null, name string"


def ids(table, **question):
    return table.scan(["id"], **question).to_arrow()["id"].to_pylist()


def test_a_new_table_is_empty_and_has_its_columns(world):
    table = world.create(SCHEMA)
    assert table.to_arrow().num_rows == 0
    assert table.schema.names == ["id", "name"]
    assert (table.version, table.count(), table.plan().count()) == (0, 0, 0)
    assert table.plan(where="id = 1").count() == 0


@pytest.mark.with_postgres
def test_rows_come_back_in_order_also_to_another_process(world):
    table = world.create(SCHEMA)
    appended = table.append(ROWS)
    assert (appended.version, appended.row_count, appended.file_count) == (1, 4, 1)
    assert table.to_arrow().equals(ROWS.cast(table.to_arrow().schema))
    assert world.again().table("shop.sales").to_arrow().equals(table.to_arrow())


def test_a_scan_has_the_wanted_columns_in_the_wanted_order(world):
    table = world.create(SCHEMA)
    table.append(ROWS)
    assert table.scan(["name", "id"], "id >= 3").to_arrow().to_pylist() == [
        {"name": "c", "id": 3},
        {"name": "d", "id": 4},
    ]


@pytest.mark.parametrize("where", ["id > 2", col("id") > 2, pa.compute.field("id") > 2], ids=["text", "col", "arrow"])
def test_a_condition_may_be_text_python_or_arrow(world, where):
    table = world.create(SCHEMA, block_rows=2)
    table.append(ROWS)
    assert ids(table, where=where) == [3, 4]
    assert table.count(where) == 2


def test_a_plan_drops_blocks_and_counts_without_reading(world):
    table = world.create(SCHEMA, block_rows=1)
    table.append(ROWS)
    plan = table.plan(where="id = 4")
    assert (plan.kept.blocks, plan.total.blocks) == (1, 4)
    assert plan.count() == 1
    assert (plan.minimum("id").as_py(), plan.maximum("id").as_py()) == (4, 4)
    assert "4 blocks" in plan.explain()


def test_rows_without_columns_are_still_counted(world):
    table = world.create(SCHEMA, block_rows=2)
    table.append(ROWS)
    assert table.scan([]).to_arrow().num_columns == 0
    assert sum(batch.num_rows for batch in table.scan([], "id > 1").to_batches()) == 3
    assert table.scan([]).count() == 4


def test_an_empty_append_makes_no_version(world):
    table = world.create(SCHEMA)
    assert table.append(ROWS.slice(0, 0)).row_count == 0
    assert table.version == 0


def stream_of(data):
    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return data.__arrow_c_stream__(requested_schema)

    return Stream()


INPUTS = {
    "table": lambda: ROWS,
    "batch": lambda: ROWS.to_batches()[0],
    "batches": lambda: ROWS.to_batches(max_chunksize=2),
    "reader": lambda: ROWS.to_reader(),
    "stream": lambda: stream_of(ROWS),
    "polars": lambda: polars.from_arrow(ROWS),
    "duckdb": lambda: duckdb.from_arrow(ROWS),
    "shuffled columns": lambda: ROWS.select(["name", "id"]),
    "dictionary": lambda: ROWS.set_column(1, "name", ROWS["name"].dictionary_encode()),
    "large": lambda: ROWS.set_column(1, "name", ROWS["name"].cast(pa.large_string())),
    "narrow": lambda: ROWS.set_column(0, "id", ROWS["id"].cast(pa.int8())),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_rows_come_from_anything_that_speaks_arrow(memory, kind):
    table = memory.create(SCHEMA)
    table.append(INPUTS[kind]())
    assert table.to_arrow().to_pylist() == ROWS.to_pylist()


def test_a_scan_is_a_stream_for_others(world):
    table = world.create(SCHEMA)
    table.append(ROWS)
    assert polars.DataFrame(table.scan(where="id > 2"))["id"].to_list() == [3, 4]
    assert table.scan().to_polars().shape == (4, 2)
    assert pa.RecordBatchReader.from_stream(table.scan()).read_all().num_rows == 4


@pytest.mark.with_postgres
def test_older_versions_are_read_by_number_time_and_tag(world):
    table = world.create(SCHEMA)
    table.append(ROWS)
    table.tag("first")
    table.append(MORE)
    newest, first, _ = table.history()
    lake = world.again()
    assert ids(lake.table("shop.sales", version=1)) == [3, 1, 2, 4]
    assert ids(lake.table("shop.sales", tag="first")) == [3, 1, 2, 4]
    assert ids(lake.table("shop.sales", as_of=first.committed)) == [3, 1, 2, 4]
    assert ids(lake.table("shop.sales", as_of=newest.committed - timedelta(microseconds=1))) == [3, 1, 2, 4]
    assert ids(lake.table("shop.sales", as_of=newest.committed.isoformat())) == [3, 1, 2, 4, 10, 11]
    assert lake.table("shop.sales").tags == {"first": 1}


def test_versions_that_never_were_are_refused(world):
    table = world.create(SCHEMA)
    for choice in ({"version": 1}, {"version": -1}, {"as_of": "2001-01-01"}):
        with pytest.raises(VersionNotFound):
            table.at(**choice)


def test_an_older_version_is_not_written(world):
    table = world.create(SCHEMA)
    table.append(ROWS)
    old = table.at(version=0)
    with pytest.raises(InvalidRequest, match="never changes"):
        old.append(MORE)
    assert table.version == 1


@pytest.mark.with_postgres
def test_a_rollback_is_a_new_version_with_the_old_rows(world):
    table = world.create(SCHEMA)
    table.append(ROWS)
    table.append(MORE)
    assert table.rollback(1).version == 3
    assert ids(table) == [3, 1, 2, 4]
    assert ids(table.at(version=2)) == [3, 1, 2, 4, 10, 11]
    table.append(MORE)
    assert ids(table) == [3, 1, 2, 4, 10, 11]


def test_history_says_what_each_version_did(world):
    table = world.create(SCHEMA)
    table.append(ROWS)
    table.comment("people")
    versions = list(table.history())
    assert [one.version for one in versions] == [2, 1, 0]
    assert [one.operation for one in versions] == ["comment", "append", "create"]
    assert versions[1].counts["rows_added"] == 4
    assert [one.row_count for one in versions] == [4, 4, 0]
    assert versions[0].committed > versions[1].committed > versions[2].committed
    assert [one.version for one in table.history(limit=1)] == [2]


def test_the_history_of_an_older_version_begins_with_it(world):
    table = world.create(SCHEMA)
    table.append(ROWS)
    table.append(MORE)
    assert [one.version for one in table.at(version=1).history(limit=1)] == [1]


def test_comments_stay_and_do_not_touch_rows(world):
    table = world.create(SCHEMA, comment="at first")
    table.append(ROWS)
    table.comment("people")
    table.comment("what they are called", "name")
    definition = world.again().table("shop.sales").definition
    assert definition.comment == "people"
    assert [field.comment for field in definition.schema.fields] == [None, "what they are called"]
    assert ids(table) == [3, 1, 2, 4]


@pytest.mark.with_postgres
def test_a_token_adds_rows_once(world):
    table = world.create(SCHEMA)
    first = table.append(ROWS, token="day 1")
    again = world.again().table("shop.sales").append(ROWS, token="day 1")
    assert (first.is_repeat, again.is_repeat, again.version) == (False, True, first.version)
    assert table.count() == 4
    assert table.append(ROWS, token="day 2").row_count == 4


@pytest.mark.with_postgres
def test_a_table_is_renamed_with_its_rows(world):
    table = world.create(SCHEMA)
    table.append(ROWS)
    world.lake.rename_table("shop.sales", "other.name")
    assert ids(world.again().table("other.name")) == [3, 1, 2, 4]
    assert [info.name for info in world.lake.tables()] == ["other.name"]
    with pytest.raises(TableNotFound):
        world.again().table("shop.sales")


@pytest.mark.with_postgres
def test_a_dropped_table_is_gone_and_its_name_is_free(world):
    table = world.create(SCHEMA)
    table.append(ROWS)
    world.lake.drop_table("shop.sales")
    for use in (table.count, lambda: table.append(ROWS), lambda: world.again().table("shop.sales")):
        with pytest.raises(TableNotFound):
            use()
    assert world.create("other int").count() == 0


def test_a_name_is_given_once(world):
    world.create(SCHEMA)
    for name in ("shop.sales", "Shop.Sales"):
        with pytest.raises(TableExists):
            world.create(SCHEMA, name)


@pytest.mark.with_postgres
def test_registered_files_are_part_of_the_table(world):
    table = world.create(SCHEMA)
    table.append(ROWS)
    place = world.put_parquet(MORE, row_group_size=1)
    registered = table.register(place)
    assert (registered.file_count, registered.row_count) == (1, 2)
    assert ids(table) == [3, 1, 2, 4, 10, 11]
    assert table.plan(where="id = 11").kept.blocks == 1
    assert ids(table, where="id = 11") == [11]
    assert ids(world.again().table("shop.sales"), where="name = 'x'") == [10]


def test_a_pattern_registers_all_files_it_matches(world):
    table = world.create(SCHEMA)
    for number in range(3):
        world.put_parquet(MORE, f"part{number}")
    world.put_parquet(pa.table({"unlike": [1]}), "other")
    assert table.register(f"{world.store.url}/in/part*.parquet").file_count == 3
    assert table.count() == 6


def test_a_file_is_registered_once(world):
    table = world.create(SCHEMA)
    place = world.put_parquet(MORE)
    table.register(place)
    with pytest.raises(InvalidRequest, match="already part of the table"):
        table.register(place)
    assert (table.version, table.count()) == (1, 2)


@pytest.mark.with_postgres
def test_deleted_rows_are_left_out_everywhere(world):
    table = world.create(SCHEMA, block_rows=2)
    table.append(ROWS)
    table.register(world.put_parquet(MORE))
    delete_positions(table, {0: [0, 2], 1: [1]})
    assert ids(table) == [1, 4, 10]
    assert ids(table, where="id >= 2") == [4, 10]
    assert (table.count(), table.plan().count(), table.count("id < 100")) == (3, 3, 3)
    assert ids(table.at(version=2)) == [3, 1, 2, 4, 10, 11]
    table.rollback(2)
    assert table.count() == 6


def test_a_file_whose_rows_are_all_deleted_gives_none(world):
    table = world.create(SCHEMA)
    table.append(ROWS)
    delete_positions(table, {0: range(4)})
    assert ids(table) == []
    assert (table.count(), table.count("id = 1")) == (0, 0)
    assert table.plan().minimum("id") in (None, pa.scalar(None, pa.int64()))


@pytest.mark.with_postgres
def test_many_appends_are_folded_and_read_the_same(world):
    table = world.create(SCHEMA)
    for number in range(12):
        table.append(pa.table({"id": [number], "name": [str(number) * 500]}))
    assert ids(table) == list(range(12))
    assert ids(world.again().table("shop.sales"), where="id in (3, 7)") == [3, 7]


def test_a_table_of_many_files_in_segments_reads_the_same(memory):
    table = memory.create(SCHEMA, partition_by=["bucket(128, id)"])
    rows = pa.table({"id": range(400), "name": [f"n{i:03}" for i in range(400)]})
    table.append(rows)
    assert memory.keys("/_index/segments/")
    assert sorted(ids(table)) == list(range(400))
    assert ids(table, where="name = 'n123'") == [123]
    delete_positions(table, {0: [0], 5: [0]})
    assert table.count() == 398
    assert len(ids(memory.again().table("shop.sales"))) == 398


def test_sql_sees_rows_deletions_and_older_versions(world):
    table = world.create(SCHEMA, "people.names", block_rows=2)
    table.append(ROWS)
    delete_positions(table, {0: [0]})

    def ask(text):
        return world.lake.sql(text).to_arrow().to_pylist()

    assert ask("select sum(id) as s, count(*) as n from people.names where id >= 2") == [{"s": 6, "n": 2}]
    assert ask("select count(*) as n from people.names VERSION AS OF 1") == [{"n": 4}]
