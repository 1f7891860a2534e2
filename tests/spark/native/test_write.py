"""Rows that Spark's own Parquet writer writes: as right as those that go through Arrow, and as well indexed."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import expr

import underlay as ul
from tests.end_to_end.lakes import data_keys, named_keys
from tests.gate import some
from tests.spark.answers.fuzz import asked, in_memory, matching
from tests.spark.answers.trap_rows import COUNT, NAN, VALUES, conditions, wide_rows
from tests.spark.relation.test_deletions import delete
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.errors import Inconsistent, Unavailable
from underlay.index.entry import Flag
from underlay.maintain.verify_lake import verify
from underlay.pm import from_parquet
from underlay.spark.api.write import append, write
from underlay.spark.jvm.gateway import call, java_session
from underlay.spark.native import write as native_write
from underlay.spark.native import write_jobs
from underlay.spark.native.columns import fits_native
from underlay.spark.relation.relation import read_table
from underlay.spark.tasks import collect as small
from underlay.spark.types.spark_types import spark_schema
from underlay.store.directory import local_root
from underlay.table.coordination.intent import list_intents

NAME = "some.table"
OTHERWISE = ("t13_ms", "t21", "t21_wide")
"""Columns of types that Spark does not write."""
ASKED = ("t1", "t1_single", "t3_null", "t5", "t5_single", "t9", "t10_bytes", "t16", "t22", "t22_small", "t24", "t25")
HOSTILE = {
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.compression.codec": "gzip",
}


@pytest.fixture(autouse=True)
def _large(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is small enough to be written in process."""
    if spark.version.startswith("4.0."):
        pytest.skip("Spark 4.0 cannot be told how many rows a block has")
    monkeypatch.setattr(small, "SMALL_BYTES", -1)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return ul.connect(tmp_path / "a lake")


def folder_of(table: Table) -> Path:
    root = local_root(table.stores.lake.url)
    assert root is not None
    return root / table.read_head().revision.keys.folder


def writers_of(table: Table) -> set[str]:
    """Who wrote the files of the newest version."""
    snapshot = table.snapshot()
    return {(snapshot.layout(file.layout).created_by or "").split()[0] for file in snapshot.files()}


def flags_of(table: Table, column: str) -> list[Flag]:
    """What is known of each block's chunk of a column."""
    snapshot = table.snapshot()
    (ident,) = [leaf.id for leaf in snapshot.schema.leaves if leaf.path == (column,)]
    chunks = [entry for file in snapshot.files() for entry in file.columns if entry.field == ident]
    return [Flag(flag) for entry in chunks for flag in entry.flags]


def nothing_left(table: Table) -> bool:
    """Whether neither files, nor folders of jobs, nor intents are there beyond what versions name."""
    head, staging = table.read_head(), folder_of(table) / "_staging"
    is_empty = not staging.exists() or not list(staging.iterdir())
    names = data_keys(table.stores.lake) == named_keys(table)
    return is_empty and names and not list_intents(head.revision.store, head.revision.keys)


def test_trap_rows_are_found_by_every_condition_on_spark_and_in_process(spark: SparkSession, lake: Lake):
    """The session asks for another form of files, which the table does not take, and keeps its settings."""
    columns = tuple(name for name in VALUES if name not in OTHERWISE)
    rows = wide_rows(columns)
    table = lake.create_table(NAME, rows.schema, key=["n"], properties={"block_rows": 2})
    before = {name: str(spark.conf.get(name)) for name in HOSTILE}
    for name, value in HOSTILE.items():
        spark.conf.set(name, value)
    try:
        append(in_memory(spark, rows, table).coalesce(1), NAME, lake=lake)
        assert {name: spark.conf.get(name) for name in HOSTILE} == HOSTILE
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert writers_of(table) == {"parquet-mr"}
    assert len(flags_of(table, "n")) == COUNT // 2
    found = table.to_arrow().sort_by("n")
    assert [str(row) for row in found.to_pylist()] == [str(row) for row in rows.to_pylist()]
    wheres = some(conditions(ASKED))
    expected = matching(in_memory(spark, rows, table), wheres)
    read_table(spark, lake, NAME).createOrReplaceTempView("native_table")
    answers = asked(spark, "native_table", wheres)
    assert [at for at in zip(wheres, answers, expected, strict=True) if at[1] != at[2]] == []
    ways = [(op, value) for op in ("=", "<", ">", "<>") for value in (0, 1, 5)]
    asked_here = [f"{name} {op} {value}" for name in ("t1", "t5", "t24") for op, value in ways]
    here = [sorted(table.scan(["n"], where=where).to_arrow()["n"].to_pylist()) for where in asked_here]
    assert here == matching(in_memory(spark, rows, table), asked_here)
    assert verify(table.writable().lake, table.stores, deep=True).findings == ()


