"""Does a worker's job: runs the statement, writes its rows, and reports how it ended."""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from io import RawIOBase
from pathlib import Path
from time import perf_counter
from typing import IO, TYPE_CHECKING, Any, Literal, cast

import pyarrow as pa

from underlay.api.lake import connect
from underlay.local.sql.engine import EngineLimits, limit_engines
from underlay.server.common.problem import Problem, problem_of
from underlay.server.formats.encode import Encoder, as_arrow_file, is_beyond_browsers, json_text, make_encoder
from underlay.server.formats.formats import ResultFormat
from underlay.server.formats.types import columns_of
from underlay.server.kept.bins import bin_rows
from underlay.server.worker.engines import EngineName
from underlay.server.worker.job import BinsJob, LookJob, Output, StatementJob, WindowJob, scans_path
from underlay.server.worker.messages import Message, data_frame, frame_of
from underlay.server.worker.scans import (
    describe_scans,
    pack_scans,
    planned,
    progress_of,
    sums_of,
)
from underlay.server.worker.spool import open_window, split_batch
from underlay.server.worker.statement import Begun, StatementRunner, plain_batch
from underlay.server.worker.table_metadata import Looker
from underlay.values.no_rows import empty_batch

if TYPE_CHECKING:
    from underlay.server.worker.main import ServerConnection

_SEND_BYTES = 256 << 10
_SMALL_BYTES = 16 << 10
_LOOK_ROWS = 1 << 16
_BEGUN: Message = {"type": "begun", "columns": None, "versions": {}, "is_change": False, "plan_ms": 0.0}
"""The first message of a look."""
_PROGRESS_SECONDS = 0.25
_CODECS: dict[str, Literal["gzip", "zstd", "brotli"]] = {"gzip": "gzip", "zstd": "zstd", "br": "brotli"}


class _Sink(RawIOBase):
    """Sends bytes to the server in frames. It blocks while the client reads more slowly than rows are produced."""

    def __init__(self, server: ServerConnection) -> None:
        self._server = server
        self._held = bytearray()
        self._is_last = False
        self.size_bytes = 0

    def end(self) -> None:
        """Send what is left, with the message that follows."""
        self._is_last = True
        self.flush()

    def write(self, data: Any) -> int:  # noqa: ANN401  # whatever has bytes
        self._held += data
        if len(self._held) >= _SEND_BYTES:
            self.flush()
        return len(data)

    def flush(self) -> None:
        if self._held:
            data, self._held = self._held, bytearray()
            self.size_bytes += len(data)
            if len(data) <= _SMALL_BYTES and self._is_last:
                self._server.keep(data_frame(memoryview(data)))
                return
            for at in range(0, len(data), _SEND_BYTES):
                self._server.send(data_frame(memoryview(data)[at : at + _SEND_BYTES]))

    def writable(self) -> bool:
        return True


class _Answer:
    """An encoder whose bytes go to the server, compressed if requested."""

    def __init__(self, server: ServerConnection, output: Output) -> None:
        self.sink = _Sink(server)
        self._compressor: Any = None  # Any: Arrow's stream
        target: Any = self.sink  # Any: one of two that take bytes
        if output.compression is not None:
            target = pa.CompressedOutputStream(as_arrow_file(cast("IO[bytes]", self.sink)), _CODECS[output.compression])
            self._compressor = target
        self.encoder: Encoder = make_encoder(
            ResultFormat(output.format), target, shape=output.shape, integers_as_text=output.integers_as_text
        )

    def write_json(self, facts: Mapping[str, object]) -> None:
        """Write an answer without rows: JSON, whatever the format."""
        target: Any = self._compressor or self.sink  # Any: one of two that take bytes
        target.write(json_text(facts).encode(errors="backslashreplace"))

    def flush(self) -> None:
        """Send what was written: a reader waits for rows, not for full buffers."""
        if self._compressor is not None:
            self._compressor.flush()
        self.sink.flush()

    def close(self) -> None:
        if self._compressor is not None:
            self._compressor.close()
        self.sink.end()


