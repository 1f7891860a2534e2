"""What goes wrong, says what and where, and leaves the table as it was; the same on every store."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay
from tests.contract.worlds import World, delete_positions
from tests.store.servers import S3Server
from underlay.errors import (
    BadPredicate,
    Damaged,
    InvalidRequest,
    NotFound,
    Replaced,
    SchemaMismatch,
    TableNotFound,
    Unavailable,
    UnderlayError,
    UnknownColumn,
)
from underlay.store import open_store

SCHEMA = "id bigint not null, name string"
ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})


@pytest.fixture
def table(world: World) -> underlay.Table:
    made = world.create(SCHEMA, block_rows=2)
    made.append(ROWS)
    return made


BAD_ROWS = {
    "another type": (pa.table({"id": ["x"], "name": ["a"]}), "id"),
    "an unknown column": (ROWS.append_column("extra", ROWS["id"]), "extra"),
    "a column twice": (pa.Table.from_arrays([*ROWS.columns, ROWS["id"]], ["id", "name", "id"]), "id"),
    "no required column": (ROWS.select(["name"]), "id"),
    "a null that is not allowed": (pa.table({"id": pa.array([1, None], pa.int64()), "name": ["a", "b"]}), "id"),
    "upper case": (ROWS.rename_columns(["ID", "name"]), "ID"),
}


@pytest.mark.parametrize("reason", BAD_ROWS)
def test_rows_that_do_not_fit_are_refused_by_column(world, table, reason):
    rows, column = BAD_ROWS[reason]
    before = world.keys("")
    with pytest.raises(SchemaMismatch, match=column):
        table.append(rows)
    assert (table.version, table.count()) == (1, 3)
    assert world.keys("") == before


def test_a_bad_row_late_in_a_stream_commits_nothing(world, table):
    batches = [ROWS.to_batches()[0], pa.record_batch({"id": pa.array([4, None], pa.int64()), "name": ["d", "e"]})]
    with pytest.raises(SchemaMismatch, match="row 4"):
        table.append(pa.RecordBatchReader.from_batches(batches[0].schema, batches))
    assert (table.version, table.count()) == (1, 3)


@pytest.mark.parametrize("data", [3, "text", [], [1], None])
def test_what_is_no_rows_is_refused(memory, data):
    with pytest.raises(InvalidRequest):
        memory.create(SCHEMA).append(data)


OF_ANOTHER_KIND = {
    "a name": lambda lake: lake.table(None),
    "a number for a name": lambda lake: lake.drop_table(5),
    "files": lambda lake: lake.table("some.rows").register(["a.parquet", "b.parquet"]),
    "no file": lambda lake: lake.table("some.rows").register(None),
    "no source": lambda lake: lake.ingest("some.rows", None),
    "a source": lambda lake: lake.dry_run("some.rows", [5]),
    "a statement": lambda lake: lake.sql(None),
    "a parameter": lambda lake: lake.sql("select ?", 5),
    "text for parameters": lambda lake: lake.sql("select ?", "5"),
}


@pytest.mark.parametrize("what", OF_ANOTHER_KIND)
def test_what_is_of_another_kind_is_refused(tmp_path, what):
    lake = underlay.connect(tmp_path / "lake")
    table = lake.create_table("some.rows", SCHEMA)
    with pytest.raises(InvalidRequest):
        OF_ANOTHER_KIND[what](lake)
    assert ([one.name for one in lake.tables()], table.version) == (["some.rows"], 0)


def test_files_may_be_named_by_paths(tmp_path):
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    table = underlay.connect(tmp_path / "lake").create_table("some.rows", SCHEMA)
    table.register(tmp_path / "rows.parquet")
    assert table.to_arrow().to_pylist() == ROWS.to_pylist()


BAD_CONDITIONS = {
    "no SQL": ("id = = 1", BadPredicate),
    "another type": ("id = 'x'", BadPredicate),
    "an unknown column": ("idd = 1", UnknownColumn),
    "another query": ("id = (select 1)", BadPredicate),
    "nothing": ("", BadPredicate),
    "a number": (7, InvalidRequest),
}


@pytest.mark.parametrize("reason", BAD_CONDITIONS)
def test_a_bad_condition_is_refused(memory, reason):
    where, error = BAD_CONDITIONS[reason]
    table = memory.create(SCHEMA)
    for rows in (None, ROWS):
        if rows is not None:
            table.append(rows)
        with pytest.raises(error):
            table.scan(where=where).to_arrow()
        with pytest.raises(error):
            table.plan(where=where)


def test_unknown_columns_are_named(memory):
    table = memory.create(SCHEMA)
    with pytest.raises(UnknownColumn, match="nam"):
        table.scan(["nam"])
    with pytest.raises(InvalidRequest, match="list of names"):
        table.scan("name")
    with pytest.raises(UnknownColumn):
        table.plan().minimum("nam")
    with pytest.raises(UnknownColumn):
        table.comment("text", "nam")


@pytest.mark.parametrize("name", ["", "a", "a.b.c", "a/b.c", "_a.b", "a.", ".b", "..", "a b.c\n"])
def test_bad_names_are_refused(memory, name):
    with pytest.raises(UnderlayError):
        memory.create(SCHEMA, name)
    assert memory.lake.tables() == []


BAD_DEFINITIONS = {
    "no columns": ("", {}),
    "no columns in arrow": (pa.schema([]), {}),
    "a column twice": ("a int, a int", {}),
    "no type": ("a nothing", {}),
    "an unknown key": ("a int", {"key": ["b"]}),
    "an unknown order": ("a int", {"sort_by": ["b"]}),
    "an unknown partition": ("a int", {"partition_by": ["month(b)"]}),
    "a partition of another type": ("a int", {"partition_by": ["month(a)"]}),
    "an unknown property": ("a int", {"properties": {"block": "1"}}),
    "a bad property": ("a int", {"properties": {"block_rows": "0"}}),
    "an interval": (pa.schema([("a", pa.month_day_nano_interval())]), {}),
    "text as a list": ("a int", {"key": "a"}),
}


@pytest.mark.parametrize("reason", BAD_DEFINITIONS)
def test_a_bad_definition_makes_no_table(memory, reason):
    schema, options = BAD_DEFINITIONS[reason]
    with pytest.raises(UnderlayError):
        memory.create(schema, **options)
    assert memory.lake.tables() == []


def test_a_lake_that_is_not_there_has_no_tables(world):
    assert world.lake.tables() == []
    with pytest.raises(NotFound):
        world.lake.table("shop.sales")


def test_a_table_that_is_not_there_is_named(world):
    world.create(SCHEMA)
    with pytest.raises(TableNotFound, match=r"some\.other"):
        world.lake.table("some.other")
    with pytest.raises(TableNotFound, match=r"some\.other"):
        world.lake.drop_table("some.other")


def test_a_missing_data_file_is_named(world, table):
    (key,) = world.keys(".parquet")
    world.store.delete([key])
    with pytest.raises(NotFound, match=key.rpartition("/")[2]):
        world.again().table("shop.sales").to_arrow()
    assert world.again().table("shop.sales").plan(where="id = 1").kept.blocks == 1


@pytest.mark.parametrize("damage", ["cut", "zeros", "other"])
def test_a_damaged_data_file_is_named(world, table, damage):
    (key,) = world.keys(".parquet")
    data = bytes(world.store.get(key)[0])
    broken = {"cut": data[: len(data) // 2], "zeros": bytes(len(data)), "other": data[::-1]}[damage]
    world.overwrite(key, broken)
    with pytest.raises(Damaged, match=key.rpartition("/")[2]):
        world.again().table("shop.sales").to_arrow()


def test_a_flipped_byte_of_a_page_is_found(world, table):
    (key,) = world.keys(".parquet")
    data = bytearray(world.store.get(key)[0])
    plan = table.plan(["id"]).choices
    chunk = plan.choices[0].part.segment.places(1)
    data[int(chunk.begins[0] + chunk.sizes[0]) - 3] ^= 1
    world.overwrite(key, bytes(data))
    with pytest.raises(Damaged, match=key.rpartition("/")[2]):
        world.again().table("shop.sales").scan(["id"]).to_arrow()


@pytest.mark.with_postgres
def test_a_damaged_root_is_named_and_older_versions_are_read(world, table):
    table.append(ROWS)
    key = world.keys(".root")[-1]
    world.overwrite(key, b'{"format": 1, "version"')
    lake = world.again()
    with pytest.raises(Damaged, match=key.rpartition("/")[2]):
        lake.table("shop.sales").to_arrow()


def test_a_damaged_segment_is_named(world):
    table = world.create("id bigint", partition_by=["bucket(128, id)"])
    table.append(pa.table({"id": range(400)}))
    key = world.keys("/segments/")[0]
    data = bytearray(world.store.get(key)[0])
    data[:: max(1, len(data) // 50)] = bytes(len(data[:: max(1, len(data) // 50)]))
    world.overwrite(key, bytes(data))
    with pytest.raises(Damaged, match=key.rpartition("/")[2]):
        World(world.store).lake.table("shop.sales").to_arrow()


def test_a_missing_segment_is_named(world):
    table = world.create("id bigint", partition_by=["bucket(128, id)"])
    table.append(pa.table({"id": range(400)}))
    key = world.keys("/segments/")[0]
    world.store.delete([key])
    with pytest.raises(UnderlayError, match=key.rpartition("/")[2]):
        World(world.store).lake.table("shop.sales").to_arrow()


def test_a_registered_file_that_was_replaced_is_not_read(world, table):
    place = world.put_parquet(pa.table({"id": [10, 11], "name": ["x", "y"]}), "mine")
    table.register(place)
    world.put_parquet(pa.table({"id": [12, 13], "name": ["x", "y"]}), "mine")
    with pytest.raises(Replaced, match=r"mine\.parquet"):
        world.again().table("shop.sales").to_arrow()
    assert table.scan(where="id < 5").to_arrow().num_rows == 3


BAD_FILES = {
    "no Parquet": (b"hello, this is no Parquet file", Damaged),
    "empty": (b"", Damaged),
    "another type": (pa.table({"id": ["x"], "name": ["a"]}), SchemaMismatch),
    "a missing required column": (pa.table({"name": ["a"]}), SchemaMismatch),
    "a null in a required column": (pa.table({"id": pa.array([None, 1], pa.int64())}), SchemaMismatch),
    "a column too many": (ROWS.append_column("extra", ROWS["id"]), SchemaMismatch),
}


@pytest.mark.parametrize("reason", BAD_FILES)
def test_one_bad_file_keeps_all_from_being_registered(world, table, reason):
    data, error = BAD_FILES[reason]
    good, bad = world.put_parquet(ROWS, "good"), world.put_parquet(data, "bad")
    with pytest.raises(error, match=r"bad\.parquet"):
        table.register(good, bad)
    assert (table.version, table.count()) == (1, 3)


def test_surplus_columns_are_left_out_when_asked(world, table):
    table.register(world.put_parquet(BAD_ROWS["an unknown column"][0]), ignore_surplus=True)
    assert table.schema.names == ["id", "name"]
    assert table.count() == 6


def test_a_file_that_is_not_there_is_not_registered(world, table):
    with pytest.raises(NotFound, match="nowhere"):
        table.register(f"{world.store.url}/in/nowhere.parquet")
    with pytest.raises(NotFound, match="nowhere"):
        table.register(f"{world.store.url}/in/nowhere*.parquet")
    with pytest.raises(InvalidRequest):
        table.register()
    assert table.version == 1


def test_rows_that_are_not_there_are_not_deleted(world, table):
    with pytest.raises(InvalidRequest):
        delete_positions(table, {0: [3]})
    assert table.version == 1


def test_wrong_credentials_are_said_at_once(seaweedfs: S3Server):
    store = open_store("s3://lake/secret", seaweedfs.options | {"secret_access_key": "wrong"})
    lake = underlay.connect(store)
    with pytest.raises(Unavailable, match="s3://lake"):
        lake.create_table("shop.sales", SCHEMA)
    with pytest.raises(Unavailable):
        lake.table("shop.sales")
    with pytest.raises(Unavailable):
        lake.tables()
