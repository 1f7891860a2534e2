"""The registry's database: transactions on SQLite or PostgreSQL that fail fast, and only with UnderlayErrors.

sqlite:///registry.sqlite, sqlite:////srv/registry.sqlite       a file; the path is taken as it is
postgresql://user:password@host:port/database?sslmode=require   a server; parameters are libpq's
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Lock
from weakref import finalize

from sqlalchemy import URL, Connection, Engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPICursor, ExecutionContext
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, InvalidRequestError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from underlay.errors import Inconsistent, InvalidRequest, Malformed, Unavailable, UnderlayError, Unsupported
from underlay.registry.database.database_errors import understood
from underlay.registry.database.engine import PATIENT, QUICK, DatabaseLocation, PostgresqlSource, SqliteSource, Timeouts
from underlay.registry.database.location import ACCEPTED
from underlay.runtime.fork import close_before_fork, leave_to_parent, start_afresh_after_fork, undivided

_BEGIN = "underlay_begin"
"""The connection option with the statement that begins its transactions."""
UNCOUNTED = "underlay_uncounted"
"""The option of a connection or statement that keeps it out of `Database.statement_count`."""

_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")


class Database:
    """A registry's database. Many threads may use it at once, and so may forked children.

    It connects when it is first used. Every error of a driver, or of decoding what it returned, becomes an
    UnderlayError whose place is the URL without its password: Unavailable when the database is down, locked, slow, full
    or read-only; Malformed when a SQLite file is damaged; Inconsistent when a table is missing, or holds values that
    Underlay never writes; see also `database_errors.is_retryable`.
    """

    def __init__(self, source: DatabaseLocation, timeouts: Timeouts = QUICK) -> None:
        self.shown = source.shown
        self.is_shared = source.is_shared
        self._source = source
        self._timeouts = timeouts
        self._counts = _Counts()
        self._engine = _make_engine(source, timeouts, self._counts)
        self._closing = finalize(self, self._engine.dispose)
        start_afresh_after_fork(self)
        if not self.is_shared:
            close_before_fork(self)

    def __repr__(self) -> str:
        return f"Database({self.shown!r})"

    def start_afresh(self) -> None:
        """Forget the connections, without closing them, and the counts. For a forked child."""
        self._closing.detach()
        leave_to_parent(self._engine)
        self._counts = _Counts()
        self._engine = _make_engine(self._source, self._timeouts, self._counts)
        self._closing = finalize(self, self._engine.dispose)

    def close_before_fork(self) -> None:
        """Close the connections to a file: a child must not inherit a SQLite connection."""
        self.close()

    @property
    def statement_count(self) -> int:
        """How many statements were sent, except those that begin and end transactions."""
        return self._counts.statements

    @property
    def transaction_count(self) -> int:
        """How many transactions were begun, read-only ones included."""
        return self._counts.transactions

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction: committed at the end, rolled back after an exception. READ COMMITTED on PostgreSQL; the only
        writer on SQLite.
        """
        with self._transaction(self._source.begin_write) as connection:
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read-only transaction: all statements see one state of the database. Creates no file: if it is missing,
        Inconsistent is raised, as for missing tables.
        """
        with self._errors():
            if self._source.is_absent():
                raise Inconsistent("there is no registry here yet", place=self.shown)
        with self._transaction(self._source.begin_read) as connection:
            yield connection

    def patient(self) -> Database:
        """The same database for work that may wait long for locks of others. The caller closes it."""
        return self.waiting(PATIENT)

    def waiting(self, timeouts: Timeouts) -> Database:
        """The same database with other timeouts. The caller closes it."""
        return Database(self._source, timeouts)

    def delete_file(self) -> None:
        """Delete the file of a SQLite registry, whatever it contains. InvalidRequest on PostgreSQL."""
        if not isinstance(self._source, SqliteSource):
            raise InvalidRequest("only the file of a SQLite registry can be deleted", place=self.shown)
        self.close()
        with self._errors():
            self._source.file(self._timeouts.lock_ms).delete()

    def close(self) -> None:
        """Close connections; those in use close when they are done. The database may still be used, and connects
        again.
        """
        pool = self._engine.pool
        self._engine.dispose()
        pool.dispose()  # connections that were returned while the engine switched pools

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        with nullcontext() if self.is_shared else undivided():
            pool = self._engine.pool
            connection = self._begun(begin)
            try:
                with connection:
                    yield connection
                    connection.commit()
            except self._failures as error:
                raise self._understood(error) from error
            finally:
                if pool is not self._engine.pool:
                    pool.dispose()  # `close` was called meanwhile: the connection went back to a pool that nobody uses

    def _begun(self, begin: str) -> Connection:
        """A connection in a new transaction. If the pool's connection is dead, tries once with a new one."""
        with self._errors():
            try:
                return self._begin(begin)
            except DBAPIError as error:
                if not error.connection_invalidated:
                    raise
            return self._begin(begin)

    def _begin(self, begin: str) -> Connection:
        connection = self._engine.connect().execution_options(**{_BEGIN: begin})
        try:
            connection.begin()
        except (SQLAlchemyError, UnicodeError):
            connection.close()
            raise
        return connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._failures as error:
            raise self._understood(error) from error
        except OSError as error:
            hint = "Check that the folder exists and that this user may write in it."
            raise Unavailable(error.strerror or str(error), place=self.shown, hint=hint) from error

    @property
    def _failures(self) -> tuple[type[Exception], ...]:
        """Exceptions that depend on the database and its content, not on how a statement is written: the driver's
        errors, an impossible number of rows, values of another type, text that is not UTF-8.
        """
        driver = self._engine.dialect.loaded_dbapi.Error
        return DBAPIError, InvalidRequestError, DisconnectionError, PoolTimeout, driver, UnicodeError, OverflowError

    def _understood(self, error: Exception) -> UnderlayError:
        meaning = understood(error, self.shown)
        if isinstance(meaning, Malformed):
            self._engine.dispose()  # drop what SQLite has cached of the damaged file
        return meaning


