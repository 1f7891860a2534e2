from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameWriter, Observation, SparkSession
from pyspark.sql.functions import count, lit

import underlay as ul
from tests.end_to_end.lakes import data_keys, named_keys
from tests.spark.bus import job_group, jobs_of
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.errors import InvalidRequest, NotFound, SchemaMismatch, TableExists
from underlay.spark.api.data_source import register_source
from underlay.spark.api.write import append, overwrite, write
from underlay.spark.relation.relation import read_table
from underlay.spark.start.session_lakes import remember_lake
from underlay.spark.tasks import collect as small
from underlay.spark.tasks.clustering import clustered
from underlay.spark.tasks.collect import collect_small, is_small
from underlay.spark.tasks.map_in_arrow import map_in_arrow

NAME = "some.table"


@pytest.fixture(scope="module", autouse=True)
def _registered(spark: SparkSession):
    register_source(spark)


@pytest.fixture
def empty(tmp_path: Path) -> Lake:
    return ul.connect(tmp_path / "a lake")


@pytest.fixture
def table(empty: Lake) -> Table:
    return empty.create_table(NAME, "id bigint not null, name string")


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is small enough to be written in process."""
    monkeypatch.setattr(small, "SMALL_BYTES", -1)


def frame_of(spark: SparkSession, begin: int, end: int, tasks: int = 2) -> DataFrame:
    return spark.range(begin, end, 1, tasks).selectExpr("id", "concat('name ', id) as name")


def writer_of(frame: DataFrame, table: Table, mode: str = "append", **options: str) -> DataFrameWriter:
    lake = table.writable().lake.store.url
    return frame.write.format("underlay").mode(mode).option("lake", lake).options(**options)


def ids(table: Table) -> list[int]:
    return sorted(table.scan(["id"]).to_arrow()["id"].to_pylist())


def files_on_disk(table: Table) -> set[str]:
    return data_keys(table.writable().lake.store)


def fail_on(number: int, frame: DataFrame) -> DataFrame:
    """The same rows, but the task that has this id fails when it comes to it."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if number in batch.column("id").to_pylist():
                raise ValueError("this task fails")
            yield batch

    return map_in_arrow(frame, run, frame.schema)


def test_a_write_is_one_version_with_a_file_for_each_task(spark: SparkSession, table: Table):
    writer_of(frame_of(spark, 0, 100), table).save(NAME)
    assert (table.version, ids(table)) == (1, list(range(100)))
    assert len(named_keys(table)) == 2
    writer_of(frame_of(spark, 100, 110), table).save(NAME)
    assert (table.version, ids(table)) == (2, list(range(110)))


def test_an_overwrite_replaces_all_rows_in_one_version(spark: SparkSession, table: Table):
    table.append(pa.table({"id": [1, 2], "name": ["a", "b"]}))
    writer_of(frame_of(spark, 10, 20), table, "overwrite").save(NAME)
    assert (table.version, ids(table)) == (2, list(range(10, 20)))
    assert ids(table.at(version=1)) == [1, 2]


def test_columns_that_do_not_fit_are_refused_before_any_job_runs(spark: SparkSession, empty: Lake, table: Table):
    frame = frame_of(spark, 0, 5)
    with job_group(spark, "misfits"):
        for misfit, problem in (
            (frame.withColumnRenamed("name", "other"), "no column other"),
            (frame.withColumnRenamed("name", "NAME"), "Did you mean name"),
            (frame.selectExpr("cast(id as string) as id", "name"), "id"),
            (frame.select("name"), "required column is missing"),
            (frame.select(), "the frame has no columns"),
        ):
            with pytest.raises(SchemaMismatch, match=problem):
                append(misfit, NAME, lake=empty)
            with pytest.raises(Exception, match=problem):
                writer_of(misfit, table).save(NAME)
    assert jobs_of(spark, "misfits") == set()
    assert (table.version, files_on_disk(table)) == (0, set())


def test_columns_are_matched_by_name_widened_and_null_when_they_are_missing(spark: SparkSession, empty: Lake):
    wide = empty.create_table(NAME, "id bigint not null, name string, size double, day date, part int")
    frame = spark.sql("select cast(1.5 as float) as size, 'x' as name, 2S as part, cast(7 as int) as id")
    append(frame, NAME, lake=empty)
    writer_of(frame, wide).save(NAME)
    row = {"id": 7, "name": "x", "size": 1.5, "day": None, "part": 2}
    assert wide.to_arrow().to_pylist() == [row, row]


