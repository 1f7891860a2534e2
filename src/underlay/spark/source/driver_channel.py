"""Lets a worker that commits for the driver ask it whether it may replace a version.

Spark runs the commit of a Python data source in a worker, a separate process on the driver's host. Before the worker
replaces a version, it asks the driver whether the query that does so read an older one. It calls the driver over a Unix
socket, whose address came with the writer. The socket is in a folder that only this user can enter. If the driver does
not answer, the worker logs that, and replaces the version.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import msgspec

LOG = logging.getLogger("underlay.spark")
_WAIT_SECONDS = 20.0
_FAMILY = "AF_UNIX"


class ReplaceQuestion(msgspec.Struct, frozen=True):
    """Asks whether this version of the revision in `place` may be replaced."""

    place: str
    version: int


_DECODER = msgspec.json.Decoder(ReplaceQuestion)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverLine:
    """A worker's line to the driver. Can be pickled."""

    address: str
    key: bytes = field(repr=False)

    def why_not_replace(self, place: str, version: int) -> str | None:
        """Why this version of the revision in `place` must not be replaced; None when the driver knows no reason, or
        does not answer."""
        try:
            with Client(self.address, _FAMILY, authkey=self.key) as line:
                line.send_bytes(msgspec.json.encode(ReplaceQuestion(place, version)))
                if line.poll(_WAIT_SECONDS):
                    return line.recv_bytes().decode() or None
                trouble = f"no answer within {_WAIT_SECONDS} s"
        except (OSError, EOFError, AuthenticationError) as error:
            trouble = str(error)
        LOG.warning("the driver was not asked whether version %s of %s may be replaced: %s", version, place, trouble)
        return None


class DriverListener:
    """Answers workers, on its own thread, until the process ends.

    `judge` gets the place and version to be replaced, and returns the reason if that must not be.
    """

    def __init__(self, judge: Callable[[str, int], str | None]) -> None:
        self._judge = judge
        self._folder = TemporaryDirectory(prefix="underlay-driver-")
        self.line = DriverLine(address=str(Path(self._folder.name) / "line"), key=os.urandom(32))
        self._listener = Listener(self.line.address, _FAMILY, backlog=16, authkey=self.line.key)
        atexit.register(self.close)  # before the folder with the socket is deleted
        Thread(target=self._listen, daemon=True, name="underlay-driver").start()

    def close(self) -> None:
        """Stop listening."""
        atexit.unregister(self.close)
        self._listener.close()
        self._folder.cleanup()

    def _listen(self) -> None:
        while True:
            try:
                line = self._listener.accept()
            except (EOFError, AuthenticationError, ConnectionError):
                continue  # the worker went away
            except OSError:
                return  # closed
            Thread(target=self._answer, args=(line,), daemon=True, name="underlay-driver-line").start()

    def _answer(self, line: Connection[bytes, bytes]) -> None:
        with line:
            try:
                asked = _DECODER.decode(line.recv_bytes())
                line.send_bytes((self._judge(asked.place, asked.version) or "").encode())
            except (EOFError, OSError, msgspec.MsgspecError) as error:
                LOG.warning("a message of a worker was not understood: %s", error)
