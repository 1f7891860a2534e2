"""Verifies that a lake's catalog, roots, segments, source pages, files, sidecars and registry agree with each other.

Only derived objects are ever repaired. An object that cannot be rebuilt is named, with the versions that need it and
the newest one that does not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from underlay.errors import UnderlayError
from underlay.index.catalog import CLOSED, TableRecord, find_table
from underlay.index.keys import RevisionKeys
from underlay.maintain.deep.files import verify_deep
from underlay.maintain.repair import repair_sidecar
from underlay.maintain.verify.catalog import check_hint, verify_catalog
from underlay.maintain.verify.files import sidecar_finding, verify_files, verify_sidecars
from underlay.maintain.verify.finding import (
    Counts,
    FindingKind,
    Report,
    RevisionReport,
    Severity,
    TableReport,
    VerifyFinding,
    VersionRange,
    versions_in,
)
from underlay.maintain.verify.history import History
from underlay.maintain.verify.holders import is_kept, verify_kept
from underlay.maintain.verify.roots import verify_roots
from underlay.maintain.verify.runner import THREADS, ObjectTally, Progress, VerifyContext
from underlay.maintain.verify.segments import verify_segments
from underlay.maintain.verify.sources import verify_sources
from underlay.maintain.verify.state import verify_state
from underlay.scan.read.file_stores import FileStores
from underlay.table.catalog.lake import LakeCatalog

_REPAIR = 'Run "underlay verify --repair".'


class RegistryCheck(Protocol):
    """The registry, compared with the store."""

    def differences(self) -> Sequence[object]:
        """Where it differs from the store, in words, or the error that keeps it from being used."""

    def restore(self) -> None:
        """Rebuild it from the store. Raises UnderlayError when that fails."""


def verify(
    lake: LakeCatalog,
    stores: FileStores,
    names: Iterable[str] | None = None,
    *,
    deep: bool = False,
    repair: bool = False,
    progress: Progress | None = None,
    registry: RegistryCheck | None = None,
) -> Report:
    """Check every object of these tables, or of all, bypassing caches: about one request for each, none twice.

    `deep` also reads files, from the footer to the last row, and compares them with every entry. `repair` rebuilds
    sidecars and restores the registry; nothing else is written. Raises TableNotFound, and NotFound without a lake.
    Problems with objects are in the report, never raised.
    """
    with ThreadPoolExecutor(THREADS, thread_name_prefix="underlay-verify") as pool:
        work = VerifyContext(store=lake.store, stores=stores, pool=pool, tally=ObjectTally(progress))
        checked = verify_catalog(work)
        tables = []
        if checked.newest is not None:
            for name in sorted(checked.newest.tables) if names is None else dict.fromkeys(names):
                record = find_table(checked.newest, name)
                tables.append(_verify_table(work, name, record, deep=deep, repair=repair))
    return Report(
        url=lake.store.url,
        is_deep=deep,
        catalog=checked.report,
        tables=tuple(tables),
        registry=tuple(_verify_registry(registry, repair=repair)) if registry is not None else (),
    )


def _verify_registry(registry: RegistryCheck, *, repair: bool) -> Iterable[VerifyFinding]:
    found = list(registry.differences())
    is_repaired = False
    if found and repair:
        try:
            registry.restore()
            is_repaired = True
        except UnderlayError as error:
            found = [error]
    for one in found:
        problem = one if isinstance(one, UnderlayError) else UnderlayError(str(one), hint=_REPAIR)
        yield VerifyFinding(
            kind=FindingKind.REGISTRY,
            severity=Severity.DERIVED,
            place=problem.place or "registry",
            problem=problem.problem,
            hint=None if is_repaired else problem.hint,
            is_repaired=is_repaired,
        )


def _verify_table(work: VerifyContext, name: str, record: TableRecord, *, deep: bool, repair: bool) -> TableReport:
    others = sorted(record.revisions.keys() - {record.active}, key=lambda one: -record.revisions[one].created_us)
    return TableReport(
        name=name,
        revisions=tuple(
            _verify_revision(work, record, revision, deep=deep, repair=repair) for revision in (record.active, *others)
        ),
    )


def _verify_revision(
    work: VerifyContext, record: TableRecord, revision: str, *, deep: bool, repair: bool
) -> RevisionReport:
    keys = RevisionKeys.of(record.folder, revision)
    listed = {found.key: found for found in work.store.list_objects(keys.folder)}
    history = verify_roots(work, keys, listed)
    findings = history.findings
    findings += _end_problems(history, record, revision)
    if history.newest_version is not None:
        findings += check_hint(work.store, keys.hint, history.newest_version, keys.root)
    findings += verify_segments(work, history)
    history.forget_strangers()
    findings += verify_state(history)
    pages, of_pages = verify_sources(work, history)
    findings += of_pages
    files = verify_files(work, history, listed)
    findings += files.findings
    bad_sidecars = set()
    for facts, problem in verify_sidecars(work, history):
        bad_sidecars.add(facts.location)
        repaired = repair_sidecar(work.store, keys, facts) if repair else None
        findings.append(sidecar_finding(history, facts, problem, repaired=repaired))
    if deep:
        findings += verify_deep(work, history, {facts.location: facts for facts in files.whole}, bad_sidecars)
    findings += verify_kept(work, keys, listed)
    return RevisionReport(
        id=revision,
        folder=keys.folder,
        is_active=revision == record.active,
        newest_version=history.newest_version,
        newest_intact=_newest_intact(history, findings),
        is_head_intact=history.newest_version in history.versions,
        counts=_counts(history, listed, pages),
        findings=tuple(findings),
    )


def _end_problems(history: History, record: TableRecord, revision: str) -> Iterable[VerifyFinding]:
    """Where the catalog contradicts a revision's last version, or tags a missing or expired version."""
    newest, root = history.newest_version, history.newest
    if newest is None:
        yield _missing(history, 0, "the revision has no versions")
    is_closed = record.revisions[revision].state == CLOSED
    if root is not None and root.version == newest:
        if is_closed and root.terminal is None:
            yield _missing(history, newest + 1, "the root that closed the revision is missing")
        if not is_closed and root.terminal is not None:
            yield VerifyFinding(
                kind=FindingKind.INCONSISTENT,
                severity=Severity.NOTE,
                place=history.keys.root(root.version),
                problem="the revision was closed, but the catalog does not say so yet",
                hint="The next process that opens the table writes the entry.",
            )
    for tag, named in record.tags.items():
        if named.revision == revision and (newest is None or named.version > newest):
            yield _missing(history, named.version, f"tag {tag} names a version that does not exist")
        elif named.revision == revision and named.version in history.expired:
            yield _missing(history, named.version, f"tag {tag} names a version that expired")


