"""How much must a query read before Spark is worth its overhead?

A query that groups every row runs through DuckDB in process and on a local Spark session, warm, interleaved, over
tables of two sizes. CPU seconds are those of this process and of Java: their growth with the table is the price of a
GB, the rest that of a statement. `python -m bench.engines --rows 4000000`.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import SparkSession

import underlay as ul
from underlay.api.lake import Lake
from underlay.spark.relation.relation import pin
from underlay.spark.serving.session import serving_session
from underlay.spark.serving.statement import SparkStatement

_QUERY = "select k, count(*), sum(v), max(w) from bench.{} group by k"
_TICKS = 100.0


def main() -> None:
    """Print one JSON object for each engine and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        lake = ul.connect(f"{folder}/lake", registry="none")
        for name, rows in (("small", asked.rows // 4), ("large", asked.rows)):
            lake.sql(f"create table bench.{name} (k bigint, v double, w varchar)")
            lake.sql(
                f"insert into bench.{name} select hash(i) % 1000, hash(i) % 1000003 / 7,"
                f" 'text ' || hash(i + 1) from range({rows}) t(i)"
            )
        spark = serving_session("local[2]", 2 << 30, folder, {})
        jvm: Any = spark.sparkContext._jvm  # Any: py4j has no types
        java = int(jvm.ProcessHandle.current().pid())
        try:
            for name in ("small", "large"):
                size_bytes = lake.table(f"bench.{name}").snapshot().root.data_bytes
                least = {"duckdb": (1e9, 1e9), "spark": (1e9, 1e9)}
                for _ in range(asked.rounds):
                    least["duckdb"] = min(least["duckdb"], _duckdb(lake, name))
                    least["spark"] = min(least["spark"], _spark(spark, lake, name, java))
                for engine, (cpu, wall) in least.items():
                    found = {"engine": engine, "bytes": size_bytes, "cpu_s": round(cpu, 3), "wall_s": round(wall, 3)}
                    print(json.dumps(found))
        finally:
            spark.stop()


def _duckdb(lake: Lake, name: str) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    assert lake.sql(_QUERY.format(name)).to_arrow().num_rows == 1000
    return time.process_time() - cpu, time.perf_counter() - wall


def _spark(spark: SparkSession, lake: Lake, name: str, java: int) -> tuple[float, float]:
    cpu, wall = _cpu_of(java) + time.process_time(), time.perf_counter()
    statement = SparkStatement(spark, lambda table, *_: pin(lake.table(table)), list)
    statement.analyse(_QUERY.format(name), None)
    assert sum(1 for _ in statement.batches()) > 0
    return _cpu_of(java) + time.process_time() - cpu, time.perf_counter() - wall


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


if __name__ == "__main__":
    main()
