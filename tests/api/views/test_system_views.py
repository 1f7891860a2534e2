from __future__ import annotations

from uuid import uuid4

import pyarrow.parquet as pq
import pytest

import underlay as ul
from tests.local.statements.lakes import small_lake
from underlay.errors import InvalidRequest, TableNotFound
from underlay.store import open_store
from underlay.store.testing import CountingStore


@pytest.fixture
def lake():
    lake = small_lake()
    lake.sql("comment on table taxi.trips is 'all trips'")
    lake.sql("delete from taxi.trips where id = 1")
    return lake


def test_tables(lake):
    found = lake.sql(
        "select dataset, table_name, version, rows, files, key, comment, revision from underlay.tables order by all"
    ).fetchall()
    trips, zones = lake.table("taxi.trips"), lake.table("taxi.Zones")
    assert found == [
        ("taxi", "Zones", 1, 3, 1, [], None, zones.revision),
        ("taxi", "trips", 3, 5, 1, ["id"], "all trips", trips.revision),
    ]


def test_versions_are_the_history(lake):
    found = lake.sql(
        """select version, committed_at, operation, counts, rows, files, bytes, writer, commit_id
           from UNDERLAY."Versions" where table_name = 'trips' order by version desc"""
    ).fetchall()
    assert found == [
        (one.version, one.committed, one.operation, list(one.counts.items()), one.row_count, one.file_count,
         one.data_bytes, one.writer, one.commit_id)
        for one in lake.table("taxi.trips").history()
    ]  # fmt: skip


def test_files_have_rows_and_deleted_rows_and_partitions(lake):
    lake.sql("create table t.p (a int, b date, e varchar) partitioned by (e, year(b))")
    lake.sql("insert into t.p values (1, '2024-05-01', 'x'), (2, '2024-06-01', 'x'), (3, null, null)")
    found = lake.sql(
        """select rows, deleted_rows, blocks, partition, is_registered from underlay.files
           where dataset = 't' order by rows"""
    ).fetchall()
    assert found == [
        (1, 0, 1, [("e", None), ("year(b)", None)], False),
        (2, 0, 1, [("e", "x"), ("year(b)", "54")], False),
    ]
    ((rows, deleted, size),) = lake.sql(
        "select rows, deleted_rows, bytes from underlay.files where table_name = 'trips'"
    ).fetchall()
    assert (rows, deleted, size) == (6, 1, next(lake.table("taxi.trips").history()).data_bytes)


def test_registered_files_are_shown_by_their_urls(tmp_path):
    path = tmp_path / "a.parquet"
    lake = small_lake()
    pq.write_table(lake.table("taxi.Zones").to_arrow(), path)
    lake.table("taxi.Zones").register(path)
    text = "select location from underlay.files where is_registered"
    assert lake.sql(text).fetchall() == [(path.as_uri(),)]


def test_blocks_have_a_row_for_each_column_with_its_bounds_as_text(lake):
    found = lake.sql(
        """select block, rows, deleted_rows, column_name, null_count, min, max, is_exact, has_bloom
           from underlay.blocks where table_name = 'trips' and block < 2 order by block, column_name"""
    ).fetchall()
    assert found == [
        (0, 2, 1, "fare", 0, "10", "20", True, False),
        (0, 2, 1, "id", 0, "1", "2", True, True),
        (0, 2, 1, "zone", 0, "JFK", "LGA", True, False),
        (1, 2, 0, "fare", 0, "4", "30", True, False),
        (1, 2, 0, "id", 0, "3", "4", True, True),
        (1, 2, 0, "zone", 1, "JFK", "JFK", True, False),
    ]


def test_the_byte_ranges_of_blocks_are_those_of_the_file(tmp_path):
    lake = ul.connect(tmp_path / "lake", registry="none")
    lake.create_table("a.b", data=small_lake().table("taxi.trips").to_arrow(), properties={"block_rows": 2})
    ((location,),) = lake.sql("select location from underlay.files").fetchall()
    footer = pq.read_metadata(tmp_path / "lake" / location)
    expected = {
        (block, chunk.path_in_schema, chunk.total_compressed_size)
        for block in range(footer.num_row_groups)
        for chunk in (footer.row_group(block).column(at) for at in range(3))
    }
    assert set(lake.sql("select block, column_name, byte_size from underlay.blocks").fetchall()) == expected


