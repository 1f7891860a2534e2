"""Lets a worker that commits for the driver tell it so, and the driver's session shows what was written.

Spark runs the commit of a Python data source in a worker, a separate process on the driver's host. The worker calls the
driver over a Unix socket, whose address came with the writer, and waits until the driver answers that its names are up
to date. Before the worker replaces a version, it asks the driver whether the query that does so read an older one. The
socket is in a folder that only this user can enter. If the driver does not answer, the worker logs that: what was
committed stays committed.
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


class CommittedNotice(msgspec.Struct, frozen=True, tag="committed"):
    """A commit to a table."""

    lake_url: str
    table: str


class ReplaceQuestion(msgspec.Struct, frozen=True, tag="replaces"):
    """Asks whether this version of the revision in `place` may be replaced."""

    place: str
    version: int


_DECODER = msgspec.json.Decoder(CommittedNotice | ReplaceQuestion)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverLine:
    """A worker's line to the driver. Can be pickled."""

    address: str
    key: bytes = field(repr=False)

    def tell_committed(self, lake_url: str, table: str) -> bool:
        """Tell the driver about a commit to the table of this name. Returns whether the driver knows; never raises."""
        return self._send(CommittedNotice(lake_url, table), f"of a commit to {table}") is not None

    def why_not_replace(self, place: str, version: int) -> str | None:
        """Why this version of the revision in `place` must not be replaced; None when the driver knows no reason, or
        does not answer."""
        answer = self._send(ReplaceQuestion(place, version), f"that version {version} of {place} is replaced")
        return answer.decode() if answer else None

    def _send(self, message: CommittedNotice | ReplaceQuestion, of_what: str) -> bytes | None:
        """The driver's answer."""
        try:
            with Client(self.address, _FAMILY, authkey=self.key) as line:
                line.send_bytes(msgspec.json.encode(message))
                if line.poll(_WAIT_SECONDS):
                    return line.recv_bytes()
        except (OSError, EOFError, AuthenticationError) as error:
            LOG.warning("the driver was not told %s: %s", of_what, error)
            return None
        LOG.warning("the driver did not answer within %s s when it was told %s", _WAIT_SECONDS, of_what)
        return None


class DriverListener:
    """Answers workers, on its own thread, until the process ends.

    `hear` gets the lake and table of a commit. `judge` gets the place and version to be replaced, and returns the
    reason if that must not be.
    """

    def __init__(self, hear: Callable[[str, str], None], judge: Callable[[str, int], str | None]) -> None:
        self._hear = hear
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
                line.send_bytes(self._answer_to(_DECODER.decode(line.recv_bytes())))
            except (EOFError, OSError, msgspec.MsgspecError) as error:
                LOG.warning("a message of a worker was not understood: %s", error)

    def _answer_to(self, message: CommittedNotice | ReplaceQuestion) -> bytes:
        if isinstance(message, ReplaceQuestion):
            return (self._judge(message.place, message.version) or "").encode()
        self._hear(message.lake_url, message.table)
        return b""
