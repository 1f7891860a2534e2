"""The Spark process: starts the session, then answers workers on a socket in its folder. It ends with the server."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable

from underlay.server.worker.messages import frame_of, receive

SOCKET = "spark.sock"


def main() -> None:
    """`python -m underlay.server.on_spark.main FD`: answer until the server's connection ends."""
    # the server's to answer: it drains. Java, which is started by this process, inherits that it is ignored
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server = socket.socket(fileno=int(sys.argv[1]))
    told = receive(server)
    if told is None:
        return
    threading.Thread(target=_end_with, args=(server,), daemon=True, name="underlay-server").start()
    from underlay.server.on_spark.answer import SparkAnswers  # loads PySpark, when the server is watched

    answers = SparkAnswers(told.message)
    threading.Thread(target=_end_with_java, args=(answers.wait_for_java,), daemon=True, name="underlay-java").start()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(SOCKET)  # this folder's path may be longer than a socket's name
    listening.listen(128)
    server.sendall(frame_of({"type": "ready"}))
    while True:
        connection, _ = listening.accept()
        answers.answer_aside(connection)


def _end_with(server: socket.socket) -> None:
    """Wait for the end of the server, then end with all that this process started: nothing outlives a server."""
    while receive(server) is not None:
        pass
    os.killpg(0, signal.SIGKILL)


def _end_with_java(wait: Callable[[], None]) -> None:
    """End when Java has: without it no statement can run, and the server starts another process for the next one."""
    wait()
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
