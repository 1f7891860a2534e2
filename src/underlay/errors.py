"""Every error that Underlay raises, by what the caller does next.

    UnderlayError
    ├── InvalidRequest    change the request: a bad predicate, an unknown column, a schema that does not fit
    │   ├── BadPredicate
    │   ├── UnknownColumn
    │   ├── SchemaMismatch
    │   │   └── NewColumn
    │   ├── SourceChanged
    │   ├── TableExists
    │   └── TooManyRejected
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
    ├── Unavailable       mend the environment: permission, disk, network
    └── CommitUnknown     find out, by the commit id, whether it happened, before doing it again

An error says what was wrong, where, and what to do, and carries the same as fields. `code` never changes
once released; the exit code of a command is `EXIT_CODES[type]` of the nearest class.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar


class UnderlayError(Exception):
    """Base of the tree. Catch it to catch everything that Underlay raises on purpose."""

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
        details = []
        if self.expected is not None:
            details.append(f"expected {self.expected}")
        if self.found is not None:
            details.append(f"found {self.found}")
        if details:
            text = f"{text} ({', '.join(details)})"
        if self.hint is None:
            return text
        separator = " " if text.endswith((".", "?", "!")) else ". "
        return f"{text}{separator}{self.hint}"

    def at(self, place: str) -> UnderlayError:
        """The same error with `place` put before its own place: a reader of bytes does not know the file's name."""
        self.place = f"{place}: {self.place}" if self.place else place
        return self

    def __reduce__(self) -> tuple[object, ...]:
        fields = (self.problem, self.place, self.expected, self.found, self.hint)
        return _rebuild, (type(self), *fields), dict(self.__dict__)


def _rebuild(
    kind: type[UnderlayError], problem: str, place: str | None, expected: object, found: object, hint: str | None
) -> UnderlayError:
    return kind(problem, place=place, expected=expected, found=found, hint=hint)


class InvalidRequest(UnderlayError):
    """The request cannot be carried out as it stands. Nothing was changed."""

    code = "invalid_request"


class BadPredicate(InvalidRequest):
    """A filter that does not parse, or compares a column with a value it can never be compared with."""

    code = "bad_predicate"


class UnknownColumn(InvalidRequest):
    """A column name that the table or file does not have, or has more than once."""

    code = "unknown_column"


class SchemaMismatch(InvalidRequest):
    """Two descriptions of columns that must agree do not."""

    code = "schema_mismatch"


class NewColumn(SchemaMismatch):
    """A source has a column that the table does not have, and nobody said what is to become of it."""

    code = "new_column"


class SourceChanged(InvalidRequest):
    """A source that was ingested has other content now, and nobody said what is to become of its rows."""

    code = "source_changed"


class TableExists(InvalidRequest):
    """A table has this name, or one that differs in upper and lower case only."""

    code = "table_exists"


class TooManyRejected(InvalidRequest):
    """More rows of an ingest's sources are no rows of the table than was allowed. They are in the table of rejected
    rows; of the good ones, those that were read together with them were not committed."""

    code = "too_many_rejected"


class NotFound(UnderlayError):
    """The named thing does not exist."""

    code = "not_found"


class VersionNotFound(NotFound):
    """The object exists, but not in the version that was asked for."""

    code = "version_not_found"


class TableNotFound(NotFound):
    """No table has this name."""

    code = "table_not_found"


class SnapshotExpired(VersionNotFound):
    """The version existed, and what it consisted of is no longer kept."""

    code = "snapshot_expired"


class Damaged(UnderlayError):
    """Bytes that cannot be what their writer wrote. `place` names the object, the section and the byte."""

    code = "damaged"


class Truncated(Damaged):
    """A section reaches past the end of its object."""

    code = "truncated"


class Malformed(Damaged):
    """A field holds a value that the format forbids."""

    code = "malformed"


class ChecksumMismatch(Damaged):
    """The stored checksum is not the checksum of the bytes."""

    code = "checksum_mismatch"


class SourceUnreadable(Damaged):
    """A source of which nothing more can be read: cut short, damaged, or not what its name says."""

    code = "source_unreadable"