def test_blocks_are_known_to_hold_no_nan_wherever_one_stands(spark: SparkSession, lake: Lake):
    values = [1.0, 2.0, NAN, 1.0, 1.0, NAN, NAN, NAN, None, NAN, -0.0, None]
    table = lake.create_table(NAME, "n bigint, c double, f float", properties={"block_rows": 2})
    rows = spark.createDataFrame([(n, c, c) for n, c in enumerate(values)], "n long, c double, f float").coalesce(1)
    append(rows, NAME, lake=lake)
    for name in ("c", "f"):
        may_hold = [bool(flag & Flag.MAY_HOLD_NAN) for flag in flags_of(table, name)]
        assert may_hold == [False, True, True, True, True, False]
    assert table.scan(["n"], where="c > 2").to_arrow()["n"].to_pylist() == [2, 5, 6, 7, 9]


def test_a_key_has_bloom_filters_and_sidecars_are_those_of_the_files(spark: SparkSession, lake: Lake):
    table = lake.create_table(NAME, "id bigint not null, name string", key=["name"])
    append(spark.range(0, 4000, 1, 2).selectExpr("id", "concat('n', id) as name"), NAME, lake=lake)
    assert all(flag & Flag.HAS_BLOOM for flag in flags_of(table, "name"))
    folder = folder_of(table)
    for file in table.snapshot().files():
        sidecar = (folder / "_pm" / file.location.removesuffix(".parquet")).read_bytes()
        assert sidecar == from_parquet(folder / file.location)
    kept = [table.plan(where=f"name = '{name}'").kept.blocks for name in ("n17", "n2n", "n3999")]
    assert kept == [1, 0, 1]


def test_deleted_rows_of_such_files_are_gone(spark: SparkSession, lake: Lake):
    table = lake.create_table(NAME, "id bigint not null")
    append(spark.range(0, 100, 1, 2), NAME, lake=lake)
    delete(table, 1, [0, 49])
    first = table.snapshot().version
    left = sorted(table.to_arrow()["id"].to_pylist())
    assert len(left) == 98
    assert sorted(row.id for row in read_table(spark, lake, NAME, version=first).collect()) == left


def test_missing_and_narrower_columns_are_as_the_table_has_them(spark: SparkSession, lake: Lake):
    table = lake.create_table(NAME, "id bigint not null, size double, price decimal(12, 4), part smallint, day date")
    columns = ("2Y as part", "cast(1.5 as float) as size", "cast(id as int) as id", "1.25BD as price")
    frame = spark.range(3).selectExpr(*columns)
    append(frame, NAME, lake=lake)
    assert writers_of(table) == {"parquet-mr"}
    rows = table.to_arrow()
    assert rows.drop_columns(["price"]).sort_by("id").to_pylist() == [
        {"id": number, "size": 1.5, "part": 2, "day": None} for number in range(3)
    ]
    assert {str(price) for price in rows["price"].to_pylist()} == {"1.2500"}


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (("nullif(id, 7) as id", "'x' as name"), "a required column holds null"),
        (("id", "cast(X'FF' as string) as name"), "text is not valid UTF-8"),
        (("id", "if(id = 1999, raise_error('this task fails'), 'x') as name"), "this task fails"),
    ],
)
def test_a_write_that_fails_leaves_nothing(spark: SparkSession, lake: Lake, columns: tuple[str, str], problem: str):
    table = lake.create_table(NAME, "id bigint not null, name string")
    with pytest.raises(Exception, match=problem):
        append(spark.range(0, 2000, 1, 4).selectExpr(*columns), NAME, lake=lake)
    assert (table.version, nothing_left(table)) == (0, True)


