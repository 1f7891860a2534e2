"""Results of `verify` as values: findings by object, reports by revision and table, one for the lake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec


class FindingKind(StrEnum):
    """What is wrong."""

    MISSING = "missing"
    """An object that others reference is missing."""
    DAMAGED = "damaged"
    """An object's bytes are not those that its writer wrote."""
    INCONSISTENT = "inconsistent"
    """Intact objects contradict each other."""
    WRONG_STATISTICS = "wrong_statistics"
    """The index contradicts a file's footer or rows."""
    SIDECAR = "sidecar"
    REGISTRY = "registry"


class Severity(StrEnum):
    """What it means for the table."""

    LOST = "lost"
    """The versions that need the object cannot be read as they were."""
    ANSWERS = "answers"
    """Versions can be read, but queries may miss rows or answer wrongly."""
    OLDER = "older"
    """A registered file is missing that only older versions have: they cannot be read as they were."""
    DERIVED = "derived"
    """Nothing is lost: the object can be rebuilt from others."""
    NOTE = "note"
    """Nothing is wrong."""


class VersionRange(msgspec.Struct, frozen=True, order=True):
    """Versions from `begin` up to, and without, `end`."""

    begin: int
    end: int

    def __str__(self) -> str:
        last = self.end - 1
        return f"{self.begin}" if last == self.begin else f"{self.begin}–{last}"


class VerifyFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong. `place` is the key of the object, or where it lies."""

    kind: FindingKind
    severity: Severity
    place: str
    problem: str
    versions: tuple[VersionRange, ...] = ()
    """The versions that need the object; empty if none does."""
    hint: str | None = None
    is_repaired: bool = False

    @property
    def is_open(self) -> bool:
        """Whether something is still wrong. What only older versions need does not count: the table works without
        it.
        """
        return self.severity not in (Severity.NOTE, Severity.OLDER) and not self.is_repaired

    @property
    def is_loss(self) -> bool:
        """Whether its versions cannot be read as they were."""
        return self.severity in (Severity.LOST, Severity.OLDER)


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many objects were looked at in a revision."""

    versions: int = 0
    segments: int = 0
    pages: int = 0
    files: int = 0
    sidecars: int = 0
    unreferenced: int = 0
    """Unreferenced objects of the revision, left by jobs that failed or are still running."""


class RevisionReport(msgspec.Struct, frozen=True, kw_only=True):
    """One revision of a table. Versions are None where there is none."""

    id: str
    folder: str
    is_active: bool
    newest_version: int | None
    newest_intact: int | None
    """The newest version whose objects all exist and are intact."""
    is_head_intact: bool
    """Whether the newest root is readable and belongs to this chain. If not, nothing can be committed, not even a
    rollback."""
    counts: Counts
    findings: tuple[VerifyFinding, ...] = ()

    @property
    def unreadable(self) -> tuple[VersionRange, ...]:
        """The versions that need something that is lost."""
        lost = (finding for finding in self.findings if finding.is_loss)
        return ranges_of(version for finding in lost for span in finding.versions for version in versions_in(span))


class TableReport(msgspec.Struct, frozen=True, kw_only=True):
    """One table, all of its revisions, the active one first."""

    name: str
    revisions: tuple[RevisionReport, ...]

    @property
    def active(self) -> RevisionReport:
        """The revision that is read."""
        return self.revisions[0]

    @property
    def findings(self) -> tuple[VerifyFinding, ...]:
        """Of all revisions."""
        return tuple(finding for revision in self.revisions for finding in revision.findings)

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong with it, or everything was repaired."""
        return not any(finding.is_open for finding in self.findings)


class CatalogReport(msgspec.Struct, frozen=True, kw_only=True):
    """The chain of the catalog's entries."""

    entry_count: int
    newest: int
    newest_intact: int | None
    findings: tuple[VerifyFinding, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong with it."""
        return not any(finding.is_open for finding in self.findings)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `verify` found in a lake."""

    url: str
    is_deep: bool
    catalog: CatalogReport
    tables: tuple[TableReport, ...]
    registry: tuple[VerifyFinding, ...] = ()

    @property
    def findings(self) -> tuple[VerifyFinding, ...]:
        """All of them."""
        of_tables = (finding for table in self.tables for finding in table.findings)
        return (*self.catalog.findings, *of_tables, *self.registry)

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong, or everything was repaired."""
        return not any(finding.is_open for finding in self.findings)


def versions_in(span: VersionRange) -> range:
    """The versions of a range."""
    return range(span.begin, span.end)


def ranges_of(versions: Iterable[int]) -> tuple[VersionRange, ...]:
    """The fewest ranges with these versions, ascending."""
    return tuple(_ranges(sorted(set(versions))))


def _ranges(versions: list[int]) -> Iterator[VersionRange]:
    begin = 0
    for at in range(1, len(versions) + 1):
        if at == len(versions) or versions[at] != versions[at - 1] + 1:
            yield VersionRange(versions[begin], versions[at - 1] + 1)
            begin = at


def show_versions(ranges: tuple[VersionRange, ...]) -> str:
    """As people write it: `version 3`, `versions 3, 5–9`."""
    is_one = len(ranges) == 1 and ranges[0].end == ranges[0].begin + 1
    return f"version{'' if is_one else 's'} {', '.join(map(str, ranges))}"