class SourceEmpty(SourceUnreadable):
    """A source without a byte but line breaks, where a header was expected."""

    code = "source_empty"


class Inconsistent(Damaged):
    """Two objects that describe each other disagree: a sidecar and its Parquet file, say."""

    code = "inconsistent"


class Replaced(Inconsistent):
    """The object is not the one that was described: its etag has changed, or it changed while it was read."""

    code = "replaced"


class RegistryRefused(Inconsistent):
    """The registry tells of another lake, or of a history that the store does not have. Nothing of it is believed."""

    code = "registry_refused"


class ReplayDiffers(Inconsistent):
    """An epoch of a stream came again with other rows than were committed for it. Nothing was changed."""

    code = "replay_differs"


class Unsupported(UnderlayError):
    """A feature that this release does not have; the object itself may be fine."""

    code = "unsupported"


class Busy(UnderlayError):
    """Another process is at work on the same thing. Nothing was changed; trying again may succeed."""

    code = "busy"


class CommitConflict(Busy):
    """Another commit came first and contradicts this one. Nothing was changed.

    `mine` and `theirs` are the ids of the two commits.
    """

    code = "commit_conflict"
    mine: str | None = None
    theirs: str | None = None

    def between(self, mine: str, theirs: str) -> CommitConflict:
        """The same error, naming both commits."""
        self.mine, self.theirs = mine, theirs
        return self


class ClaimLost(CommitConflict):
    """Sources that this run had claimed are another one's now, or done. Nothing was changed; `uris` names them."""

    code = "claim_lost"
    uris: tuple[str, ...] = ()

    def of(self, uris: Iterable[str]) -> ClaimLost:
        """The same error, naming the sources."""
        self.uris = tuple(uris)
        return self


class JobTakenOver(CommitConflict):
    """Another process took over the job that this one held. Nothing was changed, and nothing more can be."""

    code = "job_taken_over"


class LeaseHeld(Busy):
    """Another process holds the job, and is alive."""

    code = "lease_held"


class RevisionClosed(Busy):
    """Nothing may follow in this revision. `successor` is the revision that took over, None for a dropped table."""

    code = "revision_closed"
    successor: str | None = None

    def by(self, successor: str | None) -> RevisionClosed:
        """The same error, naming the successor."""
        self.successor = successor
        return self


class Unavailable(UnderlayError):
    """The operating system or the store said no: permission, space, network."""

    code = "unavailable"


class CommitUnknown(UnderlayError):
    """The store did not say whether the commit happened. It may have, or may yet; nothing was deleted.

    `commit_id` is the commit's id: it happened if and only if the history has it.
    """

    code = "commit_unknown"
    commit_id: str | None = None

    def of(self, commit_id: str) -> CommitUnknown:
        """The same error, naming the commit."""
        self.commit_id = commit_id
        return self


def from_os_error(error: OSError, place: str, *, hint: str | None = None) -> UnderlayError:
    """What the operating system said about `place`, as an error of the tree."""
    if isinstance(error, FileNotFoundError):
        return NotFound("no such file or directory", place=place)
    if isinstance(error, IsADirectoryError):
        return NotFound("is a directory, not a file", place=place)
    return Unavailable(error.strerror or str(error), place=place, hint=hint)


_LISTED_NAMES = 12


def name_hint(wanted: str, names: Iterable[str], noun: str = "column") -> str:
    """A hint for a name that does not exist: all names if there are few, else the nearest ones and how many exist."""
    known = list(names)
    if len(known) <= _LISTED_NAMES:
        return f"{noun.capitalize()}s: {', '.join(known)}."
    from difflib import get_close_matches  # only here, since `errors` is part of every import

    folded = {name.lower(): name for name in known}
    near = [folded[name] for name in get_close_matches(wanted.lower(), folded, n=3)]
    if near:
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
"""Exit code of a command that ends with an error: that of the nearest class in the table. 0 is success, 1 a check
that found something, 2 is also what a wrong option gives."""


def exit_code(error: UnderlayError) -> int:
    """The exit code of a command that ends with `error`."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)
