"""How much CPU does it take to make a table of files that exist, beside Delta Lake's CONVERT and PyIceberg's add_files?

A folder of small Parquet files of 20 columns, in the page cache (warm). Each way makes a table of all of them without
copying any, in turn, several rounds; the first round, which loads the libraries, does not count. CPU seconds are those
of the process, all threads. Then Underlay imports what Delta Lake and PyIceberg made.

    python -m bench.imports [--files 10000] [--rounds 3]

Every table is counted. Writes bench/out/imports.json.
"""

from __future__ import annotations

import argparse
import io
import resource
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, convert_to_deltalake
from pyiceberg.catalog.sql import SqlCatalog

import underlay
from bench.common.timing import save

ROWS = 10
COLUMNS = 20


def write_files(folder: Path, count: int) -> None:
    """Files of numbers and texts."""
    folder.mkdir(parents=True)
    numbers = {f"n{at}": pa.array(range(ROWS), pa.int64()) for at in range(COLUMNS // 2)}
    texts = {f"s{at}": [f"value {row}" for row in range(ROWS)] for at in range(COLUMNS // 2)}
    sink = io.BytesIO()
    pq.write_table(pa.table(numbers | texts), sink)
    for at in range(count):
        (folder / f"{at:06}.parquet").write_bytes(sink.getvalue())


def cpu_seconds(work: Callable[[], object]) -> float:
    """The CPU time of some work, of all threads."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run_round(folder: Path, count: int) -> dict[str, float]:
    """CPU seconds by way. Raises ValueError for a table without all rows."""
    files = folder / "files"
    write_files(files, count)
    lake = underlay.connect(str(folder / "lake"), registry="none")
    warehouse = folder / "warehouse"
    warehouse.mkdir()
    catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{warehouse}")
    catalog.create_namespace("n")
    iceberg = catalog.create_table("n.t", schema=pq.read_schema(files / "000000.parquet"))
    paths = [str(path) for path in sorted(files.glob("*.parquet"))]
    seconds = {
        "underlay": cpu_seconds(lambda: lake.import_table("b.hive", f"hive:{files}")),
        "delta": cpu_seconds(lambda: convert_to_deltalake(str(files))),
        "pyiceberg": cpu_seconds(lambda: iceberg.add_files(paths)),
        "underlay from delta": cpu_seconds(lambda: lake.import_table("b.delta", f"delta:{files}")),
        "underlay from iceberg": cpu_seconds(lambda: lake.import_table("b.iceberg", f"iceberg:{iceberg.location()}")),
    }
    counted = [len(lake.table(f"b.{name}")) for name in ("hive", "delta", "iceberg")]
    counted += [len(DeltaTable(files).file_uris()) * ROWS, iceberg.scan().count()]
    if set(counted) != {count * ROWS}:
        raise ValueError(f"a table does not have all rows: {counted}")
    return seconds


def main() -> None:
    """Measure, print the medians, and save them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    rounds = []
    for at in range(asked.rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            found = run_round(Path(folder), asked.files)
        rounds += [found] if at else []
    medians = {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}
    for name, seconds in medians.items():
        print(f"{name:24} {seconds:8.3f} s CPU {seconds / medians['underlay']:8.2f} of underlay's import of the files")
    save("imports", {"files": asked.files, "rounds": rounds, "cpu_seconds": medians})


if __name__ == "__main__":
    main()