def test_a_write_that_fails_has_no_task_that_goes_on(spark: SparkSession, lake: Lake):
    table = lake.create_table(NAME, "id bigint")
    slept = "ifnull(java_method('java.lang.Thread', 'sleep', 500L), '')"
    busy = "aggregate(sequence(1, 300), id, (a, x) -> a + aggregate(sequence(1, 100000), 0L, (b, y) -> b + y))"
    failing = f"if(id = 0, raise_error(concat('this task fails', {slept})), {busy}) as id"  # no interrupt ends it
    with pytest.raises(Exception, match="this task fails"):
        append(spark.range(0, 2, 1, 2).selectExpr(failing), NAME, lake=lake)
    context: Any = spark.sparkContext._jsc
    assert {one.numRunningTasks() for one in context.sc().statusTracker().getExecutorInfos()} == {0}
    assert (table.version, nothing_left(table)) == (0, True)


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks are taken to run on other machines."""
    monkeypatch.setattr(native_write, "is_local", lambda _: False)


@pytest.mark.usefixtures("far")
def test_tasks_elsewhere_check_text_and_make_filters_themselves(spark: SparkSession, lake: Lake):
    table = lake.create_table(NAME, "id bigint not null, name string", key=["name"])
    frame = spark.range(0, 4000, 1, 2).selectExpr("id", "concat('n', id) as name")
    append(frame, NAME, lake=lake)
    assert all(flag & Flag.HAS_BLOOM for flag in flags_of(table, "name"))
    assert [table.plan(where=f"name = '{name}'").kept.blocks for name in ("n17", "n2n", "n3999")] == [1, 0, 1]
    with pytest.raises(PySparkException, match="text is not valid UTF-8"):
        append(frame.withColumn("name", expr("cast(X'FF' as string)")), NAME, lake=lake)
    assert append(frame.where("id > rand() + 9000"), NAME, lake=lake).row_count == 0
    assert (table.version, nothing_left(table)) == (1, True)


@pytest.mark.usefixtures("far")
def test_rows_that_the_driver_does_not_see_are_missed(spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch):
    """A committer says nothing of files that executors wrote to disks of their own."""
    table = lake.create_table(NAME, "id bigint")
    monkeypatch.setattr(native_write, "_files_in", lambda folder: sorted(folder.glob("part-00000*.parquet")))
    with pytest.raises(Unavailable, match="an executor wrote to a disk that the driver does not see"):
        append(spark.range(0, 2000, 1, 2), NAME, lake=lake)
    assert (table.version, nothing_left(table)) == (0, True)


def test_what_hadoop_says_of_columns_does_not_count(spark: SparkSession, lake: Lake):
    """A filter or a dictionary on a float would lose one of the zeros; without bounds nothing could be skipped."""
    hadoop: Any = call(call(java_session(spark), "sparkContext"), "hadoopConfiguration")  # Any: py4j has no types
    hostile = {
        "parquet.bloom.filter.enabled#x": "true",
        "parquet.bloom.filter.enabled#id": "true",
        "parquet.enable.dictionary#x": "true",
        "parquet.column.statistics.enabled#id": "false",
    }
    table = lake.create_table(NAME, "id bigint, x double", key=["id"], properties={"block_rows": 1000})
    for name, value in hostile.items():
        hadoop.set(name, value)
    try:
        rows = spark.range(0, 4000, 1, 1).selectExpr("id", "if(id % 2000 < 1000, 0.0D, -0.0D) as x")
        append(rows, NAME, lake=lake)
    finally:
        for name in hostile:
            hadoop.unset(name)
    found = read_table(spark, lake, NAME)
    assert (found.where("x = 0.0D").count(), found.where("x = -0.0D").count()) == (4000, 4000)
    assert [table.plan(where=f"id = {number}").kept.blocks for number in (17, 3999, 4000)] == [1, 1, 0]


def test_what_a_frame_observes_is_told(spark: SparkSession, lake: Lake):
    lake.create_table(NAME, "id bigint")
    seen = Observation("seen")
    append(spark.range(0, 100, 1, 2).observe(seen, expr("count(1) as c")), NAME, lake=lake)
    assert seen.get == {"c": 100}


def slow_rows(spark: SparkSession) -> DataFrame:
    waiting = "if(java_method('java.lang.Thread', 'sleep', 300L) is null, id, id) as id"
    return spark.range(0, 200, 1, 200).selectExpr(waiting)


def wait_for_jobs(spark: SparkSession, count: int) -> None:
    until = time.monotonic() + 120
    while len(spark.sparkContext.statusTracker().getActiveJobsIds()) != count:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_jobs_end_when_their_thread_is_interrupted(spark: SparkSession):
    def run() -> None:
        with pytest.raises(Py4JJavaError, match="cancelled"):
            slow_rows(spark).collect()

    def run_and_interrupt() -> None:
        with write_jobs.ended_with_this_call(spark, "some-job"):
            threads.append(InheritableThread(target=run, session=spark))  # it has what its maker has now
            threads[0].start()
            wait_for_jobs(spark, 1)
            raise KeyboardInterrupt

    threads: list[InheritableThread] = []
    wait_for_jobs(spark, 0)  # what others left
    with pytest.raises(KeyboardInterrupt):
        run_and_interrupt()
    (running,) = threads
    wait_for_jobs(spark, 0)
    running.join(120)
    assert not running.is_alive()


def test_a_session_whose_jobs_are_interrupted_writes_nothing(spark: SparkSession, lake: Lake):
    table = lake.create_table(NAME, "id bigint")
    wait_for_jobs(spark, 0)  # what others left
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(append, slow_rows(spark), NAME, lake=lake)
        wait_for_jobs(spark, 1)
        spark.interruptAll()
        with pytest.raises(Py4JJavaError, match="cancelled"):
            writing.result(240)
    assert (table.version, nothing_left(table)) == (0, True)


@pytest.mark.parametrize("name", ["_hidden", ".x", "sub/part"])
def test_files_have_their_names_whatever_hadoop_is_told(spark: SparkSession, lake: Lake, name: str):
    table = lake.create_table(NAME, "id bigint")
    hadoop: Any = spark.sparkContext._jsc
    hadoop.hadoopConfiguration().set("mapreduce.output.basename", name)
    try:
        assert append(spark.range(100), NAME, lake=lake).row_count == table.count() == 100
    finally:
        hadoop.hadoopConfiguration().unset("mapreduce.output.basename")


@pytest.mark.parametrize("odd", ["_hidden.parquet", "sub/part.parquet", "part.orc"])
def test_files_that_could_hold_rows_are_not_passed_over(tmp_path: Path, odd: str):
    for name in ("part-0.parquet", ".part-0.parquet.crc", "_temporary/0/task_1/part-1.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert native_write._files_in(tmp_path) == [tmp_path / "part-0.parquet"]
    (tmp_path / odd).parent.mkdir(exist_ok=True)
    (tmp_path / odd).touch()
    with pytest.raises(Inconsistent, match="something other"):
        native_write._files_in(tmp_path)


def test_no_rows_make_no_version(spark: SparkSession, lake: Lake):
    table = lake.create_table(NAME, "id bigint")
    assert append(spark.range(0, 10, 1, 2).where("id > rand() + 100"), NAME, lake=lake).row_count == 0
    assert (table.version, nothing_left(table)) == (0, True)


def test_writers_at_the_same_time_all_land(spark: SparkSession, lake: Lake):
    table = lake.create_table(NAME, "id bigint not null")
    frames = [spark.range(begin, begin + 100, 1, 2) for begin in range(0, 400, 100)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda frame: append(frame, NAME, lake=lake), frames))
    assert (table.version, sorted(table.to_arrow()["id"].to_pylist())) == (4, list(range(400)))
    assert nothing_left(table)


def test_rows_are_sorted_in_each_file_and_files_lie_apart(spark: SparkSession, lake: Lake):
    table = lake.create_table(NAME, "id bigint", sort_by=["-id"])
    append(spark.range(0, 4000, 1, 4).selectExpr("(id * 7919) % 4000 as id"), NAME, lake=lake)
    runs = [batch["id"].to_pylist() for batch in table.to_arrow().to_batches()]
    assert all(run == sorted(run, reverse=True) for run in runs)
    assert sum(table.plan(where=f"id = {number}").kept.blocks for number in (0, 2000, 3999)) == 3


def test_nested_rows_come_back_as_they_were(spark: SparkSession, lake: Lake):
    frame = spark.sql(
        "select id, array('a', null, concat('x', id)) as tags, named_struct('a', id, 'b', array(-0.0D)) as s,"
        " map('k', named_struct('t', 'é', 'f', double('NaN'))) as m, if(id = 1, null, array(id)) as l from range(3)"
    )
    write(frame.coalesce(1), NAME, lake=lake)
    table = lake.table(NAME)
    assert writers_of(table) == {"parquet-mr"}
    expected = frame.toArrow().sort_by("id").to_pylist()
    assert [str(row) for row in table.to_arrow().sort_by("id").to_pylist()] == [str(row) for row in expected]
    found = read_table(spark, lake, NAME)
    assert found.where("s.b[0] = 0.0D").count() == found.where("m['k'].f > 1").count() == 3
    append(frame.select("id"), NAME, lake=lake)  # what is null has parts that must not be
    assert table.to_arrow()["s"].null_count == 3
    bad = frame.withColumn("tags", expr("array('a', cast(X'C0' as string))"))
    with pytest.raises(Exception, match="not valid UTF-8"):
        append(bad, NAME, lake=lake)


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        (pa.schema([("u", pa.uint32())]), {}),
        (pa.schema([("t", pa.timestamp("ms"))]), {}),
        (pa.schema([("a", pa.int64()), ("A", pa.int64())]), {}),
        (pa.schema([("a.b", pa.float64())]), {}),
        (pa.schema([("a ", pa.float64())]), {}),
        (pa.schema([pa.field("l", pa.list_(pa.int64()), nullable=False)]), {}),
        (pa.schema([("s", pa.struct([pa.field("x", pa.int64(), nullable=False)]))]), {}),
        (pa.schema([("a", pa.int64())]), {"partition_by": ["a"]}),
    ],
)
def test_what_spark_would_write_otherwise_goes_through_arrow(
    lake: Lake, columns: pa.Schema, options: dict[str, list[str]]
):
    table = lake.create_table(NAME, columns, **options)
    assert not fits_native(spark_schema(table.snapshot().schema), table.read_head().root.definition)