def test_a_table_that_is_not_there_is_named_with_how_to_make_it(spark: SparkSession, empty: Lake, table: Table):
    for mode in ("append", "overwrite"):
        with pytest.raises(Exception, match=r"no table no\.such.*create_table"):
            writer_of(frame_of(spark, 0, 5), table, mode).save("no.such")
    with pytest.raises(NotFound, match="create_table"):
        append(frame_of(spark, 0, 5), "no.such", lake=empty)


def test_an_option_that_does_not_exist_is_named(spark: SparkSession, table: Table):
    with pytest.raises(AnalysisException, match=r"unknown option.*tokn"):
        writer_of(frame_of(spark, 0, 5), table, tokn="x").save(NAME)


def test_a_table_without_order_and_partitions_is_not_shuffled(spark: SparkSession, table: Table):
    frame = frame_of(spark, 0, 5)
    assert clustered(frame, table.read_head().root.definition) is frame


def test_options_of_readers_are_refused(spark: SparkSession, table: Table):
    with pytest.raises(AnalysisException, match="apply to reads"):
        writer_of(frame_of(spark, 0, 5), table, version="0").save(NAME)


def test_a_failed_task_leaves_nothing_visible(spark: SparkSession, table: Table):
    """Tasks that Spark kills with it may leave files that nobody names."""
    with pytest.raises(Exception, match="this task fails"):
        writer_of(fail_on(3999, frame_of(spark, 0, 4000, tasks=4)), table).save(NAME)
    assert (table.version, ids(table), named_keys(table)) == (0, [], set())


def test_a_write_with_a_token_is_done_once(spark: SparkSession, table: Table):
    for _ in range(2):
        writer_of(frame_of(spark, 0, 10), table, token="night").save(NAME)
    assert (table.version, ids(table)) == (1, list(range(10)))


def test_two_writers_at_the_same_time_both_land(spark: SparkSession, table: Table):
    frames = [frame_of(spark, begin, begin + 100) for begin in (0, 100)]

    def save(frame: DataFrame) -> None:
        register_source(spark)  # Spark finds sources in the session that is active in a thread, and a new one has none
        writer_of(frame, table).save(NAME)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(save, frames))
    assert (table.version, ids(table)) == (2, list(range(200)))


