from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, sys
import pyarrow as pa
import underlay as ul
from underlay.spark.start.java_home import cache_folder, find_java_home

os.environ["JAVA_HOME"] = str(find_java_home(os.environ, cache_folder(os.environ)))
from pyspark.sql import SparkSession
from tests.spark.conftest import FILES, ROWS, SCHEMA, rows_of
from tests.spark.answers.sql_suite import FLOATS, JOINS, MOMENTS, OPAQUE, SHAPED, SHAPES, TEXT, WHOLE_NUMBERS, answers
from underlay.spark.types.spark_types import spark_schema
from underlay.spark.tasks.collect import is_small
from underlay.spark import session
from underlay.spark.api.write import append, overwrite, write

builder = SparkSession.builder.remote("local[2]").config("spark.sql.session.timeZone", "UTC")
builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.warehouse.dir", sys.argv[1] + "/warehouse").getOrCreate()
assert not hasattr(spark, "_jsparkSession")

lake = ul.connect(sys.argv[1] + "/lake")
table = lake.create_table("shop.items", SCHEMA)
for file in range(FILES):
    table.append(rows_of(file))
assert session(lake, spark) is spark
spark.read.format("underlay").load("shop.items").createOrReplaceTempView("items")
rows = pa.concat_tables(map(rows_of, range(FILES)))
at = rows.column_names.index("unsigned")
rows = rows.set_column(at, "unsigned", rows.column(at).cast(pa.int64()))
spark.createDataFrame(rows, spark_schema(table.snapshot().schema)).createOrReplaceTempView("plain")
conditions = [one for family in (WHOLE_NUMBERS, FLOATS, TEXT, MOMENTS, SHAPES, OPAQUE) for one in family]
judged = ", ".join(f"{condition} as c{at}" for at, condition in enumerate(conditions))
queries = (
    f"select id, {judged} from {{t}}",
    JOINS[0],
    "select flag, count(*) n, sum(price) s, min(name) a, max(at) b, count(size) c from {t} group by flag",
    *(query for query in SHAPED if "lateral view" in query or "inner.*" in query),
)
found, expected = answers(spark, "items", queries), answers(spark, "plain", queries)
for query in queries:
    assert found[query] == expected[query] and expected[query], query
where = "price between 10 and 10.2 or name like 'é4-401%' or size > 1250"
narrow = spark.read.format("underlay").option("where", where).option("columns", "id").load("shop.items")
wanted = table.scan(["id"], where=where).to_arrow()["id"].to_pylist()
assert sorted(row.id for row in narrow.collect()) == sorted(wanted) and len(wanted) > 10
print("read")

numbers = lake.create_table("some.numbers", "id bigint", sort_by=["id"])
spark.range(0, 100, 1, 2).write.format("underlay").mode("append").save("some.numbers")
assert numbers.version == 1
done = append(spark.range(100, 200, 1, 2), "some.numbers", token="a", lake=lake)
assert not is_small(spark.range(1))
assert (done.version, done.row_count) == (2, 100)
assert append(spark.range(100, 200, 1, 2), "some.numbers", token="a", lake=lake).is_repeat
assert sorted(numbers.to_arrow()["id"].to_pylist()) == list(range(200))
overwrite(spark.range(0, 5, 1, 1), "some.numbers", lake=lake)
assert sorted(numbers.to_arrow()["id"].to_pylist()) == list(range(5))
assert write(spark.range(0, 5, 1, 1), "some.copy", "ignore", lake=lake).row_count == 5
print("written")

from tests.spark.ingest_sources import COLUMNS, check_once, write_sources
from underlay.spark import ingest
from underlay.spark.tasks import collect as small
from pathlib import Path

small.SMALL_SOURCE_BYTES = -1
sources = write_sources(Path(sys.argv[1], "in"), 4)
assert ingest("some.rows", sources, lake=lake, spark=spark, columns=COLUMNS).ingested == 4
assert ingest("some.rows", sources, lake=lake, spark=spark).known == 4
check_once(lake, "some.rows", 4)
print("ingested")
spark.stop()
"""


@pytest.mark.own_jvm
@pytest.mark.local_only
def test_tables_are_read_and_written_over_spark_connect(tmp_path: Path):
    """In a process of its own, which starts a server: a process has one kind of session."""
    environment = {
        **os.environ,
        "PYTHONWARNINGS": "ignore",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=800,
    )
    assert done.stdout.split() == ["read", "written", "ingested"], done.stderr[-4000:]
