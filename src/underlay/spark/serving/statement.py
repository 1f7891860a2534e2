"""One statement on Spark: checked, analysed with its tables pinned, run, stopped by its tag, its rows as Arrow.

Rows come from the driver a few partitions at a time, as many as fit into a window of memory: never the whole result.
"""

from __future__ import annotations

import logging
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType
from pyspark.util import inheritable_thread_target, local_connect_and_auth

from underlay.errors import InvalidRequest
from underlay.local.sql.duckdb_errors import no_table
from underlay.runtime.locks import ProcessLock
from underlay.spark.api.scans import FileScan, scans_of
from underlay.spark.jvm.gateway import (
    GATEWAY_ERRORS,
    JavaObject,
    call,
    call_number,
    call_numbers,
    frame_of_plan,
    gateway_of,
    java_frame,
    java_session,
    scala_seq,
)
from underlay.spark.serving.check import CheckedPlan, check_plan, check_size
from underlay.spark.serving.failures import FailureKind, StatementFailure, failure_of
from underlay.spark.serving.tables import OpenTable, StatementTables
from underlay.spark.tasks.collect import limited_by_task
from underlay.spark.types.arrow_types import arrow_schema

WINDOW_BYTES = 64 << 20
"""Of rows that the driver holds for one statement, unless one partition alone has more."""
_BATCH_ROWS = 10_000
_LOOK_SECONDS = 0.1
_ANALYSIS = "org.apache.spark.sql.catalyst.analysis"
_SESSION = "org.apache.spark.sql.classic.SparkSession"
_PYTHON = "org.apache.spark.api.python.PythonRDD"
_MOST_BYTES = 256 << 20
_MOST_ROWS = 2**31 - 1
_BYTES = {"boolean": 1, "byte": 1, "short": 2, "integer": 4, "long": 8, "double": 8, "timestamp": 8, "timestamp_ntz": 8}
_LEAST_BYTES = 4
_MOST_THREADS = 256
"""Two for each statement that runs, and for those that were stopped and have not ended yet."""
_LENGTH = struct.Struct(">i")
_NO_JOB = (0, 0, 0, 0)
_log = logging.getLogger(__name__)
Parameters = Sequence[object] | Mapping[str, object] | None


class StatementStopped(Exception):  # what happened
    """The statement was cancelled."""


class Slots:
    """Small numbers, each used by one statement at a time: pools of the scheduler, which are never forgotten."""

    def __init__(self) -> None:
        self._lock = ProcessLock()
        self._used: set[int] = set()

    def take(self) -> int:
        """The least that is free."""
        with self._lock:
            found = next(one for one in range(len(self._used) + 1) if one not in self._used)
            self._used.add(found)
            return found

    def give_back(self, slot: int) -> None:
        """It is free again."""
        with self._lock:
            self._used.discard(slot)


_slots = Slots()


@cache
def threads() -> ThreadPoolExecutor:
    """Threads that are used again: each that calls Java has one there, which outlives it."""
    return ThreadPoolExecutor(_MOST_THREADS, "underlay-statement")