def test_a_commit_that_fails_is_told_and_spark_aborts_without_deleting(spark: SparkSession, empty: Lake, table: Table):
    """Spark aborts after a failed commit too, and then names every task's files (R1)."""
    url = empty.url

    def overtake(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        ul.connect(url, registry="none").table(NAME).append(pa.table({"id": [7], "name": ["g"]}))

    frame = frame_of(spark, 0, 10, tasks=1)
    with pytest.raises(Exception, match="CommitConflict"):
        writer_of(map_in_arrow(frame, overtake, frame.schema), table, "overwrite").save(NAME)
    assert ids(table) == [7]
    assert len(files_on_disk(table) - named_keys(table)) == 1


def test_a_small_append_is_collected_in_one_job_and_written_as_one_file(spark: SparkSession, empty: Lake, table: Table):
    frame = frame_of(spark, 0, 1000)
    with job_group(spark, "small"):
        assert is_small(frame)
        done = append(frame, NAME, lake=empty)
    assert (done.version, done.row_count, done.file_count) == (1, 1000, 1)
    assert len(jobs_of(spark, "small")) == 1
    assert ids(table) == list(range(1000))


def test_what_grows_on_its_way_is_not_small(spark: SparkSession):
    assert not is_small(spark.sql("select explode(sequence(id, 1000000000)) as id from range(1)"))
    assert not is_small(map_in_arrow(frame_of(spark, 0, 5), lambda batches: batches, frame_of(spark, 0, 5).schema))


def test_what_a_frame_observes_is_what_is_written(spark: SparkSession, empty: Lake, table: Table):
    seen = Observation()
    frame = frame_of(spark, 0, 60_000).observe(seen, count(lit(1)).alias("rows")).selectExpr("id", "name")
    assert not is_small(frame)
    assert append(frame, NAME, lake=empty).row_count == 60_000
    assert seen.get == {"rows": 60_000}


def test_struct_that_is_null_and_has_a_field_that_never_is_can_be_collected(spark: SparkSession, empty: Lake):
    table = empty.create_table(NAME, "id bigint, x struct<a: int, b: list<struct<c: int>>>")
    inner = "named_struct('a', 1, 'b', array(named_struct('c', 2)))"
    frame = spark.sql(f"select id, case when id > 0 then {inner} end as x from range(2)")
    assert is_small(frame)
    append(frame, NAME, lake=empty)
    assert table.to_arrow()["x"].to_pylist() == [None, {"a": 1, "b": [{"c": 2}]}]


def test_many_rows_that_spark_takes_for_few_bytes_are_written_by_tasks(spark: SparkSession, empty: Lake):
    source = empty.create_table("some.source", "id bigint, text string")
    source.append(pa.table({"id": [1] * 200_000, "text": ["x" * 50] * 200_000}))
    frame = read_table(spark, empty, "some.source")
    assert is_small(frame)
    assert collect_small(frame) is None
    empty.create_table("some.copy", "id bigint, text string")
    assert append(frame, "some.copy", lake=empty).row_count == 200_000


@pytest.mark.usefixtures("large")
def test_a_large_append_is_clustered_by_partition_and_order(spark: SparkSession, empty: Lake):
    empty.create_table(NAME, "id bigint, part int, name string", sort_by=["-id"], partition_by=["part"])
    shuffled = ("(id * 7919) % 4000 as id", "cast(id % 2 as int) as part", "'x' as name")
    done = append(spark.range(0, 4000, 1, 4).selectExpr(*shuffled), NAME, lake=empty)
    table = empty.table(NAME)
    assert (done.version, done.row_count) == (1, 4000)
    assert done.file_count == len(named_keys(table)) <= 4
    assert ids(table) == list(range(4000))
    rows = table.scan(["part", "id"]).to_arrow().to_pylist()
    assert [(row["part"], -row["id"]) for row in rows] == sorted((row["part"], -row["id"]) for row in rows)


@pytest.mark.usefixtures("large")
def test_a_large_append_may_lack_columns_by_which_the_table_is_ordered(spark: SparkSession, empty: Lake):
    table = empty.create_table(
        NAME,
        "id bigint, ID int, part int, late date, `a.b` int, x struct<a: int, `a.b`: int, `c``d`: int>",
        sort_by=["late", "id", "x.`c``d`", "-x.`a.b`", "`a.b`"],
        partition_by=["part"],
    )
    native = empty.create_table("some.native", "id bigint, late date, x struct<a: int>", sort_by=["late", "x.a", "-id"])
    definition = table.read_head().root.definition
    rows = spark.range(0, 6, 1, 2)
    other = "cast(id as int) as ID"
    for frame in (rows.selectExpr(other), rows.selectExpr("id", other)):  # Spark may take one for the other
        assert clustered(frame, definition) is frame
    append(rows.selectExpr(other), table)
    nested = rows.selectExpr("named_struct('a.b', cast(id % 3 as int)) as x", "cast(-id as int) as `a.b`").alias("x")
    append(nested, table)
    assert clustered(nested, definition).select("`a.b`").collect() == [(-5,), (-2,), (-4,), (-1,), (-3,), (0,)]
    append(rows, native)
    assert table.count() + native.count() == 18


@pytest.mark.usefixtures("large")
def test_a_large_append_whose_task_fails_leaves_only_files_that_nobody_names(
    spark: SparkSession, empty: Lake, table: Table
):
    with pytest.raises(Exception, match="this task fails"):
        append(fail_on(1999, frame_of(spark, 0, 2000, tasks=4)), NAME, lake=empty)
    assert (table.version, ids(table)) == (0, [])


@pytest.mark.parametrize("is_large", [False, True])
def test_an_append_with_a_token_is_done_once(
    spark: SparkSession, empty: Lake, table: Table, monkeypatch: pytest.MonkeyPatch, is_large: bool
):
    if is_large:
        monkeypatch.setattr(small, "SMALL_BYTES", -1)
    first = append(frame_of(spark, 0, 10), NAME, token="a", lake=empty)
    again = append(frame_of(spark, 0, 10), NAME, token="a", lake=empty)
    assert (first.is_repeat, again.is_repeat, again.version) == (False, True, first.version)
    assert ids(table) == list(range(10))


def test_an_overwrite_of_a_table_by_its_own_rows_keeps_what_it_chose(spark: SparkSession, empty: Lake, table: Table):
    table.append(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}))
    frame = spark.read.format("underlay").option("lake", empty.url).load(NAME).where("id > 1")
    done = overwrite(frame, NAME, lake=empty)
    assert (done.version, done.row_count, ids(table)) == (2, 2, [2, 3])


