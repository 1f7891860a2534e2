"""The worker process: waits for statements on a socket, runs one at a time, and stops it when told to.

A statement runs in the main thread, so that a signal ends whatever it waits for, as Ctrl-C does for `lake.sql`. Another
thread reads what the server sends meanwhile: a cancel becomes a signal to the main thread, and the end of the
connection ends the process, whatever it is doing. So no worker outlives a server that was killed.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from underlay.server.worker.messages import Frame, Message, frame_of, receive

_OWN_BYTES = 4 << 30
"""Address space for stacks and allocators, besides the engine's memory. The server watches the memory that is really
used."""


class Interruptions:
    """Handles cancels that arrive while a statement runs. A cancel of a finished statement does nothing."""

    def __init__(self) -> None:
        self._running: int | None = None
        self._cancelled: int | None = None
        self._is_held = False
        self._is_late = False

    @property
    def running(self) -> int | None:
        """The number of the statement that runs."""
        return self._running

    def begin(self, number: int) -> None:
        """A statement begins in this thread. Raises KeyboardInterrupt if it was cancelled before."""
        self._running = number
        self._is_late = False
        if self._cancelled == number:
            raise KeyboardInterrupt

    def is_cancelled(self, number: int) -> bool:
        """Whether this statement was cancelled. DuckDB turns a signal that arrives while it runs into another error."""
        return self._cancelled == number

    def end(self) -> None:
        """The statement is over: a late cancel must not interrupt the next one."""
        self._running = None

    def cancel(self, number: int) -> None:
        """Stop the statement. Called from another thread."""
        self._cancelled = number
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def on_signal(self, number: int, frame: object) -> None:
        """In the main thread."""
        if self._running is None or self._running != self._cancelled:
            return
        if self._is_held:
            self._is_late = True
            return
        raise KeyboardInterrupt

    def whole(self, do: Callable[[], object]) -> None:
        """Do something that must not be interrupted, such as sending a frame; then stop, if a cancel arrived."""
        self._is_held = True
        try:
            do()
        finally:
            self._is_held = False
        if self._is_late:
            self._is_late = False
            raise KeyboardInterrupt


class ServerConnection:
    """The socket to the server."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._arrived: deque[Frame] = deque()
        self._there = threading.Semaphore(0)
        self._answered: SimpleQueue[Message] = SimpleQueue()
        self._sending = threading.Lock()
        self._kept = bytearray()
        self.interruptions = Interruptions()

    def listen(self) -> None:
        """Read until the server is gone, then exit at once: nothing here needs an orderly shutdown."""
        while (frame := receive(self._connection)) is not None:
            message = frame.message
            if message["type"] == "cancel":
                self.interruptions.cancel(message["number"])
            elif message["type"] == "answer":
                self._answered.put(message)
            else:
                self._arrived.append(frame)
                self._there.release()
        os._exit(0)

    def next(self) -> Message:
        """The next message from the server."""
        self._there.acquire()
        return self._arrived.popleft().message

    def ask(self, message: Message) -> Message:
        """What the server answers to a question of the statement that runs."""
        number = self.interruptions.running
        self.say({**message, "number": number})
        while (found := self._answered.get())["number"] != number:
            pass  # of a statement that was stopped while it waited
        return found

    def send(self, data: bytes) -> None:
        """Send one frame without interruption. Only in the main thread."""
        self.interruptions.whole(lambda: self._send(data))

    def mention(self, message: Message, is_wanted: Callable[[], bool]) -> None:
        """Send one message from another thread, unless it is no longer wanted."""
        with self._sending:
            if is_wanted():
                self._send_all(frame_of(message))

    def _send(self, data: bytes) -> None:
        with self._sending:
            self._send_all(data)

    def _send_all(self, data: bytes) -> None:
        kept, self._kept = self._kept, bytearray()
        self._connection.sendall(kept + data if kept else data)

    def keep(self, data: bytes) -> None:
        """Send a small frame with the next one, so that the server wakes up once for both. Only in the main thread, and
        only where the next one follows at once."""
        with self._sending:
            self._kept += data

    def say(self, message: Message) -> None:
        """Send one message without interruption."""
        self.send(frame_of(message))


def limit_process(memory_bytes: int) -> None:
    """Set this process's kernel limits. It is also the first to be killed when the machine runs out of memory."""
    most = memory_bytes + _OWN_BYTES
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("800")
    except OSError:
        return  # not Linux


def main() -> None:
    """`python -m underlay.server.worker.main FD`: serve statements until the connection ends."""
    server = ServerConnection(socket.socket(fileno=int(sys.argv[1])))
    signal.signal(signal.SIGINT, server.interruptions.on_signal)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a signal to the process group is for the server, which drains
    threading.Thread(target=server.listen, daemon=True, name="underlay-listen").start()
    settings: dict[str, Any] = server.next()  # Any: JSON
    limit_process(settings["memory_bytes"])
    sys.setrecursionlimit(10_000)
    from underlay.server.worker.serve import WorkerService  # loads DuckDB, under the limits

    service = WorkerService(server, settings)
    server.say({"type": "ready", "pid": os.getpid()})
    while True:
        service.run(server.next())


if __name__ == "__main__":
    main()
