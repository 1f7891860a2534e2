"""The file of a SQLite registry: opened by many processes at once, and perhaps deleted or replaced under them.

A connection knows which file it opened, so that one whose file is no longer at the path can be told by a stat. The log
and its index (`-wal`, `-shm`) belong to the file they were made for: those left by a file that is gone are deleted
before another takes its name. The folder is locked (flock) meanwhile, since two processes may be at it.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from underlay.errors import Unavailable
from underlay.registry.failure import retryable

Identity = tuple[int, int]
"""Device and inode: no two files that exist, or are open, have the same."""

_POLL_SECONDS = 0.005
_opened: dict[Path, Identity] = {}
"""The file that this process opened last at a path. Used with the folder locked."""


class FileConnection(sqlite3.Connection):
    """A connection that knows which file it opened."""

    identity: Identity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteFile:
    """The file at `path`. Locks of others are waited for up to `lock_ms`."""

    path: Path
    lock_ms: int

    def connect(self) -> FileConnection:
        """A connection in WAL mode that starts no transaction by itself. Makes the folder and the file if absent."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked_folder():
            identity = self.identity() or self._create()
            if _opened.setdefault(self.path, identity) != identity:
                # The file was replaced. This process may have the old one's index mapped, and SQLite, which does not
                # see its own process's locks, would cut that short for the new file: a bus error.
                self._delete_log()
                _opened[self.path] = identity
            connection = sqlite3.connect(
                self.path,
                timeout=self.lock_ms / 1000,
                isolation_level=None,
                check_same_thread=False,
                factory=FileConnection,
            )
            try:
                connection.execute("PRAGMA synchronous=OFF")  # no sync of a new file while others wait for the folder
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=NORMAL")
            except (sqlite3.Error, UnicodeError):  # the latter when the text of an error is not UTF-8
                connection.close()
                raise
        connection.identity = identity
        return connection

    def identity(self) -> Identity | None:
        """The file that is at the path now. It is never opened here: closing it would drop SQLite's locks on it."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def delete(self) -> None:
        """Delete the file with its log. Connections that have it open go on with a file that nobody else sees."""
        if self.path.parent.is_dir():
            with self._locked_folder():
                self.path.unlink(missing_ok=True)
                self._delete_log()

    def _create(self) -> Identity:
        self._delete_log()
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            made = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        return made.st_dev, made.st_ino

    def _delete_log(self) -> None:
        for suffix in ("-wal", "-shm"):
            self.path.with_name(f"{self.path.name}{suffix}").unlink(missing_ok=True)

    @contextmanager
    def _locked_folder(self) -> Iterator[None]:
        descriptor = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._lock(descriptor)
            try:
                yield
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing is not enough when a fork has copied the descriptor
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int) -> None:
        deadline = time.monotonic() + self.lock_ms / 1000
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise retryable(
                        Unavailable("another process is opening the registry", place=str(self.path), hint="Try again.")
                    ) from None
            time.sleep(_POLL_SECONDS)
