"""Every error that Underlay raises, by what the caller does next.

    UnderlayError
    ├── InvalidRequest    change the request: a bad predicate, an unknown column, a schema that does not match
    │   ├── BadPredicate
    │   ├── UnknownColumn
    │   ├── SchemaMismatch
    │   │   └── NewColumn
    │   ├── SourceChanged
    │   ├── TableExists
    │   ├── TooManyRejected
    │   ├── NotExportable
    │   └── Forbidden
    ├── NotFound          name something that exists: a file, a table, a version
    │   ├── TableNotFound
    │   └── VersionNotFound
    │       └── SnapshotExpired
    ├── Damaged           restore or rebuild the named object; other objects are not affected
    │   ├── Truncated
    │   ├── Malformed
    │   ├── ChecksumMismatch
    │   ├── SourceUnreadable
    │   │   └── SourceEmpty
    │   └── Inconsistent
    │       ├── Replaced
    │       ├── RegistryRefused
    │       └── ReplayDiffers
    ├── Unsupported       use another writer or a newer Underlay: the object is fine, this release cannot use it
    ├── Busy              try again later: another writer holds it
    │   ├── CommitConflict
    │   │   ├── ClaimLost
    │   │   └── JobTakenOver
    │   ├── LeaseHeld
    │   └── RevisionClosed
    ├── Unavailable       fix the environment: permissions, disk, network
    └── CommitUnknown     look for the commit id in the history before you retry

An error says what went wrong, where, and what to do, and carries the same as fields. A `code` never changes once
released. The exit code of a command is that of the nearest class in `EXIT_CODES`.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from typing import ClassVar
from urllib.parse import unquote

_FILE = "file://"


class UnderlayError(Exception):
    """Base class. Catch it to catch everything that Underlay raises on purpose."""

    code: ClassVar[str] = "error"

    def __init__(
        self,
        problem: str,
        *,
        place: str | None = None,
        expected: object = None,
        found: object = None,
        hint: str | None = None,
    ) -> None:
        self.problem = problem
        self.place = place
        self.expected = expected
        self.found = found
        self.hint = hint
        super().__init__(problem)

    def __str__(self) -> str:
        text = f"{self.place}: {self.problem}" if self.place else self.problem
        given = {"expected": self.expected, "found": self.found}
        details = [f"{word} {value}" for word, value in given.items() if value is not None]
        if details:
            text = f"{text} ({', '.join(details)})"
        if self.hint is None:
            return text
        separator = " " if text.endswith((".", "?", "!")) else ". "
        return f"{text}{separator}{self.hint}"

    def at(self, place: str) -> UnderlayError:
        """The same error with `place` before its own place: code that reads bytes does not know the file's name.

        A place that already names the same object stays as it is."""
        if self.place is None:
            self.place = place
        elif not _is_in(place, self.place):
            self.place = f"{place}: {self.place}"
        return self

    def __reduce__(self) -> tuple[object, ...]:
        fields = (self.problem, self.place, self.expected, self.found, self.hint)
        return _rebuild, (type(self), *fields), dict(self.__dict__)


def _is_in(place: str, longer: str) -> bool:
    """Whether `longer` is `place` or begins with it. `place` may be a file's URL where `longer` has the path."""
    names = (place, unquote(place).removeprefix(_FILE))
    return any(longer.startswith(name) and longer[len(name) : len(name) + 1] in ("", ":", ",") for name in names)


def _rebuild(
    kind: type[UnderlayError], problem: str, place: str | None, expected: object, found: object, hint: str | None
) -> UnderlayError:
    return kind(problem, place=place, expected=expected, found=found, hint=hint)


class InvalidRequest(UnderlayError):
    """The request cannot be carried out as it stands. Nothing was changed."""

    code = "invalid_request"


class BadPredicate(InvalidRequest):
    """The condition does not parse, or compares a column with a value of an incompatible type."""

    code = "bad_predicate"


class UnknownColumn(InvalidRequest):
    """The table or file has no column of this name, or more than one."""

    code = "unknown_column"


class SchemaMismatch(InvalidRequest):
    """Rows, a file or a definition do not match the columns of the table."""

    code = "schema_mismatch"


class NewColumn(SchemaMismatch):
    """A source has a column that the table does not have, and no policy for new columns was chosen."""

    code = "new_column"


class SourceChanged(InvalidRequest):
    """A source changed after it was ingested, and no policy for changed sources was chosen."""

    code = "source_changed"


class TableExists(InvalidRequest):
    """A table already has this name, or one that differs only in case."""

    code = "table_exists"


class TooManyRejected(InvalidRequest):
    """The ingest rejected more rows than `max_rejected` allows. They are in the table of rejected rows; the valid rows
    of the same batch were not committed."""

    code = "too_many_rejected"


class NotExportable(InvalidRequest):
    """Another format cannot represent the table truthfully. `refusals` says which columns and files, and what to do."""

    code = "not_exportable"
    refusals: tuple[object, ...] = ()


class Forbidden(InvalidRequest):
    """The caller lacks the right. Nothing was changed."""

    code = "forbidden"


class NotFound(UnderlayError):
    """The named thing does not exist."""

    code = "not_found"


class VersionNotFound(NotFound):
    """The table has no such version."""

    code = "version_not_found"


class TableNotFound(NotFound):
    """No table has this name."""

    code = "table_not_found"


class SnapshotExpired(VersionNotFound):
    """The version has expired: its files may have been deleted."""

    code = "snapshot_expired"


class Damaged(UnderlayError):
    """The bytes are not what was written. `place` names the object, the section and the byte."""

    code = "damaged"


class Truncated(Damaged):
    """The object ends before a section of it does."""

    code = "truncated"


class Malformed(Damaged):
    """A field holds a value that the format forbids."""

    code = "malformed"


