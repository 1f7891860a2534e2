"""Verifies that each version's files are its parent's files with its delta applied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from underlay.errors import Damaged
from underlay.index import deletion_vectors as bitmaps
from underlay.maintain.verify.finding import FindingKind, Severity, VerifyFinding, VersionRange
from underlay.maintain.verify.history import History, LiveFile, VersionFacts
from underlay.maintain.verify.roots import delete_problems

Live = Mapping[str, LiveFile]
"""Files by location."""


def verify_state(history: History) -> Iterator[VerifyFinding]:
    """Check versions in order, except those whose segments cannot be read, and comparisons with them."""
    checker = _States(history)
    for facts in history.versions.values():
        if any(segment not in history.contents for segment in facts.segments):
            continue
        for severity, problems in checker.problems(facts).items():
            if problems:
                yield VerifyFinding(
                    kind=FindingKind.INCONSISTENT,
                    severity=severity,
                    place=history.keys.root(facts.version),
                    problem="; ".join(problems),
                    versions=(VersionRange(facts.version, facts.version + 1),),
                )


class _States:
    def __init__(self, history: History) -> None:
        self._history = history
        self._twice: dict[tuple[str, ...], frozenset[str]] = {}
        self._checked: set[tuple[str, bytes]] = set()

    def problems(self, facts: VersionFacts) -> dict[Severity, list[str]]:
        """What is wrong with the files of a version, by severity: unreadable, or only inconsistent."""
        unknown = [name for name in (*facts.removed, *facts.deletes) if self._stored(facts, name) is None]
        if unknown:
            return {Severity.ANSWERS: [f"{unknown[0]} was changed but is in no segment"]}
        broken = [problem for name, bits in facts.deletes.items() for problem in self._overlay(facts, name, bits)]
        if broken:
            return {Severity.LOST: broken}
        try:
            wrong = [*self._doubles(facts), *self._totals(facts), *self._layouts(facts), *self._fold(facts)]
        except Damaged:
            return {}  # a bad deletion vector of the tail or of a segment, which is reported there
        return {Severity.ANSWERS: wrong}

    def _stored(self, facts: VersionFacts, location: str) -> LiveFile | None:
        contents = (self._history.contents[segment].files for segment in facts.segments)
        return next((files[location] for files in contents if location in files), None)

    def _overlay(self, facts: VersionFacts, location: str, bits: bytes) -> Iterator[str]:
        stored = self._stored(facts, location)
        if stored is None or (location, bits) in self._checked:
            return
        self._checked.add((location, bits))
        problems = list(delete_problems(location, bits, stored.facts.row_count, None))
        yield from problems
        if not problems and stored.deletes is not None and bitmaps.union(stored.deletes, bits) != bits:
            yield f"deleted rows of {location} are visible again"

    def _doubles(self, facts: VersionFacts) -> Iterator[str]:
        if facts.segments not in self._twice:
            contents = [self._history.contents[segment].files for segment in facts.segments]
            counts = Counter(name for files in contents for name in files) if len(contents) > 1 else {}
            self._twice[facts.segments] = frozenset(name for name, count in counts.items() if count > 1)
        twice = set(self._twice[facts.segments] - facts.removed)
        for segment in facts.segments:
            twice |= (facts.tail.keys() & self._history.contents[segment].files.keys()) - facts.removed
        if twice:
            yield f"{min(twice)} is in it twice"

    def _totals(self, facts: VersionFacts) -> Iterator[str]:
        contents = [self._history.contents[segment] for segment in facts.segments]
        removed = [file for name in facts.removed if (file := self._stored(facts, name)) is not None]
        changed = [(bits, self._stored(facts, name)) for name, bits in facts.deletes.items()]
        rows = sum(content.row_count - content.deleted_rows for content in contents)
        rows += sum(map(_live_rows, facts.tail.values())) - sum(map(_live_rows, removed))
        rows -= sum(bitmaps.count(bits) - _deleted(file) for bits, file in changed if file is not None)
        files = sum(len(content.files) for content in contents) + len(facts.tail) - len(removed)
        size = sum(content.data_bytes for content in contents)
        size += sum(file.facts.size_bytes for file in facts.tail.values()) - sum(f.facts.size_bytes for f in removed)
        for name, found in (("row_count", rows), ("file_count", files), ("data_bytes", size)):
            if getattr(facts, name) != found:
                yield f"its {name} is {found}, but the root says {getattr(facts, name)}"

    def _layouts(self, facts: VersionFacts) -> Iterator[str]:
        needed = {file.facts.layout for file in facts.tail.values()}
        needed = needed.union(*(self._history.contents[segment].layouts for segment in facts.segments))
        if not needed <= facts.layouts:
            yield f"layout {min(needed - facts.layouts)} of a file is not in the root"

    def _fold(self, facts: VersionFacts) -> Iterator[str]:
        """Compare the files with those of the version before: only files that are stored differently are looked at."""
        if facts.restored is not None:
            restored = self._history.versions.get(facts.restored)
            if restored is not None and _files_of(restored) != _files_of(facts):
                yield f"its files are not those of version {facts.restored}, which it restored"
            return
        before = self._history.versions.get(facts.version - 1)
        if before is None or any(segment not in self._history.contents for segment in before.segments):
            return
        old, new = self._moved(before, facts), self._moved(facts, before)
        added = facts.added.union(*(self._history.contents[segment].files for segment in facts.added_segments))
        if new.keys() - old.keys() != added or old.keys() - new.keys() != facts.gone:
            yield "its files are not the parent's with the delta applied"
        elif any(
            new[name].deletes != _after(file, facts.newly_deleted.get(name))
            for name, file in old.items()
            if name in new
        ):
            yield "its deleted rows are not the parent's with the delta applied"

    def _moved(self, facts: VersionFacts, other: VersionFacts) -> dict[str, LiveFile]:
        """The files of a version that the other one lacks, or stores elsewhere."""
        names = set(facts.tail)
        for segment in set(facts.segments).difference(other.segments):
            names |= self._history.contents[segment].files.keys()
        names |= facts.removed ^ other.removed
        names |= {name for name, _ in facts.deletes.items() ^ other.deletes.items()}
        names |= other.tail.keys() | facts.newly_deleted.keys() | other.newly_deleted.keys()
        for segment in set(other.segments).difference(facts.segments):
            names |= self._history.contents[segment].files.keys()
        found = {name: self._live(facts, name) for name in names}
        return {name: file for name, file in found.items() if file is not None}

    def _live(self, facts: VersionFacts, location: str) -> LiveFile | None:
        if location in facts.tail:
            return facts.tail[location]
        stored = None if location in facts.removed else self._stored(facts, location)
        bits = facts.deletes.get(location)
        return stored if stored is None or bits is None else LiveFile(facts=stored.facts, deletes=bits)


def _files_of(facts: VersionFacts) -> tuple[object, ...]:
    return facts.segments, dict(facts.tail), facts.removed, dict(facts.deletes)


def _deleted(file: LiveFile) -> int:
    return 0 if file.deletes is None else bitmaps.count(file.deletes)


def _live_rows(file: LiveFile) -> int:
    return file.facts.row_count - _deleted(file)


def _after(file: LiveFile, bits: bytes | None) -> bytes | None:
    if bits is None:
        return file.deletes
    try:
        return bitmaps.union(file.deletes, bits)
    except Damaged:
        return None
