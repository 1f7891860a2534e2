"""A statement that the server's Spark process runs: its rows, as they come from there."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from io import RawIOBase
from typing import Any

import pyarrow as pa

from underlay.server.common.problem import Problem
from underlay.server.worker.job import StatementJob
from underlay.server.worker.messages import Frame, FrameKind, Message, frame_of, receive


class SparkRows:
    """A connection to the process. Closing it stops the statement. `progress` is what was told last."""

    def __init__(self, path: str) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        try:
            self._connection.connect(path)
        except OSError:
            self._connection.close()
            raise spark_gone() from None
        self.progress: Mapping[str, int] = {}

    def begin(self, job: StatementJob) -> Message:
        """Send the statement, and wait until Spark has planned it: versions, sums and plans. Raises Problem."""
        try:
            self._connection.sendall(frame_of(job.as_message()))
        except OSError:
            raise spark_gone() from None
        return self._next().message

    def reader(self) -> pa.RecordBatchReader:
        """The rows. Raises Problem, while they are read too."""
        return pa.ipc.open_stream(_Incoming(self))

    def take(self, count: int) -> bytes:
        """The next bytes, which come before those of rows. Raises Problem."""
        found = bytearray()
        while len(found) < count:
            part = self.data()
            if not part:
                raise spark_gone()
            found += part
        return bytes(found)

    def data(self) -> bytes:
        """The next bytes of rows; none at their end. Raises Problem."""
        frame = self._next()
        return frame.payload if frame.kind is FrameKind.DATA else b""

    def close(self) -> None:
        """Stop the statement, if it still runs."""
        self._connection.close()

    def _next(self) -> Frame:
        while True:
            try:
                frame = receive(self._connection)
            except OSError:
                frame = None
            if frame is None:
                raise spark_gone()
            if frame.kind is FrameKind.DATA:
                return frame
            message = frame.message
            if message["type"] == "error":
                raise Problem.from_json(message["problem"])
            if message["type"] != "progress":
                return frame
            self.progress = {name: value for name, value in message.items() if name != "type"}


class _Incoming(RawIOBase):
    """Bytes of an Arrow stream."""

    def __init__(self, rows: SparkRows) -> None:
        self._rows = rows
        self._held = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:  # noqa: ANN401  # whatever has bytes
        if not self._held:
            self._held = memoryview(self._rows.data())
        count = min(len(target), len(self._held))
        target[:count] = self._held[:count]
        self._held = self._held[count:]
        return count


def spark_gone() -> Problem:
    """The problem of statements whose Spark process ended."""
    return Problem(
        status=503,
        code="engine_gone",
        detail="the Spark process ended",
        hint="Send the statement again: the next one starts another process.",
        retry_after_seconds=5,
    )
