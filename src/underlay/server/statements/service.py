"""Runs statements for clients: each waits for its turn, runs in a worker, and yields a result, a stream or a
problem.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic

from underlay.server.common.metrics import ServerMetrics
from underlay.server.common.problem import Problem
from underlay.server.common.settings import ServerSettings, audit_paths
from underlay.server.statements.audit import AuditLog
from underlay.server.statements.pool import WorkerPool
from underlay.server.statements.process import WorkerGone, WorkerProcess
from underlay.server.statements.spark_process import SparkProcess
from underlay.server.statements.spool import SpoolFolder
from underlay.server.statements.statement import RunStatement, StatementState
from underlay.server.statements.statement_queue import Ticket, Turns
from underlay.server.worker.job import BinsJob, LookJob, Output, StatementJob, WindowJob
from underlay.server.worker.messages import Frame, FrameKind, Message

_SWEEP_SECONDS = 5.0
_CANCELLED = "cancelled"
_COUNTED = {"blocks_total": "blocks_total", "blocks_read_total": "blocks_read", "bytes_read_total": "bytes_read"}
"""Counters, and the sums of a statement's scans that they add up."""


class BrokenStream(Exception):  # what happened
    """The rows ended early, and their format cannot say so: the connection is cut."""


class StatementService:
    """All statements of a server, and the workers that run them."""

    def __init__(self, settings: ServerSettings, metrics: ServerMetrics) -> None:
        limits = settings.limits
        self._spool = SpoolFolder(settings.spool)
        self._settings = replace(settings, spool=self._spool.path)
        self._limits = limits
        self._metrics = metrics
        *older, newest = audit_paths(self._settings)
        self._audit = AuditLog(newest, older[0] if older else None)
        self.turns = Turns(running=limits.running, waiting=limits.waiting, per_token=limits.per_token)
        self.workers = WorkerPool(self._settings, limits.running)
        self.spark = SparkProcess(self._settings)
        self.readers = WorkerPool(self._settings, max(1, limits.running // 2))
        self.known: dict[str, RunStatement] = {}
        self.is_draining = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._lending: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start the workers. Raises the error if they do not start."""
        try:
            await asyncio.gather(self.workers.open(), self.readers.open())
        except BaseException:
            await self.close()
            raise
        self._sweeping = asyncio.create_task(self._sweep())

    async def close(self) -> None:
        """Give running statements some seconds to end; then stop them, and leave nothing behind."""
        self.is_draining = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._limits.drain_seconds)
        stopped = Problem(status=503, code="draining", detail="the server is stopping", retry_after_seconds=5)
        for statement in list(self.known.values()):
            statement.stop(stopped, self._limits.cancel_seconds)
        if self._tasks:
            await asyncio.wait(self._tasks)
        for task in (*self._lending, *filter(None, [self._sweeping])):
            task.cancel()
        await asyncio.gather(self.workers.close(), self.readers.close(), self.spark.close())
        self._audit.close()
        self._spool.close()

    @property
    def spool_bytes(self) -> int:
        """The size of all kept results."""
        return sum(one.bytes for one in self.known.values() if one.spool is not None)

    async def stream(self, statement: RunStatement, job: StatementJob | LookJob) -> AsyncIterator[bytes]:
        """The answer as it is produced. The first item is empty, and says that the statement has begun. Raises Problem
        before that, BrokenStream after it.
        """
        has_begun = False
        try:
            async for frame in self._frames(statement, job.as_message()):
                if frame.kind is FrameKind.DATA:
                    yield frame.payload
                    continue
                message = frame.message
                if message["type"] == "begun":
                    has_begun = True
                    yield b""
                elif message["type"] == "error" and not message.get("is_told"):
                    raise statement.stopped_by or Problem.from_json(message["problem"])
        except Problem:
            if has_begun:
                raise BrokenStream from None
            raise

    def keep(self, statement: RunStatement, job: StatementJob) -> None:
        """Run the statement in the background, and keep its rows. Raises Problem when the queue is full."""
        if self.spool_bytes > self._limits.spool_bytes:
            self._forget_oldest()
        spool = self._spool.path / f"{statement.id}.arrow"
        message = replace(job, spool=str(spool)).as_message()
        self._enter(statement)  # from here on nothing may fail: only a statement that ends frees its place in the queue
        statement.spool = spool
        self._spawn(self._to_its_end(self._frames(statement, message)))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _lend(self, worker: WorkerProcess, number: int) -> None:
        task = asyncio.ensure_future(self._lend_spark(worker, number))
        self._lending.add(task)
        task.add_done_callback(self._lending.discard)

    async def _lend_spark(self, worker: WorkerProcess, number: int) -> None:
        """Tell a worker where Spark is. It may have another statement by then, which knows by the number."""
        try:
            found: Message = {"path": await self.spark.path()}
        except Problem as problem:
            found = {"problem": problem.as_json()}
        worker.tell({"type": "answer", "number": number, **found})

    async def window(self, statement: RunStatement, job: WindowJob | LookJob | BinsJob) -> AsyncIterator[bytes]:
        """Rows of a kept result. The first item is empty, and says that the rows exist. Raises Problem."""
        statement.touched = monotonic()
        try:
            async with aclosing(self.read(job)) as parts:
                async for part in parts:
                    yield part
        finally:
            statement.touched = monotonic()

    async def read(
        self, job: WindowJob | LookJob | BinsJob, on_begun: Callable[[Message], None] | None = None
    ) -> AsyncGenerator[bytes]:
        """What a reading worker finds. The first item is empty, and says that it has begun. Raises Problem."""
        has_begun = False
        try:
            async with self.readers.worker() as reader:
                await reader.begin(job.as_message())
                async for frame in reader.frames():
                    if frame.kind is FrameKind.DATA:
                        yield frame.payload
                    elif frame.message["type"] == "begun":
                        has_begun = True
                        if on_begun is not None:
                            on_begun(frame.message)
                        yield b""
                    elif frame.message["type"] == "error":
                        raise Problem.from_json(frame.message["problem"])
        except WorkerGone as gone:
            raise (BrokenStream() if has_begun else gone.as_problem()) from None
        except Problem:
            if has_begun:
                raise BrokenStream from None
            raise

    async def page(self, statement: RunStatement, rows: int, output: Output) -> object:
        """The first rows of a kept result, as decoded JSON."""
        job = WindowJob(spool=str(statement.spool), limit=rows, output=replace(output, format="json"))
        return json.loads(b"".join([part async for part in self.window(statement, job)]))["rows"]

    def cancel(self, statement: RunStatement) -> None:
        """Stop the statement, whatever it is doing."""
        problem = Problem(status=422, code=_CANCELLED, detail="the statement was cancelled")
        statement.stop(problem, self._limits.cancel_seconds)

    def forget(self, statement: RunStatement) -> None:
        """Forget the statement and its rows."""
        self.known.pop(statement.id, None)
        self._drop_rows(statement)

    def _enter(self, statement: RunStatement) -> Ticket:
        if self.is_draining:
            raise Problem(status=503, code="draining", detail="the server is stopping", retry_after_seconds=5)
        statement.ticket = self.turns.enter(statement.owner.id)
        self.known[statement.id] = statement
        return statement.ticket

    async def _to_its_end(self, frames: AsyncIterator[Frame]) -> None:
        with suppress(Problem):  # the problem is the statement's outcome
            async for _ in frames:
                pass

    async def _frames(self, statement: RunStatement, job: Message) -> AsyncIterator[Frame]:
        ticket = statement.ticket or self._enter(statement)
        problem: Problem | None = Problem(status=422, code=_CANCELLED, detail="the client went away")
        started = monotonic()
        try:
            await ticket.turn
            statement.queued_ms = _since(started)
            async with self.workers.worker() as worker:
                if statement.stopped_by is not None:
                    raise statement.stopped_by
                statement.state, statement.worker = StatementState.RUNNING, worker
                begun = monotonic()
                timer = asyncio.get_running_loop().call_later(
                    statement.request.timeout_seconds, self._time_out, statement
                )
                try:
                    await worker.begin(job)
                    async for frame in worker.frames():
                        if frame.kind is FrameKind.MESSAGE:
                            if frame.message["type"] == "spark_wanted":
                                self._lend(worker, frame.message["number"])
                            statement.take(frame.message)
                            worker.is_broken = worker.is_broken or _is_doubtful(statement.problem)
                        statement.run_ms = _since(begun)
                        if not worker.is_busy:
                            problem = None
                            statement.end()
                        yield frame
                finally:
                    timer.cancel()
                    if worker.is_busy and statement.stopped_at is None:
                        statement.stopped_at = monotonic()
                    statement.worker = None
                    statement.run_ms = _since(begun)
        except WorkerGone as gone:
            problem = statement.stopped_by or gone.as_problem()
            raise problem from None
        except Problem as found:
            problem = found
            raise
        finally:
            self.turns.leave(ticket)
            statement.end(problem)
            self._record(statement)

    def _time_out(self, statement: RunStatement) -> None:
        seconds = statement.request.timeout_seconds
        problem = Problem(
            status=422,
            code="statement_timeout",
            detail=f"the statement took longer than {seconds:g} s",
            hint="Give timeout in seconds.",
        )
        statement.stop(problem, self._limits.cancel_seconds)

    def _record(self, statement: RunStatement) -> None:
        code = "" if statement.problem is None else statement.problem.code
        self._metrics.count("statements_total", state=statement.state.value, engine=statement.engine, code=code)
        self._metrics.count("rows_total", statement.rows)
        self._metrics.count("result_bytes_total", statement.bytes)
        self._metrics.observe("queue_seconds", statement.queued_ms / 1000)
        self._metrics.observe("run_seconds", statement.run_ms / 1000)
        if statement.stopped_at is not None:
            self._metrics.observe("stop_seconds", (statement.ended_at or monotonic()) - statement.stopped_at)
        for name, of_scans in _COUNTED.items():
            self._metrics.count(name, statement.sums.get(of_scans, 0))
        self._audit.write(statement)
        if statement.state is not StatementState.FINISHED:
            self._drop_rows(statement)

    def _drop_rows(self, statement: RunStatement) -> None:
        if statement.spool is not None:
            statement.spool.unlink(missing_ok=True)
            for beside in statement.spool.parent.glob(f"{statement.spool.name}.*"):  # its scans, and orders of its rows
                beside.unlink(missing_ok=True)
            statement.spool = None

    def _forget_oldest(self) -> None:
        kept = sorted((one for one in self.known.values() if one.has_ended and one.spool), key=lambda one: one.touched)
        for statement in kept:
            if self.spool_bytes <= self._limits.spool_bytes // 2:
                return
            self._drop_rows(statement)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            now = monotonic()
            for statement in list(self.known.values()):
                is_idle = now - statement.touched > self._limits.kept_seconds
                is_old = now - (statement.ended_at or now) > self._limits.most_kept_seconds
                if statement.has_ended and (is_idle or is_old):
                    self.forget(statement)
            ended = [one for one in self.known.values() if one.has_ended]
            for statement in ended[: max(0, len(ended) - self._limits.kept_statements)]:
                self.forget(statement)


def _is_doubtful(problem: Problem | None) -> bool:
    """Whether the process that ran the statement may be unfit to run another."""
    return problem is not None and problem.code in ("memory_limit", "internal", "engine_failed")


def _since(started: float) -> float:
    return round((monotonic() - started) * 1000, 1)


def spool_of(statement: RunStatement) -> Path:
    """The file with a statement's rows. Raises Problem when they are gone, or not complete yet."""
    if statement.problem is not None:
        raise statement.problem
    if not statement.has_ended:
        raise Problem(
            status=409, code="statement_running", detail="the statement is still running", retry_after_seconds=1
        )
    if statement.spool is None:
        raise Problem(status=410, code="statement_gone", detail="the rows of the statement are no longer kept")
    return statement.spool