class WorkerService:
    """Does jobs with this process's lake and engine."""

    def __init__(self, server: ServerConnection, settings: Mapping[str, Any]) -> None:  # Any: JSON
        limit_engines(
            EngineLimits(
                memory_bytes=settings["memory_bytes"],
                spill_folder=settings["folder"],
                spill_bytes=settings["spill_bytes"],
                threads=settings["threads"],
                has_places=True,
            )
        )
        self._server = server
        self._folder: str = settings["folder"]
        self._lake = connect(
            settings["lake"], options=settings["options"], registry=settings["registry"], hot=settings["hot"]
        )
        self._runner = StatementRunner(
            self._lake,
            settings["audits"],
            EngineName(settings["engine"]),
            settings["spark_from_bytes"],
            self._ask_for_spark,
        )
        self._looker = Looker(self._lake, self._runner.lockdown)
        self._counted: _Counted | None = None
        self._is_running = threading.Event()
        threading.Thread(target=self._tell_progress, daemon=True, name="underlay-progress").start()
        with suppress(Exception):  # a problem with the lake is reported to each caller
            self._lake.tables()

    def run(self, message: Message) -> None:
        """Do one job, and report how it ended: always with one last message, of type end or error."""
        interruptions = self._server.interruptions
        number = message.pop("number")
        text = message.get("sql")
        try:
            try:
                interruptions.begin(number)
                ended = self._kinds[message["type"]](message)
            finally:
                interruptions.end()
                self._is_running.clear()
        except BaseException as error:  # noqa: BLE001  # told to the client, and the worker goes on
            problem = self._problem_of(error, text)
            if isinstance(error, KeyboardInterrupt) or interruptions.is_cancelled(number):
                problem = Problem(status=422, code="cancelled", detail="the statement was cancelled")
            if problem.code == "internal":
                traceback.print_exc()
            ended = _error(problem)
        self._server.say(ended)

    @property
    def _kinds(self) -> Mapping[str, Callable[[Message], Message]]:
        return {"statement": self._statement, "window": self._window, "look": self._look, "bins": self._bins}

    def _tell_progress(self) -> None:
        """Report the statement's progress from time to time, also before its first rows."""
        while True:
            self._is_running.wait()
            time.sleep(_PROGRESS_SECONDS)
            self._server.mention(self._progress(), self._is_running.is_set)

    def _progress(self) -> Message:
        counted = self._counted
        known = {} if counted is None else {"rows": counted.rows, "bytes": counted.bytes}
        spark = self._runner.spark
        scans = progress_of(self._runner.scans) if spark is None else dict(spark.progress)
        return {"type": "progress", "rows": 0, "bytes": 0, **known, "scans": scans}

    def _ask_for_spark(self, reason: str) -> str:
        """Where the Spark process listens, which is started if there is none. Raises Problem."""
        found = self._server.ask({"type": "spark_wanted", "engine_reason": reason})
        if "problem" in found:
            raise Problem.from_json(found["problem"])
        return str(found["path"])

    def _problem_of(self, error: BaseException, text: str | None) -> Problem:
        problem = problem_of(error, text)
        problem.detail = problem.detail.replace(self._folder, "…")  # clients must not learn where the engine spills
        return problem

    def _statement(self, message: Message) -> Message:
        job = StatementJob.from_message(message)
        started = perf_counter()
        self._counted, self._runner.scans, self._runner.spark = None, (), None
        self._is_running.set()
        begun = self._runner.begin(job)
        try:
            is_known = begun.etag is not None and job.if_none_match == begun.etag
            told: Message = {
                "type": "begun",
                "columns": columns_of(begun.schema),
                "versions": dict(begun.versions),
                "etag": begun.etag,
                "is_change": begun.is_change,
                "is_not_modified": is_known,
                "plan_ms": _since(started),
                "engine": begun.choice.engine.value,
                "engine_reason": begun.choice.reason,
            }
            if job.spool is None:
                self._server.keep(frame_of(told))  # the first rows are there, and follow at once
            else:
                self._server.say(told)
            if is_known:
                return {"type": "end", "rows": 0, "bytes": 0, "is_truncated": False}
            if job.spool is not None:
                return self._spool(job, job.spool, begun)
            return self._stream(job, begun, started)
        finally:
            begun.close()

    def _stream(self, job: StatementJob, begun: Begun, started: float) -> Message:
        answer = _Answer(self._server, job.output)
        encoder, counted = answer.encoder, _Counted(job)
        self._counted = counted
        facts = {"tables": [{"name": name, "version": number} for name, number in begun.versions.items()]}
        encoder.begin(begun.schema, facts)
        try:
            for batch in counted.limited(begun.batches):
                encoder.write(batch)
                answer.flush()
        except Exception as error:  # noqa: BLE001  # told to the client, in the format or beside it
            problem = self._problem_of(error, job.sql)
            if encoder.can_fail:
                encoder.fail(problem.as_json())
                answer.close()
            return {**_error(problem), "is_told": encoder.can_fail}
        sums = sums_of(planned(begun.scans)) if begun.planned is None else begun.planned["sums"]
        stats = {"run_ms": _since(started), **sums}
        encoder.end({"row_count": counted.rows, "truncated": counted.is_truncated, "stats": stats})
        answer.close()
        return {"type": "end", **counted.facts(), "sent_bytes": answer.sink.size_bytes, "sums": sums}

    def _spool(self, job: StatementJob, path: str, begun: Begun) -> Message:
        counted = self._counted = _Counted(job)
        try:
            with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, begun.schema) as writer:
                for batch in counted.limited(begun.batches):
                    for part in split_batch(batch):
                        writer.write_batch(part)
            scans = planned(begun.scans)
            packed = begun.packed_scans or pack_scans(scans)
            if packed:
                Path(scans_path(path)).write_bytes(packed)
        except BaseException:
            os.unlink(path)
            raise
        plans = begun.planned or {"sums": sums_of(scans), "plans": describe_scans(scans)}
        return {"type": "end", **counted.facts(), "beyond_2_53": sorted(counted.beyond), **plans}

    def _window(self, message: Message) -> Message:
        job = WindowJob.from_message(message)
        schema, batches = open_window(job)
        answer = _Answer(self._server, job.output)
        self._server.say({"type": "begun"})
        answer.encoder.begin(schema, job.facts)
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            answer.encoder.write(batch)
            answer.flush()
        answer.encoder.end({"row_count": rows})
        answer.close()
        return {"type": "end", "rows": rows, "bytes": answer.sink.size_bytes}

    def _look(self, message: Message) -> Message:
        job = LookJob.from_message(message)
        found = self._looker.look(job)
        is_known = found.etag is not None and found.etag == job.if_none_match
        self._server.say({**_BEGUN, "etag": found.etag, "is_not_modified": is_known})
        if is_known:
            return {"type": "end", "rows": 0, "bytes": 0}
        return self._tell(job.output, found.facts, found.rows)

    def _bins(self, message: Message) -> Message:
        job = BinsJob.from_message(message)
        found = bin_rows(job.spool, job.asked)
        self._server.say(_BEGUN)
        return self._tell(job.output, found.facts, found.rows)

    def _tell(self, output: Output, facts: Mapping[str, object], found: pa.Table | None) -> Message:
        answer = _Answer(self._server, output)
        if found is None:
            answer.write_json(facts)
        else:
            is_arrow = output.format == ResultFormat.ARROW.value  # which has dictionaries
            rows = found if is_arrow else _plain(found)
            answer.encoder.begin(rows.schema, facts)
            for batch in rows.to_batches(max_chunksize=_LOOK_ROWS):
                answer.encoder.write(batch)
                answer.flush()
            answer.encoder.end({"row_count": found.num_rows})
        answer.close()
        return {"type": "end", "rows": 0, "bytes": answer.sink.size_bytes}


