"""One system in a process and a JVM of its own, which does what it is told, one request at a time.

`bench.spark` starts it. Requests and replies are lines of JSON on stdin and stdout; what Spark says goes to stderr.
Only the verb itself is timed: DataFrames to append are made before, results are checked after.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame, SparkSession

from bench.spark.rows import Dataset, make_rows
from bench.spark.systems import SYSTEMS, System, Underlay, start_spark


class Request(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What a worker is told."""


class Open(Request, frozen=True, kw_only=True):
    """Make a dataset known to the session, adopted before if it was not."""

    dataset: Dataset


class OpenPlain(Request, frozen=True, kw_only=True):
    """Make the files of a dataset known to the session, as Spark itself reads them."""

    dataset: Dataset


class Ask(Request, frozen=True, kw_only=True):
    """Answer a query with one row. `{table}` stands for the table in its text."""

    dataset: Dataset
    sql: str


class First(Ask, frozen=True, kw_only=True):
    """Make a dataset known and answer a query."""


class Plan(Ask, frozen=True, kw_only=True):
    """Plan a query as far as the partitions of its scan; read nothing."""


class Create(Request, frozen=True, kw_only=True):
    """Make a table to append to."""

    name: str


class Append(Request, frozen=True, kw_only=True):
    """Append some rows, or all of a dataset's files."""

    name: str
    way: str
    rows: int | Dataset


class Count(Request, frozen=True, kw_only=True):
    """Count the rows of a table that was appended to."""

    name: str


class Remove(Request, frozen=True, kw_only=True):
    """Delete a table that was appended to."""

    name: str


Requests = Open | OpenPlain | Ask | First | Plan | Create | Append | Count | Remove


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """How long it took, what came out, bytes that the JVM read, and requests of our driver to the store.

    `refused` says why a statement was not run, where the caller compares refusals.
    """

    seconds: float
    values: list[float] = []
    read_bytes: int = 0
    requests: int | None = None
    rows: list[str] = []
    refused: str | None = None


class Worker:
    """A system in this process."""

    def __init__(self, system: System, spark: SparkSession, folder: Path, source: Path) -> None:
        self._system = system
        self._spark = spark
        self._folder = folder
        self._source = source
        self._tables: dict[Dataset, str] = {}
        jvm: Any = spark.sparkContext._jvm  # Any: py4j has no types
        self._counters = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/io")

    def do(self, request: Requests) -> Reply:
        """Carry out a request."""
        match request:
            case Plan():
                return self._timed(lambda: [self._planned_partitions(request)])
            case First():
                return self._timed(lambda: self._first_answer(request))
            case Ask():
                return self._timed(lambda: self._answer(request))
            case Open():
                return self._timed(lambda: self._open(request.dataset))
            case OpenPlain():
                return self._timed(lambda: self._open_plain(request.dataset))
            case Create():
                return self._timed(lambda: self._system.create(self._spark, request.name))
            case Append():
                frame = self._frame(request.rows)
                return self._timed(lambda: self._system.append(frame, request.name, request.way))
            case Count():
                return self._timed(lambda: [self._system.read(self._spark, request.name).count()])
            case Remove():
                return self._timed(lambda: self._system.remove(self._spark, request.name))

    def _timed(self, work: Callable[[], list[float] | None]) -> Reply:
        bytes_before, requests_before = self._read_bytes(), self._request_count()
        begin = time.perf_counter()
        found = work()
        seconds = time.perf_counter() - begin
        return Reply(
            seconds=seconds,
            values=found or [],
            read_bytes=self._read_bytes() - bytes_before,
            requests=self._request_count() - requests_before if isinstance(self._system, Underlay) else None,
        )

    def _open(self, dataset: Dataset) -> None:
        mark = self._folder / f"{dataset.folder}.adopted"
        if not mark.exists():
            self._system.adopt(self._spark, dataset)
            mark.touch()
        self._tables[dataset] = self._system.open(self._spark, dataset)

    def _open_plain(self, dataset: Dataset) -> None:
        self._tables[dataset] = f"plain_{dataset.name}"
        self._frame(dataset).createOrReplaceTempView(self._tables[dataset])

    def _first_answer(self, request: First) -> list[float]:
        self._open(request.dataset)
        return self._answer(request)

    def _answer(self, request: Ask) -> list[float]:
        (row,) = self._query(request).collect()
        return [float(value) for value in row]

    def _planned_partitions(self, request: Ask) -> float:
        """Forces what a run would ask of the table's metadata, and the compilation of the scan."""
        found: Any = self._query(request)  # Any: py4j has no types
        return float(found._jdf.queryExecution().toRdd().getNumPartitions())

    def _query(self, request: Ask) -> DataFrame:
        return self._spark.sql(request.sql.format(table=self._tables[request.dataset]))

    def _frame(self, rows: int | Dataset) -> DataFrame:
        if isinstance(rows, int):
            return self._spark.createDataFrame(make_rows(0, rows))
        return self._spark.read.parquet(str(self._source / rows.folder / "files"))

    def _request_count(self) -> int:
        return self._system.request_count() if isinstance(self._system, Underlay) else 0

    def _read_bytes(self) -> int:
        """Bytes that the JVM has read, from files and the gateway. Hadoop's own count leaves vectored reads out."""
        counters = dict(line.split(": ") for line in self._counters.read_text().splitlines())
        return int(counters["rchar"])


def serve(kind: type[Worker], decoder: msgspec.json.Decoder[Requests]) -> None:
    """Do what is asked on stdin as the system that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("--source", type=Path, required=True, help="where datasets lie")
    parser.add_argument("--written", type=Path, required=True, help="where new tables are made")
    parser.add_argument("--jars", type=Path, nargs="*", default=[], help="of all peers")
    chosen = parser.parse_args()
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the JVM's words must not come between replies
    folder = chosen.source / "systems" / chosen.system
    folder.mkdir(parents=True, exist_ok=True)
    system = SYSTEMS[chosen.system](folder, chosen.source, chosen.written)
    worker = kind(system, start_spark(system, chosen.jars, chosen.written), folder, chosen.source)
    for line in sys.stdin.buffer:
        replies.write(msgspec.json.encode(worker.do(decoder.decode(line))) + b"\n")


if __name__ == "__main__":
    serve(Worker, msgspec.json.Decoder(Requests))