class ChecksumMismatch(Damaged):
    """The stored checksum is not the checksum of the bytes."""

    code = "checksum_mismatch"


class SourceUnreadable(Damaged):
    """A source cannot be read any further: it is truncated, damaged, or not in the format its name says."""

    code = "source_unreadable"


class SourceEmpty(SourceUnreadable):
    """A source is empty, or has only line breaks, where a header was expected."""

    code = "source_empty"


class Inconsistent(Damaged):
    """Two objects contradict each other, such as a sidecar and its Parquet file."""

    code = "inconsistent"


class Replaced(Inconsistent):
    """The object was replaced: its etag changed, or it changed during the read."""

    code = "replaced"


class RegistryRefused(Inconsistent):
    """The registry describes another lake, or a history that the store does not have. It is ignored."""

    code = "registry_refused"


class ReplayDiffers(Inconsistent):
    """A stream replayed an epoch with other rows than were committed for it. Nothing was changed."""

    code = "replay_differs"


class Unsupported(UnderlayError):
    """This release of Underlay does not support it. The object itself may be fine."""

    code = "unsupported"


class Busy(UnderlayError):
    """Another process is working on the same thing. Nothing was changed; a retry may succeed."""

    code = "busy"


class CommitConflict(Busy):
    """Another commit came first and conflicts with this one. Nothing was changed. They are `mine` and `theirs`."""

    code = "commit_conflict"
    mine: str | None = None
    theirs: str | None = None

    def between(self, mine: str, theirs: str) -> CommitConflict:
        """The same error, naming both commits."""
        self.mine, self.theirs = mine, theirs
        return self


class ClaimLost(CommitConflict):
    """Another run took over or finished sources that this run had claimed. Nothing was changed; `uris` names them."""

    code = "claim_lost"
    uris: tuple[str, ...] = ()

    def of(self, uris: Iterable[str]) -> ClaimLost:
        """The same error, naming the sources."""
        self.uris = tuple(uris)
        return self


class JobTakenOver(CommitConflict):
    """Another process took over the job that this one held. Nothing was changed; every later commit is refused too."""

    code = "job_taken_over"


class LeaseHeld(Busy):
    """Another process holds the job, and its lease has not expired."""

    code = "lease_held"


class RevisionClosed(Busy):
    """The revision takes no more commits. `successor` is the revision that took over, None for a dropped table."""

    code = "revision_closed"
    successor: str | None = None

    def by(self, successor: str | None) -> RevisionClosed:
        """The same error, naming the successor."""
        self.successor = successor
        return self


class Unavailable(UnderlayError):
    """The operating system or the store refused: permissions, disk space, network."""

    code = "unavailable"


class CommitUnknown(UnderlayError):
    """The store did not say whether the commit happened. It may have happened, or may still. Nothing was deleted.

    The commit happened if and only if the history has `commit_id`.
    """

    code = "commit_unknown"
    commit_id: str | None = None

    def of(self, commit_id: str) -> CommitUnknown:
        """The same error, naming the commit."""
        self.commit_id = commit_id
        return self


def from_os_error(error: OSError, place: str, *, hint: str | None = None) -> UnderlayError:
    """One of our errors for an operating system error about `place`."""
    if isinstance(error, FileNotFoundError):
        return NotFound("no such file or directory", place=place)
    if isinstance(error, IsADirectoryError):
        return NotFound("is a directory, not a file", place=place)
    return Unavailable(error.strerror or str(error), place=place, hint=hint or os_hint(error))


_SEE_LOG = "See the system's log (dmesg)"
_OS_HINTS = {
    errno.ENOSPC: "The disk is full. Free some space and try again.",
    errno.EDQUOT: "The disk quota is used up. Delete files or have it raised, and try again.",
    errno.EROFS: f"The file system is mounted read-only. {_SEE_LOG}, mount it for writing, and try again.",
    errno.EIO: f"The disk failed, or the network file system did. {_SEE_LOG} and try again.",
    **dict.fromkeys((errno.EACCES, errno.EPERM), "Check who owns it and its permissions."),
    errno.EMFILE: 'Close files or raise the limit of open files ("ulimit -n"), and try again.',
    errno.ENFILE: "The system has too many open files. Close some and try again.",
    errno.ESTALE: "The network file system lost the file. Mount it again and try again.",
}


def os_hint(error: OSError) -> str | None:
    """What to do about an error of the operating system."""
    return None if error.errno is None else _OS_HINTS.get(error.errno)


_LISTED_NAMES = 12


def name_hint(wanted: str, names: Iterable[str], noun: str = "column") -> str:
    """A hint for a name that does not exist: all names if there are few, else the nearest ones and how many exist."""
    known = list(names)
    if len(known) <= _LISTED_NAMES:
        return f"{noun.capitalize()}s: {', '.join(known)}."
    from difflib import get_close_matches  # only here, since `errors` is part of every import

    folded = {name.lower(): name for name in known}
    if near := [folded[name] for name in get_close_matches(wanted.lower(), folded, n=3)]:
        return f"Did you mean {' or '.join(near)}? There are {len(known)} {noun}s."
    return f"{noun.capitalize()}s: {', '.join(known[:_LISTED_NAMES])} and {len(known) - _LISTED_NAMES} more."


EXIT_CODES: dict[type[UnderlayError], int] = {
    UnderlayError: 1,
    InvalidRequest: 2,
    NotFound: 3,
    Damaged: 4,
    Unsupported: 5,
    Busy: 6,
    Unavailable: 7,
    CommitUnknown: 8,
}
"""The exit code of a command that fails: that of the nearest class. 0 is success, 1 also a check that found something,
2 also a wrong option."""


def exit_code(error: UnderlayError) -> int:
    """The exit code of a command that fails with `error`."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)