class _Counted:
    """Counts rows as they pass, and applies the limits on rows and bytes."""

    def __init__(self, job: StatementJob) -> None:
        self._row_limit = job.row_limit
        self._byte_limit = job.byte_limit
        self.rows = 0
        self.bytes = 0
        self.is_truncated = False
        self.beyond: set[str] = set()

    def limited(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows up to the request's limit. Raises Problem beyond the server's limit in bytes."""
        for batch in batches:
            left = None if self._row_limit is None else self._row_limit - self.rows
            if left is not None and batch.num_rows > left:
                batch = batch.slice(0, left)
                self.is_truncated = True
            self.rows += batch.num_rows
            self.bytes += batch.nbytes
            if self._byte_limit is not None and self.bytes > self._byte_limit:
                raise Problem(
                    status=422,
                    code="byte_limit",
                    detail=f"the answer is larger than {self._byte_limit:,} bytes",
                    hint="Ask for fewer rows or columns, or give row_limit.",
                )
            self.beyond |= {
                field.name
                for field, column in zip(batch.schema, batch.columns, strict=True)
                if field.name not in self.beyond and is_beyond_browsers(column)
            }
            yield batch
            if self.is_truncated:
                return

    def facts(self) -> Message:
        return {"rows": self.rows, "bytes": self.bytes, "is_truncated": self.is_truncated}


def _plain(rows: pa.Table) -> pa.Table:
    return pa.Table.from_batches([plain_batch(one, set()) for one in (*rows.to_batches(), empty_batch(rows.schema))])


def _error(problem: Problem) -> Message:
    known = {**problem.as_json(), "more": dict(problem.more)}
    return {"type": "error", "problem": known}


def _since(started: float) -> float:
    return round((perf_counter() - started) * 1000, 1)
