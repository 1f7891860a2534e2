"""The file of a SQLite registry, which many processes open at once, and which may be deleted or replaced meanwhile.

A connection knows which file it opened, so a stat shows when that file is no longer at the path. The log and its index
(`-wal`, `-shm`) belong to the file they were made for: those of a deleted file are deleted before another file takes
its name. The folder is locked (flock) meanwhile, since two processes may be doing this.

A registry may lie in a lake that others can write to. So symbolic links in place of the file, its log, or its folder in
a lake are not followed, and another program's database is never written to.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakSet

from underlay.errors import InvalidRequest, RegistryRefused, Unavailable
from underlay.registry.database.database_errors import retryable
from underlay.registry.database.location import LAKE_FOLDER
from underlay.registry.database.schema import are_foreign
from underlay.runtime.fork import leave_to_parent, start_afresh_after_fork, undivided

Identity = tuple[int, int]
"""Device and inode: unique among files that exist or are open."""

_LOGS = ("-wal", "-shm")
_POLL_SECONDS = 0.005
_TABLES = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_'"


class FileConnection(sqlite3.Connection):
    """A connection that knows which file, log and index it opened."""

    identity: Identity | None = None
    logs: frozenset[Identity] = frozenset()

    def __init__(self, path: Path, lock_ms: int) -> None:
        self.path = path
        _forks.unclosed.add(self)  # before it opens, as the process may fork
        super().__init__(path, timeout=lock_ms / 1000, isolation_level=None, check_same_thread=False)

    def close(self) -> None:
        """Close it. Its log and index may belong to others from now on."""
        _open.discard(self)
        with undivided():
            super().close()
            _forks.unclosed.discard(self)


_open: WeakSet[FileConnection] = WeakSet()
"""The open connections of this process. An inode is not reused while a connection has its file open."""


class _Forks:
    """What a forked child inherits of its parent's connections.

    SQLite tracks a process's locks in memory, which the child inherits, while the locks stay the parent's. So the child
    must not open a file that its parent had open: it would take the parent's locks for its own. Connections are closed
    before a fork, except those whose transaction took too long.
    """

    def __init__(self) -> None:
        self.unclosed: WeakSet[FileConnection] = WeakSet()
        self.left: set[Path] = set()
        """Files that the parent process had open at the fork."""
        start_afresh_after_fork(self)

    def start_afresh(self) -> None:
        """Leave the connections to the parent, without closing them."""
        for connection in list(self.unclosed):
            self.left.add(connection.path)
            leave_to_parent(connection)
        self.unclosed = WeakSet()


_forks = _Forks()


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteFile:
    """The file at `path`. Connections wait up to `lock_ms` for locks of others."""

    path: Path
    lock_ms: int
    makes_folder: bool = True

    def connect(self) -> FileConnection:
        """A connection in WAL mode that starts no transaction by itself. Creates the file if absent, and its folder
        with `makes_folder`. Changes nothing in another program's database. Raises RegistryRefused for a link.
        """
        if self.path in _forks.left:
            raise InvalidRequest(
                "this process was forked while its parent was in a transaction of the registry",
                place=str(self.path),
                hint="Nothing depends on the registry. To use it, start processes by spawn instead of fork.",
            )
        self._check_links()
        if self.makes_folder:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked_folder():
            self._check_links()
            identity = self.identity() or self._create()
            self._delete_logs_of_replaced(identity)
            connection = FileConnection(self.path, self.lock_ms)
            try:
                connection.execute("PRAGMA synchronous=OFF")  # do not sync a new file while others wait for the folder
                names = {str(name) for (name,) in connection.execute(_TABLES)}
                if not are_foreign(names):  # the mode is stored in the file, so leave a foreign one alone
                    connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=NORMAL")
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # opens the log and its index
            except (sqlite3.Error, UnicodeError):  # UnicodeError when the text of an error is not UTF-8
                connection.close()
                raise
            connection.identity = identity
            connection.logs = frozenset(found for log in self._logs() if (found := _identity(log)))
            _open.add(connection)
        return connection

    def identity(self) -> Identity | None:
        """Identifies the file that is at the path now, without opening it: closing it would drop SQLite's locks on
        it.
        """
        return _identity(self.path)

    def delete(self) -> None:
        """Delete the file and its log. Connections that have it open go on with a file that nobody else sees."""
        self._check_links()
        if self.path.parent.is_dir():
            with self._locked_folder():
                self.path.unlink(missing_ok=True)
                self._delete_log()

    def _check_links(self) -> None:
        """Raise RegistryRefused when a link would lead writes elsewhere."""
        folders = [self.path.parent] if self.path.parent.name == LAKE_FOLDER else []
        link = next((path for path in (*folders, self.path, *self._logs()) if path.is_symlink()), None)
        if link is not None:
            raise RegistryRefused(
                "the registry is not written through a symbolic link",
                place=str(link),
                found=f"a link to {os.readlink(link)}",
                hint="Remove the link. To have the registry elsewhere, name the file itself: "
                "--registry sqlite:///PATH, or UNDERLAY_REGISTRY.",
            )

    def _create(self) -> Identity:
        self._delete_log()
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            made = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        return made.st_dev, made.st_ino

    def _delete_logs_of_replaced(self, identity: Identity) -> None:
        """Delete a log or index that this process has open for a file other than `identity`.

        SQLite does not see its own process's locks, and would truncate the mapped index for the new file: a bus error.
        A log that came with the new file stays.
        """
        replaced = {log for one in list(_open) if one.identity != identity for log in one.logs}
        for log in self._logs():
            if _identity(log) in replaced:
                log.unlink(missing_ok=True)

    def _delete_log(self) -> None:
        for log in self._logs():
            log.unlink(missing_ok=True)

    def _logs(self) -> list[Path]:
        return [self.path.with_name(f"{self.path.name}{suffix}") for suffix in _LOGS]

    @contextmanager
    def _locked_folder(self) -> Iterator[None]:
        import fcntl  # Windows lacks it; there the registry is PostgreSQL

        descriptor = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._lock(descriptor)
            try:
                yield
            finally:
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing is not enough once a fork has copied the descriptor
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int) -> None:
        import fcntl

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


def _identity(path: Path) -> Identity | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
