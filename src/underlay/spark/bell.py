"""How a process that committed for the driver tells it, so that the driver's session shows what was written.

Spark has a Python data source commit in a worker: a process of its own, on the driver's host. It rings the bell that it
was sent with the writer, and waits until the driver answers that the names are fresh. The socket lies in a folder that
only this user can enter. A bell that nobody answers is logged: what was committed stays committed.
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


class Ring(msgspec.Struct, frozen=True):
    """A commit to a table."""

    lake_url: str
    table: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bell:
    """What a worker rings. Can be pickled."""

    address: str
    key: bytes = field(repr=False)

    def ring(self, lake_url: str, table: str) -> bool:
        """Tell the driver of a commit to the table of this name. Whether the driver knows; never raises."""
        try:
            with Client(self.address, _FAMILY, authkey=self.key) as line:
                line.send_bytes(msgspec.json.encode(Ring(lake_url, table)))
                if line.poll(_WAIT_SECONDS):
                    line.recv_bytes()
                    return True
        except (OSError, EOFError, AuthenticationError) as error:
            LOG.warning("the driver was not told of a commit to %s: %s", table, error)
            return False
        LOG.warning("the driver did not answer within %s s that it knows of a commit to %s", _WAIT_SECONDS, table)
        return False


class BellTower:
    """Where the driver hears bells, on a thread of its own until the process ends. `hear` is given lake and table."""

    def __init__(self, hear: Callable[[str, str], None]) -> None:
        self._hear = hear
        self._folder = TemporaryDirectory(prefix="underlay-bell-")
        self.bell = Bell(address=str(Path(self._folder.name) / "bell"), key=os.urandom(32))
        self._listener = Listener(self.bell.address, _FAMILY, backlog=16, authkey=self.bell.key)
        atexit.register(self.close)  # before the folder goes, which has the socket in it
        Thread(target=self._listen, daemon=True, name="underlay-bell").start()

    def close(self) -> None:
        """Hear no more."""
        atexit.unregister(self.close)
        self._listener.close()
        self._folder.cleanup()

    def _listen(self) -> None:
        while True:
            try:
                line = self._listener.accept()
            except (EOFError, AuthenticationError, ConnectionError):
                continue  # that one went away
            except OSError:
                return  # closed
            Thread(target=self._answer, args=(line,), daemon=True, name="underlay-bell-line").start()

    def _answer(self, line: Connection[bytes, bytes]) -> None:
        with line:
            try:
                ring = msgspec.json.decode(line.recv_bytes(), type=Ring)
                self._hear(ring.lake_url, ring.table)
                line.send_bytes(b"")
            except (EOFError, OSError, msgspec.MsgspecError) as error:
                LOG.warning("a bell was rung and not understood: %s", error)