def test_modes_are_those_of_spark(spark: SparkSession, empty: Lake):
    frame = frame_of(spark, 0, 5)
    with pytest.raises(NotFound):
        write(frame, NAME, "append", lake=empty)
    created = write(frame, NAME, sort_by=["id"], lake=empty)
    table = empty.table(NAME)
    assert created is not None
    assert (created.row_count, table.schema.field("id").nullable) == (5, True)
    for mode in ("error", "ErrorIfExists", "default"):
        with pytest.raises(TableExists):
            write(frame, NAME, mode, lake=empty)
    assert write(frame, NAME, "IGNORE", lake=empty) is None
    write(frame_of(spark, 5, 7), NAME, "Append", lake=empty)
    assert ids(table) == list(range(7))
    write(frame_of(spark, 8, 9), NAME, "overwrite", lake=empty)
    assert ids(table) == [8]
    assert write(frame, "other.table", "ignore", lake=empty) is not None
    with pytest.raises(InvalidRequest, match="unknown mode"):
        write(frame, NAME, "replace", lake=empty)


def test_what_is_no_frame_no_name_or_no_token_is_refused(spark: SparkSession, empty: Lake, table: Table):
    for given in ([1], pa.table({"id": [1]})):
        for call in (append, overwrite, write):
            with pytest.raises(InvalidRequest, match=r"not a Spark DataFrame.*table\.append"):
                call(given, NAME, lake=empty)
    for name in ("", "odd.modes.x", "`odd`.`modes`", 5):
        for call in (append, write):
            for lake in (None, empty):
                with pytest.raises(InvalidRequest, match=r"not a name for a table.*A name is dataset\.table"):
                    call(frame_of(spark, 0, 5), name, lake=lake)
    with pytest.raises(InvalidRequest, match=r"a token must be a string.*found 5"):
        append(frame_of(spark, 0, 5), NAME, lake=empty, token=5)  # type: ignore[arg-type]  # no text
    assert table.version == 0


def test_no_part_of_a_table_that_a_write_creates_is_required_but_keys_of_maps(spark: SparkSession, empty: Lake):
    inner = "named_struct('a', {0}, 'b', array({0}), 'c', map('k', {0}))"
    columns = "array({0}) as l, map(named_struct('n', {0}), {1}) as m, {1} as s, array(array({1})) as d"

    def frame(value: str) -> DataFrame:
        return spark.sql(f"select {columns.format(value, inner.format(value))} from range(1)")

    write(frame("1"), NAME, lake=empty)
    append(frame("cast(null as int)"), NAME, lake=empty)
    table = empty.table(NAME)
    full = {"a": 1, "b": [1], "c": [("k", 1)]}
    none = {"a": None, "b": [None], "c": [("k", None)]}
    assert table.to_arrow().to_pylist() == [
        {"l": [1], "m": [({"n": 1}, full)], "s": full, "d": [[full]]},
        {"l": [None], "m": [({"n": None}, none)], "s": none, "d": [[none]]},
    ]
    assert table.schema.field("m").type.key_field.nullable is False


@pytest.mark.parametrize("is_large", [False, True])
def test_rows_of_every_type_come_back_as_they_were(
    spark: SparkSession, lake: Lake, plain: str, empty: Lake, monkeypatch: pytest.MonkeyPatch, is_large: bool
):
    if is_large:
        monkeypatch.setattr(small, "SMALL_BYTES", -1)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        write(spark.table(plain), "copy.items", lake=empty)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    found = empty.table("copy.items").to_arrow().sort_by("id")
    expected = lake.table("shop.items").to_arrow().sort_by("id")
    for name in found.column_names:
        assert [str(value) for value in found[name].to_pylist()] == [str(value) for value in expected[name].to_pylist()]


def test_a_name_in_two_lakes_or_in_none_needs_a_lake(spark: SparkSession, empty: Lake, tmp_path: Path):
    twins = [empty, ul.connect(tmp_path / "twin")]
    for lake in twins:
        lake.create_table("some.twin", "id bigint")
        remember_lake(spark, lake)
    frame = spark.range(3)
    for name, found in (("some.twin", "2 lakes"), ("some.unknown", "0 lakes")):
        with pytest.raises(InvalidRequest, match=f"which lake {name} is in.*{found}"):
            append(frame, name)
    assert append(frame, "some.twin", lake=twins[1]).row_count == 3
    assert append(frame, twins[0].table("some.twin")).row_count == 3
    with pytest.raises(TableExists):
        write(frame, twins[0].table("some.twin"))
    assert write(frame, twins[0].table("some.twin"), "ignore") is None
    only = twins[1].create_table("some.other", "id bigint")
    assert append(frame, "some.other").row_count == only.to_arrow().num_rows == 3
