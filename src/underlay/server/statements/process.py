"""The server's side of one worker process: starts it, gives it jobs, interrupts it, and kills it if it does not
stop.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from underlay.server.common.problem import Problem
from underlay.server.common.settings import ServerSettings, audit_paths
from underlay.server.worker.messages import HEAD, Frame, FrameKind, Message, frame_of, read_head

_INHERITED = (
    "PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE", "LD_LIBRARY_PATH",
)  # fmt: skip
_STORES = ("AWS_", "GOOGLE_", "AZURE_", "UNDERLAY_")
"""Environment variables that give stores their endpoints and credentials, and Underlay its caches. No SQL function
reads the environment."""
_WORKER = "underlay.server.worker.main"
_OF_SPARK = ("JAVA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR")
_SPARE_BYTES = 1 << 30
"""Memory that a worker may use beyond its engine's limit."""
_HELD_BYTES = 1 << 20
"""What is read ahead of a worker's frames, which have up to 256 kB: with less, each is read in many parts."""
_READY_SECONDS = 300.0


class WorkerGone(Exception):  # what happened
    """The process ended in the middle of a job. `was_too_large`: the server killed it for its memory."""

    def __init__(self, *, was_too_large: bool = False) -> None:
        super().__init__("the worker ended")
        self.was_too_large = was_too_large

    def as_problem(self) -> Problem:
        """What the client is told."""
        if self.was_too_large:
            return Problem(status=422, code="memory_limit", detail="the statement needs more memory than it may have")
        return Problem(
            status=422,
            code="engine_failed",
            detail="the process that ran the statement ended",
            hint="Other statements are not affected. Rewrite the statement.",
        )


class WorkerProcess:
    """A process, which does one job after the other."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path, settings: ServerSettings) -> None:
        self._process = process
        self._folder = folder
        self._most_bytes = settings.limits.memory_bytes + _SPARE_BYTES
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._job = 0
        self._head: tuple[FrameKind, int] | None = None
        self._is_too_large = False
        self.is_busy = False
        self.is_broken = False

    @classmethod
    async def start(cls, settings: ServerSettings, threads: int, module: str = _WORKER) -> WorkerProcess:
        """Start a process, and wait until it is ready. Raises WorkerGone, OSError, TimeoutError."""
        folder = Path(tempfile.mkdtemp(prefix="worker-", dir=settings.spool))
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                module,
                str(theirs.fileno()),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                env=_environment(folder),
                cwd=folder,
                start_new_session=True,  # Ctrl-C in a terminal must reach only the server, which drains
            )
        except BaseException:
            ours.close()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            theirs.close()
        worker = cls(process, folder, settings)
        try:
            worker._reader, worker._writer = await asyncio.open_connection(sock=ours, limit=_HELD_BYTES)
            await worker._send({"type": "settings", **_told(settings, folder, threads)})
            async with asyncio.timeout(_READY_SECONDS):
                await worker._receive()
        except BaseException:
            await worker.kill()
            raise
        return worker

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def folder(self) -> Path:
        """Its own, beside those of others."""
        return self._folder

    @property
    def is_alive(self) -> bool:
        """Whether it can take a job."""
        return self._process.returncode is None and not self.is_broken

    async def begin(self, job: Message) -> None:
        """Give it a job. Raises WorkerGone."""
        self._job += 1
        self.is_busy = True
        await self._send({**job, "number": self._job})

    async def frames(self) -> AsyncIterator[Frame]:
        """What the job sends, up to its last message. Raises WorkerGone."""
        while self.is_busy:
            frame = await self._receive()
            if frame.kind is FrameKind.MESSAGE and frame.message["type"] in ("end", "error"):
                self.is_busy = False
            yield frame

    def tell(self, message: Message) -> None:
        """Answer a question of the job that it has."""
        if not self.is_broken:
            self._writer.write(frame_of(message))

    def interrupt(self, seconds: float) -> None:
        """Stop the current job, which then ends with a message. If it takes longer than `seconds`, the process is
        killed.
        """
        if not self.is_busy or self.is_broken:
            return
        number = self._job
        self._writer.write(frame_of({"type": "cancel", "number": number}))
        asyncio.get_running_loop().call_later(seconds, self._kill_if_busy_with, number)

    def _kill_if_busy_with(self, number: int) -> None:
        if self.is_busy and self._job == number:
            self._kill()

    async def stop(self, seconds: float) -> Frame | None:
        """End the current job: interrupt it, and kill the process after `seconds`. Returns the last message, None if
        killed.
        """
        if not self.is_busy:
            return None
        last = None
        try:
            async with asyncio.timeout(seconds):
                await self._send({"type": "cancel", "number": self._job})
                async for frame in self.frames():
                    last = frame
        except (TimeoutError, WorkerGone):
            await self.kill()
            return None
        return last

    async def kill(self) -> None:
        """Kill the process now, and remove what it left."""
        self.is_broken = True
        self._kill()
        await asyncio.shield(self._finish())

    async def _finish(self) -> None:
        await self._process.wait()
        self.is_busy = False
        if hasattr(self, "_writer"):
            self._writer.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def watch_memory(self) -> None:
        """Kill the process when it uses more memory than allowed: only its own statement fails."""
        if self.is_busy and self.is_alive and _resident_bytes(self.pid) > self._most_bytes:
            self._is_too_large = True
            self._kill()

    def _kill(self) -> None:
        """It and what it started, such as Java: it leads a group."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _send(self, message: Message) -> None:
        try:
            self._writer.write(frame_of(message))
            await self._writer.drain()
        except OSError:
            await self._gone()

    async def _receive(self) -> Frame:
        try:
            # a read that is cancelled between the two parts must leave the rest of the frame readable
            if self._head is None:
                self._head = read_head(await self._reader.readexactly(HEAD.size))
            kind, length = self._head
            payload = await self._reader.readexactly(length)
            self._head = None
            return Frame(kind, payload)
        except (asyncio.IncompleteReadError, OSError, ValueError):
            await self._gone()
            raise AssertionError from None  # it raises

    async def _gone(self) -> None:
        await self.kill()
        raise WorkerGone(was_too_large=self._is_too_large)


def _environment(folder: Path) -> dict[str, str]:
    known = (*_INHERITED, *_OF_SPARK)
    kept = {name: value for name, value in os.environ.items() if name in known or name.startswith(_STORES)}
    return {**kept, "TMPDIR": str(folder), "TZ": "UTC", "MALLOC_ARENA_MAX": "2", "PYTHONUNBUFFERED": "1"}


def _told(settings: ServerSettings, folder: Path, threads: int) -> Message:
    return {
        "lake": settings.lake,
        "options": dict(settings.options),
        "registry": settings.registry,
        "hot": None if settings.hot is None else str(settings.hot.folder),
        "memory_bytes": settings.limits.memory_bytes,
        "spill_bytes": settings.limits.spill_bytes,
        "folder": str(folder),
        "threads": threads,
        "engine": settings.engine,
        "master": settings.master,
        "spark_memory_bytes": settings.limits.spark_memory_bytes,
        "spark_from_bytes": settings.limits.spark_from_bytes,
        "spark_settings": dict(settings.spark_settings),
        "audits": [str(path) for path in audit_paths(settings)],
    }


def _resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