class SparkStatement:
    """A statement, in a session of its own that is forgotten afterwards. One thread uses it, others cancel it."""

    def __init__(
        self,
        spark: SparkSession,
        open_table: OpenTable,
        names: Callable[[], Sequence[str]],
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        self._spark = spark.newSession()
        self._context = spark.sparkContext
        self._tables = StatementTables(self._spark, open_table)
        self._names = names
        self._tag = f"underlay-{uuid4().hex}"
        self._ended = threading.Event()
        self._most_bytes = most_bytes
        self._most_rows = _MOST_ROWS
        self._is_cancelled = False
        self._jobs: dict[int, tuple[int, int, int, int]] = {}
        """Those that have ended."""
        self._frame: DataFrame

    def start(self, work: Callable[[], None]) -> None:
        """Do this, which uses the statement, in another thread, whose jobs have the statement's tag meanwhile."""

        def tagged() -> None:
            slot = _slots.take()
            try:
                self._context.addJobTag(self._tag)
                self._context.setInterruptOnCancel(True)
                gateway_of(self._spark).static(_SESSION, "setActiveSession", java_session(self._spark))
                self._context.setLocalProperty("spark.scheduler.pool", f"statement-{slot}")
                work()
            finally:
                self._context.removeJobTag(self._tag)
                _slots.give_back(slot)
                self._ended.set()

        threads().submit(inheritable_thread_target(self._spark)(tagged))

    @property
    def has_ended(self) -> bool:
        """Whether its thread has."""
        return self._ended.is_set()

    def cancel(self) -> None:
        """Stop it, again and again until its thread has ended: a job may be about to begin."""
        self._is_cancelled = True
        while not self._ended.wait(_LOOK_SECONDS):
            self._context.cancelJobsWithTag(self._tag)

    def analyse(self, text: str, parameters: Parameters, *, are_nulls_last: bool = False) -> None:
        """Check the text, open its tables, and resolve it. `are_nulls_last`: all its sorts have nulls last. Raises
        InvalidRequest, TableNotFound, StatementFailure."""
        check_size(text)
        with self._translating():
            parser = call(call(java_session(self._spark), "sessionState"), "sqlParser")
            checked = check_plan(call(parser, "parsePlan", text))
            self._check_names(checked)
            self._tables.are_nulls_last = are_nulls_last
            plan = self._with_values(self._tables.in_plan(checked.plan), parameters)
            frame = frame_of_plan(plan, self._spark)
            # a task holds its rows until all are there, and one without memory ends the whole process
            self._most_rows = min(self._most_bytes // _least_bytes(frame.schema) + 1, _MOST_ROWS)
            self._frame = limited_by_task(frame, self._most_rows)

    @property
    def schema(self) -> pa.Schema:
        """The columns. Raises Unsupported for types that answers do not have."""
        return arrow_schema(self._frame.schema, is_loose=True)

    @property
    def versions(self) -> Mapping[str, int]:
        """What it reads."""
        return self._tables.versions

    def scans(self) -> list[FileScan]:
        """What of its tables Spark plans to read."""
        with self._translating():
            return scans_of(self._frame)

    def batches(self) -> Iterator[bytes]:
        """The rows, each batch as a message of Arrow's stream. Raises StatementFailure, StatementStopped."""
        with self._translating():
            java, schema = java_frame(self._frame), self.schema
            rows = call(call(java, "toArrowBatchRdd", _BATCH_ROWS, "UTC", False, False), "toJavaRDD")
            count, begin, window = call_number(rows, "getNumPartitions"), 0, 1
            while begin < count:
                if self._is_cancelled:
                    raise StatementStopped
                end = min(begin + window, count)
                size = row_count = 0
                for batch in self._collected(rows, range(begin, end)):
                    size += len(batch)
                    row_count += pa.ipc.read_record_batch(batch, schema).num_rows
                    yield batch
                if row_count >= self._most_rows:
                    raise StatementFailure(
                        kind=FailureKind.MEMORY, detail="a partition of the answer is larger than Spark's driver takes"
                    )
                fitting = WINDOW_BYTES * (end - begin) // max(size, 1)
                window = max(1, min(fitting, 4 * window, 2 * self._context.defaultParallelism))
                begin = end

    def progress(self) -> dict[str, int]:
        """Its jobs so far: stages and tasks, and how many of them are done."""
        java = call(call(JavaObject(self._context._jsc), "sc"), "statusTracker")
        jobs = [self._job(number) for number in call_numbers(java, "getJobIdsForTag", self._tag)]
        stages, stages_done, tasks, tasks_done = (sum(column) for column in zip(_NO_JOB, *jobs, strict=True))
        return {"stages": stages, "stages_done": stages_done, "tasks": tasks, "tasks_done": tasks_done}

    def _job(self, number: int) -> tuple[int, int, int, int]:
        if number in self._jobs:
            return self._jobs[number]
        tracker = self._context.statusTracker()
        job = tracker.getJobInfo(number)
        if job is None:
            return _NO_JOB
        stages = [one for one in map(tracker.getStageInfo, job.stageIds) if one is not None]
        tasks = sum(one.numTasks for one in stages)
        if job.status != "RUNNING":
            self._jobs[number] = (len(stages), len(stages), tasks, tasks)
            return self._jobs[number]
        done = sum(one.numCompletedTasks >= one.numTasks for one in stages)
        return len(stages), done, tasks, sum(one.numCompletedTasks for one in stages)

    def _check_names(self, checked: CheckedPlan) -> None:
        for parts in checked.tables:
            if len(parts) == 1 and parts[0].lower() not in checked.queries:
                raise no_table(parts[0], self._names())

    def _with_values(self, plan: JavaObject, given: Parameters) -> JavaObject:
        """The plan with values for its parameters."""
        if not given:
            return plan
        gateway = gateway_of(self._spark)
        named = given if isinstance(given, Mapping) else None
        values = scala_seq(gateway, [self._literal(one) for one in (given if named is None else named.values())])
        if named is None:
            return gateway.new(f"{_ANALYSIS}.PosParameterizedQuery", plan, values)
        return gateway.new(f"{_ANALYSIS}.NameParameterizedQuery", plan, scala_seq(gateway, list(named)), values)

    def _literal(self, given: object) -> JavaObject:
        value = Decimal(given) if isinstance(given, int) and not -(2**63) <= given < 2**63 else given
        try:
            column: Any = f.lit(value)  # Any: py4j has no types
        except GATEWAY_ERRORS:
            raise InvalidRequest("a parameter has no type of Spark", found=repr(value)[:80]) from None
        return call(java_session(self._spark), "expression", column._jc)

    def _collected(self, rows: JavaObject, partitions: range) -> Iterator[bytes]:
        """What tasks make of some partitions, when all of these are done."""
        context: Any = self._context  # Any: py4j has no types
        gateway = gateway_of(self._spark)
        served: Any = gateway.static(_PYTHON, "runJob", context._jsc.sc(), rows, list(partitions))
        stream, connection = local_connect_and_auth(served[0], served[1])
        try:
            connection.settimeout(None)
            while len(head := stream.read(_LENGTH.size)) == _LENGTH.size:
                yield stream.read(*_LENGTH.unpack(head))
            served[2].getResult()  # an end is an end only if nothing failed
        finally:
            stream.close()
            connection.close()

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except GATEWAY_ERRORS as error:
            if self._is_cancelled:
                raise StatementStopped from None
            if self._tables.failure is not None:  # as it was before it went through the JVM
                raise self._tables.failure from None
            found = failure_of(error)
            if found.kind is FailureKind.ENGINE:
                _log.error("a statement failed on Spark: %s", error)
            raise found from None


def _least_bytes(schema: StructType) -> int:
    """What a row takes at least: numbers are as large as they are, texts and nested values may be empty."""
    return sum(_BYTES.get(field.dataType.typeName(), _LEAST_BYTES) for field in schema.fields) or 1
