"""Turns versions into rows of the registry. Pure: however versions are split into batches, the rows are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from underlay.errors import Inconsistent, RegistryRefused
from underlay.index.outline import FileFacts, Outline, SegmentFacts
from underlay.index.root import Retention, SourceRecord
from underlay.registry.database.column_types import key_text, plain_text
from underlay.registry.database.database_errors import RESTORE_HINT
from underlay.registry.database.schema import NONE
from underlay.runtime.locks import cached_property
from underlay.runtime.pace import in_turns

Row = dict[str, object]
"""A row of a table, by column names."""
_COUNTS = msgspec.json.Encoder(order="sorted")
_SOURCE_FIELDS = ("uri", "identity", "version", "status", "owner", "row_count", "error")
"""The fields of a source's record that the registry holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Everything:
    """All files and sources of a version."""

    files: tuple[FileFacts, ...]
    sources: tuple[SourceRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionStep:
    """A version, with the content that its root references."""

    outline: Outline
    added: tuple[FileFacts, ...]
    """All files that it added."""
    everything: Everything | None = None
    """Its whole content, if it rolled back to an older version."""


def no_files() -> Mapping[str, FileFacts]:
    """No files: those of a revision without versions."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirrored:
    """What the registry holds about one revision."""

    head: int = NONE
    head_id: str | None = None
    file_count: int = 0
    segments: frozenset[str] = frozenset()
    """The ids of the head's segments."""
    live_files: Callable[[], Mapping[str, FileFacts]] = no_files
    """Returns the head's files by location; called only when a version rolls back to an older one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryDelta:
    """What consecutive versions of one revision change in the registry.

    `versions`, `segments` and `files` are rows to insert, `sources` rows to insert or to replace.
    """

    revision: str
    before: Mirrored
    last: Outline
    """The new head."""
    created_us: int | None
    """When the revision began, if its first version is among these."""
    versions: list[Row] = field(default_factory=list)
    segments: list[Row] = field(default_factory=list)
    ended_segments: dict[str, int] = field(default_factory=dict)
    """Existing rows, by id, with the version that removed the segment."""
    files: list[Row] = field(default_factory=list)
    ended_files: dict[str, int] = field(default_factory=dict)
    """The same for files, by location."""
    sources: list[Row] = field(default_factory=list)
    replaces_sources: bool = False
    """Whether all existing rows of sources are deleted first."""
    retention: Retention | None = None
    """The retained versions, if some expired: rows of the others are deleted."""


def fold(revision: str, before: Mirrored, steps: Sequence[VersionStep]) -> RegistryDelta:
    """What `steps`, at least one, change in a registry that holds `before` about the revision.

    Raises RegistryRefused when the first does not follow what the registry holds, Inconsistent when another does not
    follow its predecessor, or contradicts its own files.
    """
    check_follows(revision, before, steps[0].outline)
    folding = _Folding(revision, before)
    for step in steps:
        folding.take(step)
    return folding.batch(steps)


def check_follows(revision: str, before: Mirrored, outline: Outline) -> None:
    """Raise RegistryRefused unless `outline` comes next after what the registry holds."""
    if (outline.version, outline.parent_id) != (before.head + 1, before.head_id):
        raise RegistryRefused(
            f"version {outline.version} does not follow the version {before.head} that the registry holds",
            place=revision,
            expected=f"version {before.head + 1} after commit {before.head_id}",
            found=f"version {outline.version} after commit {outline.parent_id}",
            hint=f"The registry or the store was restored from a copy. {RESTORE_HINT}",
        )


class _Folding:
    """Builds rows, version by version."""

    def __init__(self, revision: str, before: Mirrored) -> None:
        self._revision, self._before = revision, before
        self._head, self._head_id = before.head, before.head_id
        self._file_count = before.file_count
        self._versions: list[Row] = []
        self._segment_ids: frozenset[str] = before.segments
        self._segments: list[Row] = []
        self._new_segments: dict[str, Row] = {}
        self._ended_segments: dict[str, int] = {}
        self._files: list[Row] = []
        self._new_files: dict[str, Row] = {}
        """New rows of files that no later version removed."""
        self._ended_files: dict[str, int] = {}
        self._sources: dict[str, Row] = {}
        self._replaces_sources = False
        self._retention: Retention | None = None
        self._is_unknown = False
        """Whether the changes of the previous version are unknown because it expired."""

    def take(self, step: VersionStep) -> None:
        """Take the next version."""
        outline = step.outline
        if (outline.version, outline.parent_id) != (self._head + 1, self._head_id):
            raise self._wrong(outline, "it does not follow the version before", self._head_id, outline.parent_id)
        self._is_unknown, is_after_expired = outline.is_tombstone, self._is_unknown
        self._head, self._head_id = outline.version, outline.commit_id
        if outline.is_tombstone:
            return
        self._retention = outline.retention or self._retention
        self._versions.append(_version_row(self._revision, outline))
        self._take_segments(outline)
        if outline.restored is not None or is_after_expired:
            self._take_everything(outline, step.everything)
        else:
            self._remove(outline, outline.removed)
            self._add(outline, step.added)
            self._sources |= self._source_rows(outline.changed_sources)
        if self._file_count != outline.file_count:
            raise self._wrong(
                outline, "its changes add up to a different number of files", outline.file_count, self._file_count
            )

    def batch(self, steps: Sequence[VersionStep]) -> RegistryDelta:
        """The rows for the versions taken."""
        first = steps[0].outline
        return RegistryDelta(
            revision=self._revision,
            before=self._before,
            last=steps[-1].outline,
            created_us=first.committed_us if first.version == 0 else None,
            versions=self._versions,
            segments=self._segments,
            ended_segments=self._ended_segments,
            files=self._files,
            ended_files=self._ended_files,
            sources=list(self._sources.values()),
            replaces_sources=self._replaces_sources,
            retention=self._retention,
        )

    def _take_segments(self, outline: Outline) -> None:
        after = frozenset([segment.id for segment in outline.segments])
        if after == self._segment_ids:
            return
        for gone in self._segment_ids - after:
            row = self._new_segments.pop(gone, None)
            if row is None:
                self._ended_segments[gone] = outline.version
            else:
                row["removed"] = outline.version
        for segment in outline.segments:
            if segment.id not in self._segment_ids:
                self._new_segments[segment.id] = row = _segment_row(self._revision, segment, outline.version)
                self._segments.append(row)
        self._segment_ids = after

    def _take_everything(self, outline: Outline, everything: Everything | None) -> None:
        if everything is None:
            raise self._wrong(outline, "its content was not read", outline.restored, None)
        wanted = {file.location: file for file in map(_as_stored, everything.files)}
        live = self._live
        self._remove(outline, [location for location, file in live.items() if wanted.get(location) != file])
        self._add(outline, [file for location, file in wanted.items() if live.get(location) != file])
        self._sources = self._source_rows(everything.sources)
        self._replaces_sources = True

    def _source_rows(self, records: Iterable[SourceRecord]) -> dict[str, Row]:
        return {
            key_text(record.uri): {
                "revision": self._revision,
                **{name: getattr(record, name) for name in _SOURCE_FIELDS},
            }
            for record in records
        }

    @cached_property
    def _files_before(self) -> Mapping[str, FileFacts]:
        return self._before.live_files()

    @property
    def _live(self) -> dict[str, FileFacts]:
        """The files of the last version taken."""
        old = {name: file for name, file in self._files_before.items() if name not in self._ended_files}
        return old | {name: _facts_of(row) for name, row in self._new_files.items()}

    def _remove(self, outline: Outline, locations: Iterable[str]) -> None:
        for location in map(key_text, locations):
            row = self._new_files.pop(location, None)
            if row is not None:
                row["removed"] = outline.version
            elif location in self._ended_files:
                raise self._wrong(outline, "it removes a file that was removed before", None, location)
            else:
                self._ended_files[location] = outline.version
            self._file_count -= 1

    def _add(self, outline: Outline, files: Sequence[FileFacts]) -> None:
        for some in in_turns(files):
            for file in map(_as_stored, some):
                if file.location in self._new_files:
                    raise self._wrong(outline, "it adds a file that is already there", None, file.location)
                self._new_files[file.location] = row = _file_row(self._revision, file, outline.version)
                self._files.append(row)
                self._file_count += 1

    def _wrong(self, outline: Outline, problem: str, expected: object, found: object) -> Inconsistent:
        return Inconsistent(
            f"version {outline.version} ({outline.commit_id}): {problem}",
            place=self._revision,
            expected=expected,
            found=found,
        )


def _version_row(revision: str, outline: Outline) -> Row:
    return {
        "revision": revision,
        "version": outline.version,
        "commit_id": outline.commit_id,
        "parent_id": outline.parent_id,
        "committed_us": outline.committed_us,
        "operation": outline.operation.value,
        "writer": outline.writer,
        "counts": _COUNTS.encode(outline.counts).decode(),
        "restored": outline.restored,
        "row_count": outline.row_count,
        "file_count": outline.file_count,
        "data_bytes": outline.data_bytes,
    }


def _segment_row(revision: str, segment: SegmentFacts, version: int) -> Row:
    row = msgspec.structs.asdict(segment)
    row["segment"] = row.pop("id")
    return {"revision": revision, **row, "added": version, "removed": None}


def _file_row(revision: str, file: FileFacts, version: int) -> Row:
    return {
        "revision": revision,
        "location": file.location,
        "added": version,
        "removed": None,
        "etag": file.etag,
        "size_bytes": file.size_bytes,
        "row_count": file.row_count,
        "block_count": file.block_count,
    }


def _as_stored(file: FileFacts) -> FileFacts:
    """The file as the registry returns it."""
    location, etag = key_text(file.location), file.etag and plain_text(file.etag)
    is_same = location is file.location and etag is file.etag
    return file if is_same else file._replace(location=location, etag=etag)


def _facts_of(row: Row) -> FileFacts:
    return FileFacts(*(row[name] for name in FileFacts._fields))  # type: ignore[arg-type]  # as `_file_row` put them
