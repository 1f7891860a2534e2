"""Answers one worker: runs its statement on Spark, sends rows and progress, and stops it when the worker is gone."""

from __future__ import annotations

import select
import socket
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from underlay.api.lake import connect
from underlay.api.limited.limited_lake import LimitedLake
from underlay.api.table import Table
from underlay.local.dataset.source import NamedScan
from underlay.plan.plan import BlockPlan
from underlay.runtime.locks import ProcessLock
from underlay.server.common.problem import Problem, position_at, problem_of
from underlay.server.lockdown.check import Lockdown
from underlay.server.worker.job import StatementJob
from underlay.server.worker.messages import Message, data_frame, frame_of, receive
from underlay.server.worker.parameters import Parameters, read_parameters
from underlay.server.worker.scans import describe_scans, pack_scans, sums_of
from underlay.server.worker.spark_rows import spark_gone
from underlay.spark.relation.relation import pin
from underlay.spark.serving.failures import FailureKind, StatementFailure
from underlay.spark.serving.session import most_result_bytes, serving_session
from underlay.spark.serving.statement import SparkStatement, StatementStopped, threads

_PROGRESS_SECONDS = 0.25
_SEND_BYTES = 1 << 20
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
_STATUS = {
    FailureKind.TABLE: 404,
    FailureKind.DATA: 422,
    FailureKind.MEMORY: 422,
    FailureKind.ENGINE: 422,
}
"""Others are the request's fault."""


class SparkAnswers:
    """The session, and the lake that its statements read."""

    def __init__(self, settings: Mapping[str, Any]) -> None:  # Any: JSON
        self._lake = connect(
            settings["lake"], options=settings["options"], registry=settings["registry"], hot=settings["hot"]
        )
        self._lockdown = Lockdown()
        self._casting = ProcessLock()
        self._folder: str = settings["folder"]
        self._most_bytes = most_result_bytes(settings["spark_memory_bytes"])
        self._spark = serving_session(
            settings["master"], settings["spark_memory_bytes"], self._folder, settings["spark_settings"]
        )

    def wait_for_java(self) -> None:
        """Return when the Java process has ended."""
        gateway: Any = self._spark.sparkContext._gateway  # Any: py4j has no types
        gateway.proc.wait()

    def answer_aside(self, connection: socket.socket) -> None:
        """Answer a worker in another thread."""
        threads().submit(self._answer, connection)

    def _answer(self, connection: socket.socket) -> None:
        """Run the statement that the worker sends. The end of the connection stops it."""
        with connection, suppress(OSError, _WorkerLeft):
            asked = receive(connection)
            if asked is None:
                return
            job = StatementJob.from_message(asked.message)
            limited = LimitedLake(
                self._lake, may_read=job.rights.may_read, may_write=lambda name: False, as_of=job.moment
            )

            def open_table(name: str, version: int | None, tag: str | None, moment: datetime | None) -> Table:
                found = limited.table(name, version=version, tag=tag, as_of=moment)
                is_pinned = (version, tag, moment, job.as_of) != (None, None, None, None)
                return found if is_pinned else pin(found)

            told = _Told(connection)
            statement = SparkStatement(self._spark, open_table, lambda: limited.names, self._most_bytes)
            statement.start(lambda: self._run(job, statement, told))
            try:
                while not statement.has_ended:
                    if select.select([connection], [], [], _PROGRESS_SECONDS)[0]:  # nothing follows but its end
                        return
                    told.say({"type": "progress", **statement.progress()})
            finally:
                statement.cancel()  # also when the worker left while it was told of progress

    def _run(self, job: StatementJob, statement: SparkStatement, told: _Told) -> None:
        try:
            try:
                statement.analyse(job.sql, self._parameters(job.parameters), are_nulls_last=job.are_nulls_last)
                schema = statement.schema.serialize().to_pybytes()
                scans = _scans(statement)
                packed = pack_scans(scans) if job.spool is not None else b""
                plans = {"sums": sums_of(scans), "plans": describe_scans(scans), "scans_bytes": len(packed)}
                told.say({"type": "begun", "versions": dict(statement.versions), **plans})
                told.send(packed)
                told.send(schema)
                for batch in statement.batches():
                    told.send(batch)
                told.send(_END_OF_STREAM)
                told.say({"type": "end"})
            except (_WorkerLeft, StatementStopped):
                return
            except Exception as error:  # noqa: BLE001  # told to the client, and the process goes on
                problem = self._problem_of(error, job.sql)
                told.say({"type": "error", "problem": {**problem.as_json(), "more": dict(problem.more)}})
        except _WorkerLeft:
            return

    def _parameters(self, given: Parameters) -> Parameters:
        with self._casting:
            return read_parameters(self._lockdown, given)

    def _problem_of(self, error: Exception, text: str) -> Problem:
        if not isinstance(error, StatementFailure):
            problem = problem_of(error)
            if problem.code == "internal":
                traceback.print_exc()
            return problem
        if error.kind is FailureKind.GONE:
            return spark_gone()
        place = None
        if error.line is not None and error.column is not None:
            place = position_at(text, error.line, error.column)
        code = "spark_failed" if error.kind is FailureKind.ENGINE else error.kind.value
        detail = error.detail.replace(self._folder, "…")
        return Problem(status=_STATUS.get(error.kind, 400), code=code, detail=detail, position=place)


class _WorkerLeft(Exception):
    """Nobody reads the answer any longer."""


class _Told:
    """What is said to a worker, by two threads."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()

    def say(self, message: Message) -> None:
        """One message."""
        self._send(frame_of(message))

    def send(self, data: bytes) -> None:
        """Bytes of the answer. It waits while the worker does not read."""
        for at in range(0, len(data), _SEND_BYTES):
            self._send(data_frame(memoryview(data)[at : at + _SEND_BYTES]))

    def _send(self, frame: bytes) -> None:
        with self._sending:
            try:
                self._connection.sendall(frame)
            except OSError:
                raise _WorkerLeft from None


def _scans(statement: SparkStatement) -> list[tuple[NamedScan, BlockPlan]]:
    """What Spark plans to read."""
    return [
        (NamedScan(scan.table, scan.query), scan.plan)
        for scan in statement.scans()
        if scan.query is not None and scan.plan is not None
    ]