def _missing(history: History, version: int, problem: str) -> VerifyFinding:
    return VerifyFinding(
        kind=FindingKind.MISSING,
        severity=Severity.LOST,
        place=history.keys.root(version),
        problem=problem,
        versions=(VersionRange(version, version + 1),),
    )


def _newest_intact(history: History, findings: Iterable[VerifyFinding]) -> int | None:
    lost = {
        version for finding in findings if finding.is_loss for span in finding.versions for version in versions_in(span)
    }
    return max(history.versions.keys() - lost, default=None)


def _counts(history: History, listed: Iterable[str], pages: Collection[str]) -> Counts:
    keys = history.keys
    sidecars = {keys.sidecar(facts.location) for facts in history.files.values() if facts.sidecar_bytes}
    named = {
        keys.hint,
        *map(keys.root, range((history.newest_version or 0) + 1)),
        *map(keys.segment, history.refs),
        *map(keys.source_page, pages),
        *(keys.file(location) for location in history.files),
        *sidecars,
    }
    strangers = (key for key in listed if key not in named)
    return Counts(
        versions=len(history.versions),
        segments=len(history.refs),
        pages=len(pages),
        files=len(history.files),
        sidecars=len(sidecars),
        unreferenced=sum(not is_kept(keys, key) for key in strangers),
    )
