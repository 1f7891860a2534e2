"""Keeps worker processes warm, one for each job that may run at once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from underlay.server.common.settings import ServerSettings
from underlay.server.statements.process import WorkerGone, WorkerProcess

_WATCH_SECONDS = 0.25
_AGAIN_SECONDS = 1.0


class WorkerPool:
    """`size` workers. One that was killed, or ran out of memory, is replaced in the background."""

    def __init__(self, settings: ServerSettings, size: int) -> None:
        self._settings = settings
        self._size = size
        self._threads = settings.threads or max(1, (os.cpu_count() or 1) // settings.limits.running)
        self._idle: asyncio.LifoQueue[WorkerProcess] = asyncio.LifoQueue()  # the one used last has the warmest caches
        self._every: set[WorkerProcess] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def open(self) -> None:
        """Start and watch the workers. Raises the first error of a worker that does not start."""
        try:
            await asyncio.gather(*(self._add() for _ in range(self._size)))
        except BaseException:
            await self.close()
            raise
        self._spawn(self._watch())

    @property
    def alive(self) -> int:
        """How many workers can take a statement."""
        return sum(worker.is_alive for worker in self._every)

    @property
    def pids(self) -> list[int]:
        """The process ids of all workers."""
        return [worker.pid for worker in self._every]

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[WorkerProcess]:
        """A worker to give a job to. A job that still runs at the end of the block is stopped."""
        worker = await self._idle.get()
        while not worker.is_alive:  # somebody killed it while it was idle
            self._replace(worker)
            worker = await self._idle.get()
        try:
            yield worker
        finally:
            await asyncio.shield(self._settled(worker))

    async def close(self) -> None:
        """End all workers."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(worker.kill() for worker in self._every))
        self._every.clear()

    async def _settled(self, worker: WorkerProcess) -> None:
        await worker.stop(self._settings.limits.cancel_seconds)
        if worker.is_alive and not self._is_closed:
            self._idle.put_nowait(worker)
        else:
            await worker.kill()
            self._replace(worker)

    def _replace(self, worker: WorkerProcess) -> None:
        self._every.discard(worker)
        if not self._is_closed:
            self._spawn(self._add_again())

    def _spawn(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]  # a coroutine without a value
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _add(self) -> None:
        worker = await WorkerProcess.start(self._settings, self._threads)
        self._every.add(worker)
        self._idle.put_nowait(worker)

    async def _add_again(self) -> None:
        while not self._is_closed:
            with suppress(WorkerGone, OSError, TimeoutError):
                await self._add()
                return
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            for worker in list(self._every):
                await worker.watch_memory()
