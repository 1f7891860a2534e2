"""Makes the SQLAlchemy engine for each kind of database; it gives up soon when something blocks it.

We begin transactions ourselves with a statement at once, and the driver never does, so that a dead connection shows
before anything was done. This costs no more round trips than the driver's own BEGIN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from sqlalchemy import URL, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from underlay.registry.database.sqlite_file import FileConnection, SqliteFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long to wait for what is in the way. 0 means for ever, except for locks and the pool."""

    connect_s: int
    lock_ms: int
    statement_ms: int
    pool_s: float


QUICK = Timeouts(connect_s=2, lock_ms=250, statement_ms=2_000, pool_s=0.25)
"""For work that can continue without the registry."""

PATIENT = Timeouts(connect_s=10, lock_ms=60_000, statement_ms=0, pool_s=60.0)
"""For work on the registry itself."""


class DatabaseLocation(Protocol):
    """Where a database is, by its kind."""

    is_shared: ClassVar[bool]
    begin_write: ClassVar[str]
    begin_read: ClassVar[str]

    @property
    def shown(self) -> str:
        """The URL without secrets."""

    def is_absent(self) -> bool:
        """Whether there is certainly no database. Reading must not create one."""

    def engine(self, timeouts: Timeouts) -> Engine:
        """A new engine, not connected yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteSource:
    """A file on this machine. `makes_folder`: whether its folder is created too."""

    path: Path
    makes_folder: bool = True

    is_shared: ClassVar[bool] = False
    begin_write: ClassVar[str] = "BEGIN IMMEDIATE"
    begin_read: ClassVar[str] = "BEGIN"

    @property
    def shown(self) -> str:
        """The URL."""
        return f"sqlite:///{self.path}"

    def is_absent(self) -> bool:
        """Whether the file is missing."""
        return self.file(0).identity() is None

    def file(self, lock_ms: int) -> SqliteFile:
        """The file. Waits up to `lock_ms` for locks of others."""
        return SqliteFile(path=self.path, lock_ms=lock_ms, makes_folder=self.makes_folder)

    def engine(self, timeouts: Timeouts) -> Engine:
        """A new engine. It drops connections whose file is no longer at the path."""
        file = self.file(timeouts.lock_ms)
        engine = create_engine(
            "sqlite+pysqlite://",
            creator=file.connect,
            poolclass=QueuePool,
            pool_size=4,
            max_overflow=28,
            pool_timeout=timeouts.pool_s,
            pool_use_lifo=True,
            hide_parameters=True,
        )

        @event.listens_for(engine, "checkout")
        def drop_if_replaced(
            connection: FileConnection, record: ConnectionPoolEntry, proxy: PoolProxiedConnection
        ) -> None:
            if connection.identity != file.identity():
                raise DisconnectionError("the file was deleted or replaced")

        return engine


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresqlSource:
    """A database on a server, for many machines."""

    url: URL

    is_shared: ClassVar[bool] = True
    begin_write: ClassVar[str] = "BEGIN"
    begin_read: ClassVar[str] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    @property
    def shown(self) -> str:
        """The URL without passwords."""
        bare = self.url.difference_update_query(["password", "sslpassword"])
        bare = URL.create("postgresql", bare.username, None, bare.host, bare.port, bare.database, bare.query)
        return bare.render_as_string(hide_password=False)

    def __repr__(self) -> str:
        return f"PostgresqlSource({self.shown!r})"

    def is_absent(self) -> bool:
        """False: only the server knows."""
        return False

    def engine(self, timeouts: Timeouts) -> Engine:
        """A new engine. Connection parameters in the URL take precedence over those here."""
        query: dict[str, str | Sequence[str]] = {**_connection(timeouts), **self.url.query}
        query["options"] = self._options(timeouts)
        query["client_encoding"] = "utf8"  # whatever the database's encoding is: the store holds any text
        return create_engine(
            self.url.set(query=query),
            connect_args={"autocommit": True},
            pool_size=2,
            max_overflow=2,
            pool_timeout=timeouts.pool_s,
            pool_use_lifo=True,
            use_native_hstore=False,
            hide_parameters=True,
        )

    def _options(self, timeouts: Timeouts) -> str:
        """Settings of the session. Of contradicting ones, the server takes the last."""
        ours = f"-c lock_timeout={timeouts.lock_ms} -c statement_timeout={timeouts.statement_ms}"
        theirs = self.url.query.get("options", "")
        return " ".join([ours, theirs] if isinstance(theirs, str) else [ours, *theirs]).strip()


def _connection(timeouts: Timeouts) -> dict[str, str]:
    return {
        "application_name": "underlay",
        "connect_timeout": str(timeouts.connect_s),
        "keepalives": "1",
        "keepalives_idle": "30",
        "keepalives_interval": "5",
        "keepalives_count": "3",
        "tcp_user_timeout": "10000",
    }
