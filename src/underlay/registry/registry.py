"""A lake's registry, as the rest of Underlay uses it: it says where to begin looking, and is told what was seen.

SQLAlchemy takes a third of a second to load, so it is loaded only when the registry is first asked, or in the
follower's thread: a process that only reads a local lake never loads it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from underlay.errors import InvalidRequest, RegistryRefused, Unsupported
from underlay.index.catalog import Catalog
from underlay.index.keys import CATALOG, RevisionKeys
from underlay.index.root import Root
from underlay.registry.database.location import choose_url, is_server, lake_folder, sqlite_folder
from underlay.registry.follow.ask import Asking
from underlay.registry.follow.follower import Follower, Write
from underlay.registry.follow.shared_pieces import FooterCache
from underlay.runtime.locks import cached_property
from underlay.runtime.posix import need_posix
from underlay.store.store import Store
from underlay.table.versions.registry_protocol import Opening

if TYPE_CHECKING:
    from underlay.registry.database.database import Database
    from underlay.registry.follow.apply_seen import Application
    from underlay.registry.mirror.catch_up import OnRevision
    from underlay.registry.rebuild.difference import Difference
    from underlay.registry.rebuild.restore import OnProgress, Restored
    from underlay.registry.rebuild.status import Status

_CLOSE_SECONDS = 2.0
"""How long `close` waits for a responsive registry."""
_STOP_SECONDS = 2.0
"""How long to wait for the end of a transaction on a file, so that it leaves no log behind."""
_STOP_SERVER_SECONDS = 0.25


def open_registry(url: str | None, store: Store) -> Registry | None:
    """The registry of the lake in `store`; None for no registry. Does not connect yet."""
    chosen = choose_url(url, store.url, os.environ, Path.home())
    if chosen is None:
        return None
    if is_server(chosen) and find_spec("psycopg") is None:
        raise Unsupported(
            "the driver for PostgreSQL, psycopg, is not installed", hint="Run pip install 'underlay[postgres]'."
        )
    if not is_server(chosen) and find_spec("fcntl") is None:  # Windows lacks the lock that the file needs
        if url is None:
            return None
        need_posix("registries in SQLite")
    return Registry(chosen, store)


def _open_database(url: str) -> Database:
    from underlay.registry.database.database import open_database

    return open_database(url, makes_folder=False)


class Registry:
    """One lake's metadata database. Whatever happens to it, tables can be read and written. Thread-safe."""

    def __init__(self, url: str, store: Store) -> None:
        # No attribute holds the URL, which may contain a password.
        self._open_database: Callable[[], Database] = lambda: _open_database(url)
        self._store = store
        self._lake_folder = lake_folder(store.url)
        self._folder = sqlite_folder(url)
        self._has_folder = self._folder is None
        self._is_closed = False
        self._asking = Asking(lambda: self._database)
        self._follower = Follower(
            lambda: self._application,
            self._asking,
            self._disconnect,
            self._is_gone,
            _STOP_SERVER_SECONDS if is_server(url) else _STOP_SECONDS,
        )
        self.pieces = FooterCache(self._asking, self._follower) if is_server(url) else None
        """Pieces fetched by other machines; None if there are no others."""

    @property
    def url(self) -> str:
        """Where it is, without a password."""
        return self._database.shown

    @property
    def statement_count(self) -> int:
        """Statements of this process so far."""
        return self._database.statement_count

    @property
    def transaction_count(self) -> int:
        """Transactions of this process so far, read-only ones included."""
        return self._database.transaction_count

    def opening(self, name: str | None) -> Opening | None:
        """What is known about the catalog, and about the table of this name. One statement."""
        from underlay.registry.mirror.opening import find_opening

        found = self._asking.ask(lambda connection: find_opening(connection, name))
        self._follower.poke()
        return found

    def saw_catalog(self, catalog: Catalog, *, is_own: bool) -> None:
        """Apply a catalog entry in the background."""
        self._make_folder(is_own)
        self._follower.saw_catalog(catalog, is_own=is_own)

    def saw_root(self, folder: str, revision: str, root: Root, *, is_own: bool) -> None:
        """Apply a root in the background."""
        self._make_folder(is_own)
        self._follower.saw_root(folder, revision, root, is_own=is_own)

    def saw_job(self, keys: RevisionKeys, revision: str, job: str) -> None:
        """Mirror a job's intent in the background."""
        self._follow_one("JOB_MIRROR", keys, revision, job)

    def saw_reader(self, keys: RevisionKeys, revision: str, reader: str) -> None:
        """Mirror a reader's lease in the background."""
        self._follow_one("LEASE_MIRROR", keys, revision, reader)

    def saw_run(self, keys: RevisionKeys, revision: str, job: str) -> None:
        """Mirror a run's record in the background."""
        self._follow_one("RUN_MIRROR", keys, revision, job)

    def _follow_one(
        self, mirror: Literal["JOB_MIRROR", "LEASE_MIRROR", "RUN_MIRROR"], keys: RevisionKeys, revision: str, name: str
    ) -> None:
        def read() -> Write:
            from underlay.registry.mirror import holders

            one: holders.Mirror[Any] = getattr(holders, mirror)  # of any kind of object
            return one.follow(self._store, keys, revision, name)

        self._follower.add(read)

    def refuse(self, error: RegistryRefused) -> None:
        """Do not use the registry: it belongs to another store or history."""
        self._asking.refuse(error)

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until all that this process saw is applied. False if that failed, or the registry is refused."""
        return self._follower.wait(timeout_seconds)

    @property
    def is_idle(self) -> bool:
        """Whether there is no work, due now or later."""
        return self._follower.is_idle

    def finish(self, timeout_seconds: float) -> bool:
        """Wait until what this process wrote is applied, as long as the registry answers. Returns whether it was."""
        return self._follower.wait(timeout_seconds, also_seen=False, also_resting=False)

    def follow(self, progress: OnRevision | None = None) -> int:
        """Apply everything that the registry lacks. Returns how many versions. Raises the registry's problem."""
        from underlay.registry.mirror.catch_up import follow

        self._make_folder(True)
        with self._patient() as database:
            return follow(database, self._store, progress)

    def restore(self, progress: OnProgress | None = None) -> Restored:
        """Rebuild the registry from the store. It stays unchanged until that is done."""
        from underlay.registry.rebuild.restore import restore

        self._make_folder(True)
        with self._patient() as database:
            done = restore(database, self._store, progress)
        self._asking.accept()
        return done

    def differences(self, progress: OnProgress | None = None) -> list[Difference]:
        """What `restore` would change."""
        from underlay.registry.rebuild.difference import compare

        with self._patient() as database:
            return compare(database, self._store, progress=progress)

    def migrate(self) -> tuple[str | None, str]:
        """Migrate the tables to this release's schema. Returns the schema's version before and after."""
        from underlay.registry.database.migration import migrate

        self._make_folder(True)
        with self._patient() as database:
            return migrate(database)

    def status(self) -> Status:
        """Where it is, whether it answers, and how far it is behind the store."""
        from underlay.registry.rebuild.status import find_status

        with self._patient() as database:
            return find_status(database, self._store)

    def close(self) -> None:
        """Wait a little until what this process wrote is applied, then end the thread and close connections for
        good.
        """
        self._follower.wait(_CLOSE_SECONDS, also_seen=False, also_resting=False)
        self._is_closed = True
        self._asking.close()
        self._follower.close()

    def _disconnect(self) -> None:
        """Close unused connections."""
        if "_database" in vars(self):
            self._database.close()

    @cached_property
    def _database(self) -> Database:
        return self._open_database()

    @cached_property
    def _application(self) -> Application:
        from underlay.registry.follow.apply_seen import Application

        return Application(self._database, self._store)

    def _make_folder(self, is_own: bool) -> None:
        """Create the folder of a SQLite file, in the caller's thread, which has just used the lake.

        The follower creates none: it might recreate a folder that was deleted meanwhile. Only writers create the folder
        in a local lake.
        """
        if self._folder is None or self._is_closed:
            return
        with suppress(OSError):  # connecting will report what is wrong
            if self._folder.parent == self._lake_folder:
                if is_own:
                    self._folder.mkdir(exist_ok=True)
            elif not self._has_folder:
                self._has_folder = True
                self._folder.mkdir(parents=True, exist_ok=True)

    def _is_gone(self) -> bool:
        """Whether the lake was a folder that was deleted, or its registry's folder was."""
        if self._lake_folder is None:
            return False
        folder = self._folder if self._folder is not None and self._folder.parent == self._lake_folder else None
        return not (self._lake_folder / CATALOG).is_dir() or (folder is not None and not folder.is_dir())

    @contextmanager
    def _patient(self) -> Iterator[Database]:
        """The same database, for work on the registry itself, which may wait for others."""
        if self._is_closed:
            raise InvalidRequest("the lake is closed", hint="Open it again with underlay.connect.")
        database = self._database.patient()
        try:
            yield database
        finally:
            database.close()

    def __repr__(self) -> str:
        return f"Registry({self.url!r})"
