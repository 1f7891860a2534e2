"""Summarises the versions of a revision: just enough to tell which versions need an object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from underlay.cache.same_file import KnownFile
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.keys import RevisionKeys
from underlay.index.root import Definition, PageRef, Root, SegmentRef
from underlay.maintain.verify.finding import VerifyFinding, VersionRange, ranges_of


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFile:
    """What every entry of a file must say, whatever happened to its rows since."""

    location: str
    size_bytes: int
    etag: str | None
    footer_bytes: int
    footer_crc: int
    layout: str
    row_count: int
    sidecar_bytes: int
    sidecar_crc: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFile:
    """A file in one version: its recorded facts, and which of its rows are deleted."""

    facts: RecordedFile
    deletes: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFacts:
    """One version. Values that several versions share are the same objects."""

    version: int
    row_count: int
    file_count: int
    data_bytes: int
    segments: tuple[str, ...]
    tail: Mapping[str, LiveFile]
    removed: frozenset[str]
    deletes: Mapping[str, bytes]
    tree: PageRef | None
    layouts: frozenset[str]
    definition: Definition
    added: frozenset[str]
    """Files that the version added to its tail."""
    added_segments: tuple[str, ...]
    gone: frozenset[str]
    newly_deleted: Mapping[str, bytes]
    restored: int | None


@dataclass(slots=True, kw_only=True)
class History:
    """All readable versions of a revision, and what they reference."""

    keys: RevisionKeys
    versions: dict[int, VersionFacts] = field(default_factory=dict)
    refs: dict[str, SegmentRef] = field(default_factory=dict)
    layouts: dict[str, FileLayout] = field(default_factory=dict)
    files: dict[str, RecordedFile] = field(default_factory=dict)
    contents: dict[str, SegmentContent] = field(default_factory=dict)
    """The content of intact segments."""
    expired: set[int] = field(default_factory=set)
    """Versions whose roots are tombstones."""
    newest: Root | None = None
    newest_version: int | None = None
    findings: list[VerifyFinding] = field(default_factory=list)

    def forget_strangers(self) -> None:
        """Forget segments and files that only roots from outside this chain reference, and files of segments that every
        version with the segment has removed: a sweep deletes those.
        """
        used = {segment for facts in self.versions.values() for segment in facts.segments}
        live = {location for facts in self.versions.values() for location in facts.tail}
        for name, content in self.contents.items():
            removed = {id(facts.removed): facts.removed for facts in self.versions.values() if name in facts.segments}
            live |= content.files.keys() - (frozenset.intersection(*removed.values()) if removed else frozenset())
        self.refs = {name: ref for name, ref in self.refs.items() if name in used}
        self.files = {location: facts for location, facts in self.files.items() if location in live}

    def with_segment(self, segment_id: str) -> tuple[VersionRange, ...]:
        """The versions that reference a segment."""
        return ranges_of(facts.version for facts in self.versions.values() if segment_id in facts.segments)

    def with_file(self, location: str) -> tuple[VersionRange, ...]:
        """The versions that contain a file, as far as segments can be read."""
        holders = {name for name, content in self.contents.items() if location in content.files}
        return ranges_of(
            facts.version
            for facts in self.versions.values()
            if location in facts.tail or (location not in facts.removed and not holders.isdisjoint(facts.segments))
        )

    def with_tail(self, location: str, first: int) -> tuple[VersionRange, ...]:
        """The unbroken range of versions from `first` on that have a file in their tail."""
        end = first
        while end in self.versions and location in self.versions[end].tail:
            end += 1
        return (VersionRange(first, end),)

    def with_trees(self, page_ids: Iterable[str]) -> tuple[VersionRange, ...]:
        """The versions whose source tree has one of these pages as its root."""
        wanted = set(page_ids)
        return ranges_of(
            facts.version for facts in self.versions.values() if facts.tree is not None and facts.tree.id in wanted
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentContent:
    """The files of a segment."""

    files: Mapping[str, LiveFile]
    layouts: frozenset[str]
    row_count: int
    data_bytes: int
    deleted_rows: int


def known_file(file: FileEntry | RecordedFile) -> KnownFile:
    """What identifies a file."""
    return KnownFile(file.size_bytes, file.etag, file.footer_bytes, file.footer_crc)


def facts_of(entry: FileEntry) -> RecordedFile:
    """The part of an entry that never changes."""
    return RecordedFile(
        location=entry.location,
        size_bytes=entry.size_bytes,
        etag=entry.etag,
        footer_bytes=entry.footer_bytes,
        footer_crc=entry.footer_crc,
        layout=entry.layout,
        row_count=int(np.frombuffer(entry.block_rows, "<i8").sum()),
        sidecar_bytes=entry.sidecar_bytes,
        sidecar_crc=entry.sidecar_crc,
    )