class _Counts:
    """Counts what was sent through an engine."""

    def __init__(self) -> None:
        self.statements = 0
        self.transactions = 0
        self._lock = Lock()

    def listen(self, engine: Engine) -> None:
        event.listen(engine, "begin", self._on_begin)
        event.listen(engine, "before_cursor_execute", self._on_statement)

    def _on_begin(self, connection: Connection) -> None:
        with self._lock:
            self.transactions += 1

    def _on_statement(
        self,
        connection: Connection,
        cursor: DBAPICursor,
        statement: str,
        parameters: object,
        context: ExecutionContext | None,
        executemany: bool,
    ) -> None:
        if context is None or not context.execution_options.get(UNCOUNTED):
            with self._lock:
                self.statements += 1


def _make_engine(source: DatabaseLocation, timeouts: Timeouts, counts: _Counts) -> Engine:
    engine = source.engine(timeouts)
    event.listen(engine, "begin", _send_begin)
    counts.listen(engine)  # after it: a transaction that failed to begin is not counted
    return engine


def _send_begin(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options()[_BEGIN], execution_options={UNCOUNTED: True})


def open_database(url: str, *, makes_folder: bool = True) -> Database:
    """The database at `url`. It connects, and creates the file, only when used; `makes_folder` creates the folder too.

    InvalidRequest when the URL is not understood; Unsupported when the driver for PostgreSQL is not installed.
    """
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "sqlite" and rest.startswith("/"):
        return Database(SqliteSource(path=_sqlite_path(rest[1:]), makes_folder=makes_folder))
    if separator and scheme in _POSTGRESQL:
        return Database(PostgresqlSource(url=_postgresql_url(rest)))
    # Not repeated in the message: a URL that was not understood may hold a password.
    raise InvalidRequest("this is not the URL of a registry", expected=ACCEPTED)


def _sqlite_path(path: str) -> Path:
    if not path or path.endswith("/") or path == ":memory:" or "\0" in path:
        raise InvalidRequest("a SQLite registry is a file", place=f"sqlite:///{path}", expected="sqlite:///path")
    return Path(path).absolute()


def _postgresql_url(rest: str) -> URL:
    try:
        from psycopg import ProgrammingError  # an optional dependency that only PostgreSQL needs
        from psycopg.conninfo import make_conninfo
    except ImportError:
        hint = "Run pip install 'underlay[postgres]'."
        raise Unsupported("the driver for PostgreSQL, psycopg, is not installed", hint=hint) from None
    try:
        url = make_url(f"postgresql+psycopg://{rest}")
        make_conninfo(**{name: str(value) for name, value in url.query.items()})
    except (ArgumentError, ValueError, ProgrammingError):
        is_clear = False  # their messages may quote a part of the password
    else:
        is_clear = rest.count("@") <= 1  # a second @ would make a part of the password the host
    if is_clear:
        return url
    hint = "Write @, /, :, ? and % in a password as %40, %2F, %3A, %3F and %25. Parameters have libpq's names."
    raise InvalidRequest("the registry's URL is invalid", expected=ACCEPTED, hint=hint)
