"""Verifies that a revision's roots are intact, contiguous, and each derived from its parent."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeVar

from underlay.errors import Damaged, Inconsistent, NotFound, SnapshotExpired, UnderlayError, Unsupported
from underlay.index import deletion_vectors as bitmaps
from underlay.index.entry import FileEntry
from underlay.index.keys import RevisionKeys
from underlay.index.partition_specs import needed_format, specs_of
from underlay.index.root import Root, Sources, Tombstone, decode_root, decode_tombstone
from underlay.maintain.verify.finding import FindingKind, Severity, VerifyFinding, VersionRange
from underlay.maintain.verify.history import History, LiveFile, VersionFacts, facts_of
from underlay.maintain.verify.links import Link, find_backward, find_numbers, find_strangers
from underlay.maintain.verify.runner import VerifyContext
from underlay.schema.record import from_record
from underlay.store.store import Store

T = TypeVar("T")


def verify_roots(work: VerifyContext, keys: RevisionKeys, listed: Collection[str]) -> History:
    """Read every root, in order. The history holds what was found."""
    history = History(keys=keys)
    folder = keys.root(0).rpartition("/")[0]
    roots = {key for key in listed if key.endswith(".root") and key.rpartition("/")[0] == folder}
    numbers = find_numbers(roots, keys.root)
    history.newest_version = numbers[-1] if numbers else None
    walk = _Walk(history)
    for number, found in zip(numbers, work.each(lambda n: _read(work.store, keys, n), numbers), strict=True):
        if isinstance(found, NotFound):
            history.findings.append(_lost(keys, number, "the root is missing", FindingKind.MISSING))
        elif isinstance(found, UnderlayError):
            history.findings.append(_lost(keys, number, str(found), FindingKind.DAMAGED))
        elif isinstance(found, Tombstone):
            walk.pass_over(found)
        else:
            walk.take(found)
    walk.end()
    return history


def _read(store: Store, keys: RevisionKeys, version: int) -> Root | Tombstone | UnderlayError:
    root: Root | Tombstone
    try:
        data = store.get(keys.root(version))[0]
        try:
            root = decode_root(data)
            from_record(root.definition.schema)
        except SnapshotExpired:
            root = decode_tombstone(data) or decode_root(data)
    except (Damaged, NotFound, Unsupported) as error:
        return error
    if root.version != version:
        return Inconsistent("the root has a different version than its key", expected=version, found=root.version)
    return root


_RESTORE = "Restore it from a copy, under the same key."
_MOVE = (
    "If an older copy of the lake was put back under a process that wrote to it, stop all writers, move this object "
    "out of the lake, and write again what the commit brought. Otherwise restore from a copy what is missing."
)


def _lost(keys: RevisionKeys, version: int, problem: str, kind: FindingKind, hint: str = _RESTORE) -> VerifyFinding:
    return VerifyFinding(
        kind=kind,
        severity=Severity.LOST,
        place=keys.root(version),
        problem=problem,
        versions=(VersionRange(version, version + 1),),
        hint=hint,
    )


class _Walk:
    """Takes roots in order and keeps what later checks need; what neighbours share is kept once."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._links: dict[int, Link] = {}
        self._parent: Root | None = None
        self._tail: dict[tuple[str, bytes | None], LiveFile] = {}

    def take(self, root: Root) -> None:
        """Check the next root."""
        history, before = self._history, self._parent
        self._links[root.version] = Link(
            commit_id=root.commit_id, parent_id=root.parent_id, committed_us=root.committed_us
        )
        problems, broken = list(_in_itself(root)), list[str]()
        if before is not None and before.version == root.version - 1 and before.commit_id == root.parent_id:
            problems += _after(before, root)
        for ref in root.segments:
            if history.refs.setdefault(ref.id, ref) != ref:
                problems.append(f"segment {ref.id} is described differently than in earlier versions")
        history.layouts |= {layout.id: layout for layout in root.layouts}
        self._tail = {(file.location, file.deletes): self._live(file, problems, broken) for file in root.tail}
        self._note(root.version, problems, Severity.ANSWERS)
        self._note(root.version, broken, Severity.LOST)
        history.versions[root.version] = self._facts(root)
        self._parent = history.newest = root

    def pass_over(self, tombstone: Tombstone) -> None:
        """Note the next version, which expired."""
        self._links[tombstone.version] = Link(
            commit_id=tombstone.commit_id, parent_id=tombstone.parent_id, committed_us=tombstone.committed_us
        )
        self._history.expired.add(tombstone.version)

    def end(self) -> None:
        """After the last root: report roots of another chain, and tombstones of versions that did not expire."""
        history = self._history
        for version in sorted(history.expired):
            if history.newest is not None and history.newest.retention.has(version):
                problem = "the version is a tombstone, but the newest root says that it did not expire"
                history.findings.append(_lost(history.keys, version, problem, FindingKind.INCONSISTENT))
        for version in sorted(find_strangers(self._links)):
            history.versions.pop(version, None)
            problem = "the root does not follow the one before, or the one after does not follow it"
            history.findings.append(_lost(history.keys, version, problem, FindingKind.INCONSISTENT, _MOVE))
        for version in find_backward(self._links):
            self._note(version, ["the version is not newer than the one before"], Severity.ANSWERS)

    def _note(self, version: int, problems: list[str], severity: Severity) -> None:
        if problems:
            self._history.findings.append(
                VerifyFinding(
                    kind=FindingKind.INCONSISTENT,
                    severity=severity,
                    place=self._history.keys.root(version),
                    problem="; ".join(dict.fromkeys(problems)),
                    versions=(VersionRange(version, version + 1),),
                )
            )

    def _live(self, file: FileEntry, problems: list[str], broken: list[str]) -> LiveFile:
        known = self._tail.get((file.location, file.deletes))
        facts = facts_of(file) if known is None else known.facts
        if self._history.files.setdefault(file.location, facts) != facts:
            problems.append(f"file {file.location} is described differently than in earlier versions")
        if known is not None:
            return known
        broken += delete_problems(file.location, file.deletes, facts.row_count, file.deleted_rows)
        return LiveFile(facts=facts, deletes=file.deletes)

    def _facts(self, root: Root) -> VersionFacts:
        before = self._history.versions.get(root.version - 1)
        tail = {file.location: self._tail[file.location, file.deletes] for file in root.tail}
        names = list(tail)
        return VersionFacts(
            version=root.version,
            row_count=root.row_count,
            file_count=root.file_count,
            data_bytes=root.data_bytes,
            segments=tuple(ref.id for ref in root.segments),
            tail=tail,
            removed=_shared(frozenset(root.removed), before.removed if before else None),
            deletes=_shared(root.deletes, before.deletes if before else None),
            tree=root.sources.tree,
            layouts=_shared(frozenset(layout.id for layout in root.layouts), before.layouts if before else None),
            definition=_shared(root.definition, before.definition if before else None),
            added=frozenset(names[len(names) - root.delta.added_in_tail :]),
            added_segments=root.delta.added_segments,
            gone=frozenset(root.delta.removed),
            newly_deleted=root.delta.deletes,
            restored=root.delta.restored,
        )