@pytest.mark.parametrize(
    ("type", "value", "text"),
    [
        ("decimal(5, 2)", "1.5", "1.50"),
        ("decimal(30, 3)", "-1.25", "-1.250"),
        ("date", "'2024-02-29'", "2024-02-29"),
        ("timestamp", "'2024-02-29 12:00:00'", "2024-02-29 12:00:00.000000"),
        ("timestamptz", "'2024-02-29 12:00:00+01'", "2024-02-29 11:00:00.000000Z"),
        ("time", "'12:30:00'", "12:30:00.000000"),
        ("boolean", "true", "true"),
        ("double", "1.5", "1.5"),
        ("blob", "'abc'", "616263"),
        ("uuid", "'11111111-2222-3333-4444-555555555555'", "11111111-2222-3333-4444-555555555555"),
        ("ubigint", "18446744073709551615", "18446744073709551615"),
    ],
)
def test_bounds_of_each_type_as_text(type, value, text):
    lake = ul.connect(f"memory://{uuid4()}", registry="none")
    lake.sql(f"create table a.b (c {type})")
    lake.sql(f"insert into a.b values ({value})")
    assert lake.sql("select min, max from underlay.blocks").fetchall() == [(text, text)]


def test_sources_are_those_that_were_ingested(tmp_path):
    (tmp_path / "a.csv").write_text("id,zone\n1,JFK\n2,LGA\n")
    lake = ul.connect(f"memory://{uuid4()}", registry="none")
    lake.ingest("taxi.trips", str(tmp_path / "a.csv"))
    lake.table("taxi.trips").append(lake.table("taxi.trips").to_arrow(), token="again")
    assert lake.sql("select dataset, table_name, uri, status, rows, error from underlay.sources").fetchall() == [
        ("taxi", "trips", (tmp_path / "a.csv").as_uri(), "done", 2, None)
    ]


def test_jobs(lake):
    with lake.table("taxi.trips").job("nightly", note="tonight"):
        (job,) = lake.jobs()
        text = "select table_name, job, owner, epoch, note, is_alive, is_exclusive, ttl_seconds from underlay.jobs"
        assert lake.sql(text).fetchall() == [
            ("trips", "nightly", job.owner, job.epoch, "tonight", True, False, job.ttl.total_seconds())
        ]
    assert lake.sql("from underlay.jobs").fetchall() == []


def test_views_join_with_tables_and_are_explained(lake):
    text = "select count(*) from underlay.files f join taxi.trips t on f.table_name = 'trips'"
    assert lake.sql(text).fetchall() == [(5,)]
    assert "taxi.trips, version 3: reads" in repr(lake.sql(f"explain {text}"))
    assert lake.sql("describe underlay.jobs").fetchall()[0][:2] == ("dataset", "VARCHAR")
    lake.sql("create table t.sizes as select table_name, bytes from underlay.files")
    assert len(lake.table("t.sizes")) == 2


def test_a_filter_on_names_opens_no_other_table():
    inner = open_store(f"memory://{uuid4()}")
    first = ul.connect(inner, registry="none")
    for number in range(20):
        first.create_table(f"d{number % 2}.t{number}", "a int")
    store = CountingStore(inner)
    for where, opened in (
        ("dataset = 'd1' and table_name = 't7'", {"d1/t7"}),
        ("table_name in ('t7', 't8') and version >= 0", {"d1/t7", "d0/t8"}),
        ("lower(table_name) = 'x' and dataset = 'nope'", set()),
    ):
        lake = ul.connect(store, registry="none")
        store.reset()
        assert len(lake.sql(f"from underlay.versions where {where}")) == len(opened)
        folders = {"/".join(key.split("/")[:2]) for request in store.log for key in request.request.keys}
        assert {folder for folder in folders if not folder.startswith("_catalog")} == opened
    lake = ul.connect(store, registry="none")
    store.reset()
    assert len(lake.sql("select dataset, table_name from underlay.tables")) == 20
    assert {key.split("/")[0] for request in store.log for key in request.request.keys} == {"_catalog"}


@pytest.mark.parametrize(
    "text",
    [
        "insert into underlay.tables values (1)",
        "delete from underlay.files",
        "truncate Underlay.versions",
        "drop table underlay.tables",
        "comment on table underlay.jobs is 'a'",
        "create table underlay.tables (a int)",
        "create table underlay.mine as select 1 as a",
        "create or replace table underlay.blocks as select 1 as a",
    ],
)
def test_statements_on_views_are_refused(lake, text):
    with pytest.raises(InvalidRequest, match=r"system views are read-only|cannot be called underlay"):
        lake.sql(text)
    assert len(lake.tables()) == 2


def test_a_name_that_is_no_view_is_not_found(lake):
    with pytest.raises(TableNotFound, match=r"there is no table underlay\.nope"):
        lake.sql("from underlay.nope")


def test_a_table_of_an_older_lake_wins(lake, monkeypatch):
    """Lakes from before may have a dataset of this name."""
    monkeypatch.setattr("underlay.index.catalog._RESERVED", frozenset())
    lake.create_table("underlay.files", "a int")
    assert lake.sql("from underlay.files").fetchall() == []
    assert len(lake.sql("from underlay.tables")) == 3
    lake.sql("insert into underlay.files values (1)")
    assert lake.sql("from underlay.files").fetchall() == [(1,)]
