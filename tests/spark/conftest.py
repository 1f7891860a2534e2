from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import underlay as ul
from tests.spark.own_jvm.cluster import MASTER, open_on_cluster
from tests.spark.own_jvm.s3a import S3A, submit_arguments
from underlay.api.lake import Lake
from underlay.spark.native import write_jobs
from underlay.spark.start.open_session import start_on
from underlay.spark.types.spark_types import spark_schema

os.environ["PYSPARK_SUBMIT_ARGS"] = (  # few rows: less time goes into compiling, and into tasks without rows
    f"{submit_arguments()} --conf spark.sql.shuffle.partitions=3 --conf spark.python.authenticate.socketTimeout=300s"
    " --conf spark.python.task.killTimeout=100ms"
    ' --driver-java-options "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" pyspark-shell'
)
LOCAL = "local[*,2]"
"""Tasks are tried twice, once in a session that Underlay starts."""
ROWS = 50
FILES = 6
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("small", pa.int32()),
        ("unsigned", pa.uint32()),
        ("name", pa.string()),
        ("size", pa.float64()),
        ("ratio", pa.float32()),
        ("price", pa.decimal128(12, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("flag", pa.bool_()),
        ("raw", pa.binary()),
        ("inner", pa.struct([("A", pa.int64()), ("deep", pa.struct([("text", pa.string())]))])),
        ("tags", pa.list_(pa.string())),
        ("marks", pa.map_(pa.string(), pa.int64())),
    ]
)


def rows_of(file: int) -> pa.Table:
    """Rows whose values lie apart from those of other files; every seventh is null, but for its id."""
    whole = range(file * 1000, file * 1000 + ROWS)
    start = datetime(2020, 1, 1, tzinfo=UTC)
    odd = [float("nan"), -0.0, 0.0]
    values = {
        "id": whole,
        "small": [-n for n in whole],
        "unsigned": [n + 2**31 for n in whole],
        "name": [f"é{file}-{n}" for n in whole],
        "size": [odd[n % 3] if file == 3 and n % 10 < 3 else n / 4 for n in whole],
        "ratio": [n / 10 for n in whole],
        "price": [Decimal(n) / 100 for n in whole],
        "day": [date(1, 1, 1) + timedelta(days=n * 100) for n in whole],
        "at": [start + timedelta(hours=n, microseconds=n) for n in whole],
        "local": [(start + timedelta(minutes=n)).replace(tzinfo=None) for n in whole],
        "flag": [file % 2 == 0] * ROWS,
        "raw": [n.to_bytes(4, "big") for n in whole],
        "inner": [{"A": n, "deep": {"text": f"t{n}"}} for n in whole],
        "tags": [[f"x{n}", None] for n in whole],
        "marks": [[("k", n)] for n in whole],
    }
    nulled = {
        name: [None if name != "id" and at % 7 == 6 else value for at, value in enumerate(column)]
        for name, column in values.items()
    }
    return pa.table(nulled, SCHEMA)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not for the kind of session that this process has."""
    has_cluster, has_jars = MASTER in os.environ, S3A in os.environ
    is_meant = {"cluster_only": has_cluster, "local_only": not has_cluster, "s3a_only": has_jars}
    others = [mark for mark in is_meant if not is_meant[mark]]
    left_out = [item for item in items if any(map(item.get_closest_marker, others))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(autouse=True)
def patient_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails waits until Spark's tasks have ended: on a busy machine they go on otherwise."""
    monkeypatch.setattr(write_jobs, "_MOST_SECONDS", 600)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests, since it takes seconds to start: local, or of the cluster that is named."""
    master = os.environ.get(MASTER)
    found = start_on(LOCAL) if master is None else open_on_cluster(master)
    yield found
    found.stop()


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake in a folder with a space, whose table `shop.items` has six files that lie apart."""
    found = ul.connect(tmp_path_factory.mktemp("spark") / "my lake")
    table = found.create_table("shop.items", SCHEMA)
    for file in range(FILES):
        table.append(rows_of(file))
    return found


@pytest.fixture(scope="session")
def plain(spark: SparkSession, lake: Lake) -> str:
    """The view of the same rows in memory, where nothing is pruned."""
    rows = pa.concat_tables(map(rows_of, range(FILES)))
    at = rows.column_names.index("unsigned")
    signed = rows.set_column(at, "unsigned", rows.column(at).cast(pa.int64()))  # PySpark takes no unsigned numbers
    columns = spark_schema(lake.table("shop.items").snapshot().schema)  # or PySpark takes local times for instants
    spark.createDataFrame(signed, columns).coalesce(1).createOrReplaceTempView("plain")
    return "plain"