def _shared(new: T, old: T | None) -> T:
    return old if old is not None and old == new else new


def delete_problems(location: str, bits: bytes | None, row_count: int, deleted_rows: int | None) -> Iterator[str]:
    """Why a deletion vector does not fit a file with `row_count` rows, `deleted_rows` of which are recorded as
    deleted.
    """
    try:
        if bits is not None:
            bitmaps.check(bits, row_count)
        found = 0 if bits is None else bitmaps.count(bits)
    except Damaged as error:
        yield f"the deletion vector of {location}: {error}"
        return
    if deleted_rows is not None and found != deleted_rows:
        yield f"{location} has {found} deleted rows, but its entry says {deleted_rows}"


def _in_itself(root: Root) -> Iterator[str]:
    names = [file.location for file in root.tail]
    if len(set(names)) != len(names):
        yield "a file is in the tail twice"
    if len(set(root.removed)) != len(root.removed):
        yield "a file is removed twice"
    if root.delta.added_in_tail > len(names):
        yield "the delta says that more files were added than the tail has"
    if not {ref.id for ref in root.segments}.issuperset(root.delta.added_segments):
        yield "the delta names an added segment that the root lacks"
    specs = {ref.spec for ref in root.segments} | {file.spec for file in root.tail}
    if not specs <= specs_of(root.definition).keys():
        yield "files use a partition spec that the table lacks"
    if root.format < needed_format(root.definition):
        yield f"the format is {root.format}, but the definition needs a newer one"
    if root.terminal != root.delta.terminal:
        yield "the end of the revision is not in the delta"
    if any(record.version != root.version for record in root.delta.sources):
        yield "a source of the delta is recorded for another version"


def _after(before: Root, root: Root) -> Iterator[str]:
    """Why a root is not its parent with its delta applied, apart from its files."""
    delta = root.delta
    if before.terminal is not None:
        yield "it follows the root that closed the revision"
    kept = {job: epoch for job, epoch in before.fences.items() if job not in delta.ended_jobs}
    if root.fences != kept | delta.fences or any(root.fences[job] < epoch for job, epoch in kept.items()):
        yield "the epochs of jobs are not the parent's with the delta applied"
    if any(root.epoch_floor < before.fences.get(job, 0) for job in delta.ended_jobs):
        yield "the floor of epochs lies below an epoch of an ended job, which could be given again"
    if root.horizon_us < before.horizon_us or root.retention != (delta.retention or before.retention):
        yield "what expired, and the horizon of sweeps, are not the parent's with the delta applied"
    if delta.restored is not None:
        return
    if root.definition != (delta.definition or before.definition):
        yield "the definition is neither the parent's nor the delta's"
    if not _follows(before.sources, root.sources, {record.uri: record for record in delta.sources}):
        yield "the sources are not the parent's with the delta applied"


def _follows(before: Sources, after: Sources, added: Mapping[str, object]) -> bool:
    """Whether a journal is its predecessor plus the added sources. A journal that went into the tree, which may have
    held all of it already, is checked there.
    """
    if before.tree != after.tree or not after.journal:
        return True
    expected = {record.uri: record for record in before.journal} | dict(added)
    return {record.uri: record for record in after.journal} == expected
