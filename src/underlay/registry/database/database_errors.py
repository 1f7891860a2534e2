"""Translates a database's errors to UnderlayErrors. No text, ours or a driver's, contains a password."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from random import random
from typing import TypeVar

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InvalidRequestError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from underlay.errors import Inconsistent, Malformed, Unavailable, UnderlayError, Unsupported

RESTORE_HINT = 'Rebuild it from the store with "underlay registry restore".'
_REBUILD = 'Run "underlay registry restore"; the lake itself is not affected.'
_LATER = "Retry: another process is using it."
_UNREACHABLE = "Check that the server is running and that host, port, database, user and password are right."
_ENVIRONMENT = "Check that there is disk space and that this user may write there."
_ENCODING = "Use a database whose encoding is UTF8."

_SERIALISATION = {"40001", "40P01"}
_LOCKED = {"55P03", "53300"}
_RESTARTING = {"57P01", "57P02", "57P03", "57P05"}
_MISSING = {"42P01", "42703", "3F000"}
_RIGHTS = {"25006", "42501", "28000", "28P01"}
_TIMED_OUT = "57014"
_UNTRANSLATABLE = {"22P05", "22021"}
_TOO_LARGE = "54"
"""The prefix of the SQLSTATEs for exceeded limits, such as a value that is too large for an index."""

_SQLITE_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_SQLITE_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_SQLITE_VALUE = {sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE}
_SQLITE_ENVIRONMENT = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_NOLFS,
}
_PRIMARY_CODE = 0xFF
"""The bits of SQLite's extended codes that hold the primary code."""

_RETRYABLE = "is_retryable"
_ATTEMPTS = 5
_PAUSE_SECONDS = 0.2
T = TypeVar("T")


def is_retryable(error: UnderlayError) -> bool:
    """Whether the same transaction may succeed if it is retried at once: it met a lock, a deadlock, another transaction
    or a dropped connection. It may be unknown whether it was committed.
    """
    return bool(vars(error).get(_RETRYABLE, False))


def retryable(error: UnderlayError) -> UnderlayError:
    """The same error, marked as retryable."""
    vars(error)[_RETRYABLE] = True
    return error


def patiently(work: Callable[[], T]) -> T:
    """What `work`, one transaction or several, returns. Retries a few times after retryable errors."""
    for attempt in range(1, _ATTEMPTS):
        try:
            return work()
        except UnderlayError as error:
            if not is_retryable(error):
                raise
        time.sleep(_PAUSE_SECONDS * attempt * random())  # so that those who collided do not collide again
    return work()


def understood(error: Exception, place: str) -> UnderlayError:
    """The UnderlayError for an exception of the database at `place`, or of decoding its answer."""
    said = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    if isinstance(said, sqlite3.Error):
        return _from_sqlite(said, place)
    if isinstance(said, UnicodeError):
        return Malformed("the database holds text that is not UTF-8", place=place, hint=_REBUILD)
    if isinstance(said, OverflowError):
        return Unsupported(f"a number is too large for the database: {said}", place=place)
    if isinstance(error, PoolTimeout):
        return retryable(Unavailable("every connection to the registry is in use", place=place, hint=_LATER))
    if isinstance(error, InvalidRequestError):
        return Inconsistent(f"the database holds rows that Underlay did not write: {error}", place=place, hint=_REBUILD)
    if isinstance(error, DBAPIError):
        return _from_postgresql(error, place)
    return retryable(Unavailable(f"no connection: {error}", place=place, hint=_LATER))


def _from_sqlite(error: sqlite3.Error, place: str) -> UnderlayError:
    said = str(error)
    extended = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    code = extended & _PRIMARY_CODE
    if code in _SQLITE_BUSY:
        return retryable(Unavailable(said, place=place, hint=_LATER))
    if code in _SQLITE_DAMAGED or extended == sqlite3.SQLITE_IOERR_SHORT_READ:
        return Malformed(said, place=place, hint=_REBUILD)
    if said.startswith("Could not decode"):
        return Malformed(f"the file holds text that is not UTF-8: {said}", place=place, hint=_REBUILD)
    if code in _SQLITE_ENVIRONMENT:
        return Unavailable(said, place=place, hint=_ENVIRONMENT)
    if code == sqlite3.SQLITE_CONSTRAINT or said.startswith("no such") or "has no column" in said:
        return Inconsistent(said, place=place, hint=_REBUILD)
    if code in _SQLITE_VALUE:
        return Unsupported(f"SQLite cannot store a value: {said}", place=place)
    return Unsupported(f"SQLite refused a statement: {said}", place=place)


def _from_postgresql(error: DBAPIError, place: str) -> UnderlayError:
    said = str(error.orig).strip().partition("\n")[0]
    state = getattr(error.orig, "sqlstate", None) or ""
    if state in _SERIALISATION | _LOCKED:
        return retryable(Unavailable(said, place=place, hint=_LATER))
    if error.connection_invalidated or state in _RESTARTING or state.startswith("08") or _is_starting(said):
        return retryable(Unavailable(said, place=place, hint=_UNREACHABLE))
    if state == _TIMED_OUT:
        return Unavailable(said, place=place, hint="The server is slow, or another process holds a lock.")
    if state in _RIGHTS:
        return Unavailable(
            said, place=place, hint="Check that this user may write and that the server is not a replica."
        )
    if state in _MISSING or isinstance(error, IntegrityError):
        return Inconsistent(said, place=place, hint=_REBUILD)
    if state.startswith("XX00"):
        return Malformed(said, place=place, hint=_REBUILD)
    if isinstance(error, DataError) or state.startswith(_TOO_LARGE):
        hint = _ENCODING if state in _UNTRANSLATABLE else None
        return Unsupported(f"PostgreSQL cannot store a value: {said}", place=place, hint=hint)
    if isinstance(error, OperationalError) or state.startswith("53"):
        return Unavailable(said, place=place, hint=_UNREACHABLE if not state else _ENVIRONMENT)
    return Unsupported(f"PostgreSQL refused a statement: {said}", place=place)


def _is_starting(said: str) -> bool:
    """Whether the server refuses connections only for a moment. libpq gives no code for errors while connecting."""
    return "the database system is" in said and "read-only" not in said
