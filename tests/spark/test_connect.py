from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os, sys
import underlay as ul
from underlay.spark.java import cache_folder, find_java_home

os.environ["JAVA_HOME"] = str(find_java_home(os.environ, cache_folder(os.environ)))
from pyspark.sql import SparkSession
from tests.spark.conftest import FILES, ROWS, SCHEMA, rows_of
from underlay.spark.source import register_source
from underlay.spark.write import append, is_small, overwrite, write

builder = SparkSession.builder.remote("local[2]").config("spark.sql.session.timeZone", "UTC")
spark = builder.config("spark.sql.warehouse.dir", sys.argv[1] + "/warehouse").getOrCreate()
assert not hasattr(spark, "_jsparkSession")

lake = ul.connect(sys.argv[1] + "/lake")
table = lake.create_table("shop.items", SCHEMA)
for file in range(FILES):
    table.append(rows_of(file))
register_source(spark, lake)
frame = spark.read.format("underlay").load("shop.items")
assert frame.count() == FILES * ROWS
found = {row.id: row for row in frame.where("id between 3000 and 3005").collect()}
expected = {row["id"]: row for row in table.scan(where="id between 3000 and 3005").to_arrow().to_pylist()}
assert found.keys() == expected.keys()
for number, row in found.items():
    for name in ("name", "price", "day", "local", "flag", "tags"):
        assert getattr(row, name) == expected[number][name], (number, name)
assert spark.read.format("underlay").option("where", "id < 5").option("columns", "id").load("shop.items").count() == 5
print("read")

numbers = lake.create_table("some.numbers", "id bigint", sort_by=["id"])
spark.range(0, 100).write.format("underlay").mode("append").save("some.numbers")
assert numbers.version == 1
done = append(spark.range(100, 200), lake, "some.numbers", token="a")
assert not is_small(spark.range(1))
assert (done.version, done.row_count) == (2, 100)
assert append(spark.range(100, 200), lake, "some.numbers", token="a").is_repeat
assert sorted(numbers.to_arrow()["id"].to_pylist()) == list(range(200))
overwrite(spark.range(5), lake, "some.numbers")
assert sorted(numbers.to_arrow()["id"].to_pylist()) == list(range(5))
assert write(spark.range(5), lake, "some.copy", "ignore").row_count == 5
print("written")
spark.stop()
"""


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
        timeout=250,
    )
    assert done.stdout.split() == ["read", "written"], done.stderr[-4000:]
