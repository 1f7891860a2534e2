"""One system in a process and a JVM of its own, which brings source files into tables when it is told to.

`bench.ingest` starts it, see `bench.spark.worker`. Plain Parquet, Delta Lake and Iceberg read with Spark and append;
what is timed is both, from the listing of the files on. Their tables are there before, Underlay makes its own.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from bench.ingest.files import SCHEMA, Sources
from bench.spark.systems import Underlay
from bench.spark.worker import Reply, Request, Requests, Worker, serve
from underlay.api.lake import Lake, connect
from underlay.spark import ingest
from underlay.store import open_store
from underlay.store.testing import CountingStore

_HASHES = 1 << 20
"""Hashes of rows are below, so that a float holds their sum."""


class Load(Request, frozen=True, kw_only=True):
    """Bring all sources into a new table."""

    name: str
    sources: Sources


class Check(Request, frozen=True, kw_only=True):
    """Count the rows of a table, and sum their hashes."""

    name: str


class Again(Load, frozen=True, kw_only=True):
    """Bring sources into a table that knows them all, over a new connection to the lake.

    The reply has the number of Spark jobs, of known sources and of ingested ones.
    """


class IngestWorker(Worker):
    """A system in this process that takes sources as well."""

    def do(self, request: Requests | Load | Check | Again) -> Reply:
        """Carry out a request."""
        match request:
            case Again():
                return self._again(request)
            case Load():
                return self._load(request)
            case Check():
                return self._timed(lambda: self._check(request))
        return super().do(request)

    def _load(self, request: Load) -> Reply:
        system = self._system
        if isinstance(system, Underlay):
            lake = system.new_tables(self._spark)
            return self._timed(lambda: self._ingest(request, lake))
        system.create(self._spark, request.name, SCHEMA)
        return self._timed(lambda: system.append(self._read(request.sources), request.name, ""))

    def _ingest(self, request: Load, lake: Lake) -> None:
        found = ingest(f"bench.{request.name}", self._pattern(request), lake=lake, spark=self._spark, columns=SCHEMA)
        if found.ingested != request.sources.files or found.failed or found.rejected_count:
            raise AssertionError(f"not all of {request.sources.folder} was ingested: {found}")

    def _again(self, request: Again) -> Reply:
        if not isinstance(self._system, Underlay):
            raise AssertionError("other systems do not know sources")
        store = CountingStore(open_store(self._system.new_tables(self._spark).url))
        jobs = self._job_count()
        begin = time.perf_counter()
        found = ingest(f"bench.{request.name}", self._pattern(request), lake=connect(store), spark=self._spark)
        seconds = time.perf_counter() - begin
        values = [float(self._job_count() - jobs), float(found.known), float(found.ingested)]
        return Reply(seconds=seconds, values=values, requests=store.request_count())

    def _read(self, sources: Sources) -> DataFrame:
        reader, path = self._spark.read.schema(from_arrow_schema(SCHEMA)), str(self._source / sources.pattern)
        match sources.kind:
            case "csv" | "csv.gz":
                return reader.csv(path, header=True)
            case "jsonl":
                return reader.json(path)
            case "parquet":
                return reader.parquet(path)

    def _check(self, request: Check) -> list[float]:
        hashed = f"sum(pmod(xxhash64({', '.join(SCHEMA.names)}), {_HASHES}))"
        (row,) = self._system.read(self._spark, request.name).selectExpr("count(*)", "sum(id)", hashed).collect()
        return [float(value) for value in row]

    def _pattern(self, request: Load) -> str:
        return str(self._source / request.sources.pattern)

    def _job_count(self) -> int:
        """Jobs that Spark was ever given."""
        context: Any = self._spark.sparkContext  # Any: py4j has no types
        return int(context._jsc.sc().dagScheduler().numTotalJobs())


if __name__ == "__main__":
    serve(IngestWorker, msgspec.json.Decoder(Requests | Load | Check | Again))
