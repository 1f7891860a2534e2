"""The Spark process of a server: started when a statement wants it, kept warm, and started again after it ended."""

from __future__ import annotations

import asyncio

from underlay.server.common.problem import Problem
from underlay.server.common.settings import ServerSettings
from underlay.server.statements.process import WorkerGone, WorkerProcess
from underlay.server.worker.engines import NOT_STARTED

_MODULE = "underlay.server.on_spark.main"
_SOCKET = "spark.sock"


class SparkProcess:
    """At most one process at a time."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._process: WorkerProcess | None = None
        self._starting = asyncio.Lock()
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """Of the process; None when there is none."""
        return None if self._process is None or not self._process.is_alive else self._process.pid

    async def path(self) -> str:
        """Where it listens, from the folder of any worker. Raises Problem when it does not start."""
        async with self._starting:
            if self._process is None or not self._process.is_alive:
                await self._start()
            if self._process is None:
                raise _not_started()
            return f"../{self._process.folder.name}/{_SOCKET}"

    async def close(self) -> None:
        """End it."""
        self._is_closed = True
        async with self._starting:
            if self._process is not None:
                await self._process.kill()

    async def _start(self) -> None:
        if self._process is not None:
            await self._process.kill()  # which removes its folder
            self._process = None
        if self._is_closed:
            raise _not_started()
        try:
            self._process = await WorkerProcess.start(self._settings, 1, _MODULE)
        except (WorkerGone, OSError, TimeoutError):
            raise _not_started() from None


def _not_started() -> Problem:
    return Problem(
        status=503,
        code=NOT_STARTED,
        detail="Spark does not start",
        hint="The server's log says why.",
        retry_after_seconds=30,
    )
