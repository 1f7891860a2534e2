"""Chooses which files to compact, and with which others, from metadata alone.

It chooses files with deleted rows, files below half of the target size, and files whose blocks are mostly under-full.
Files of one partition are joined up to the target size. A file that would merely be copied is left alone, so that
compacting a second time does nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from underlay.change.files.settings import write_options
from underlay.index import deletion_vectors as bitmaps
from underlay.index.entry import FileEntry
from underlay.index.intake.spliced import current_entries, kind_of
from underlay.index.keys import is_own
from underlay.index.root import Definition
from underlay.plan.part import BoolArray, Numbers, Part
from underlay.plan.plan import BlockPlan
from underlay.prune import TRUE, Predicate
from underlay.runtime.locks import cached_property
from underlay.scan.plan_snapshot import plan_snapshot
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar
from underlay.table.care_settings import read_settings
from underlay.table.versions.snapshot import Snapshot

TARGET_FILE_BYTES = 128 << 20
MOST_BLOCKS = 256
"""The most blocks of a file that a compaction writes."""
_HALF = 2
_MOSTLY = 8
"""A file's blocks are mostly under-full if its rows would fit into an eighth of them."""
_LEAST_ROW_BYTES = 8


class Reason(StrEnum):
    """Why a file is compacted."""

    SMALL = "small file"
    DEAD = "deleted rows"
    UNDER_FULL = "under-full blocks"
    ORDER = "order"
    REGISTERED = "registered"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactTargets:
    """The target sizes of files and blocks."""

    file_bytes: int
    block_rows: int
    block_bytes: int

    @staticmethod
    def of(definition: Definition) -> CompactTargets:
        """What the properties of a table say."""
        options = write_options(definition)
        wanted = read_settings(definition.properties).target_file_bytes
        return CompactTargets(
            file_bytes=min(TARGET_FILE_BYTES, options.file_bytes) if wanted is None else wanted,
            block_rows=options.block_rows,
            block_bytes=options.block_bytes,
        )


@dataclass(frozen=True, kw_only=True)
class ChosenFile:
    """A file to compact, and why."""

    entry: FileEntry
    reason: Reason
    row_bytes: int
    """A lower bound of a row's size in memory."""

    @cached_property
    def rows(self) -> Numbers:
        """Rows of each block, deleted ones included."""
        return np.frombuffer(self.entry.block_rows, "<i8")

    @cached_property
    def live(self) -> Numbers:
        """Rows of each block that are not deleted."""
        if self.entry.deletes is None:
            return self.rows
        first = np.concatenate([[0], np.cumsum(self.rows)[:-1]]).astype(np.int64)
        return self.rows - bitmaps.counts_in_blocks(self.entry.deletes, first)

    @cached_property
    def stored(self) -> Numbers:
        """Bytes of each block, counting only columns that the table still has."""
        sizes = [np.frombuffer(column.sizes, "<i8") for column in self.entry.columns if column.sizes]
        found: Numbers = np.sum(sizes, axis=0, dtype=np.int64) if sizes else np.zeros(len(self.rows), np.int64)
        return found

    def under_full(self, targets: CompactTargets) -> BoolArray:
        """Blocks that are less than half full in rows, and in bytes by a lower bound of their size."""
        size = np.maximum(self.stored, self.live * self.row_bytes)
        found: BoolArray = (self.live * _HALF < targets.block_rows) & (size * _HALF < targets.block_bytes)
        return found

    @property
    def live_bytes(self) -> int:
        """Bytes of the file, less the share of deleted rows."""
        return int(self.entry.size_bytes * self.live.sum() / max(int(self.rows.sum()), 1))


@dataclass(frozen=True, kw_only=True)
class CompactGroup:
    """Files to join into one or a few; for each, the blocks to copy and the blocks to encode again.

    Blocks in neither list have no row left.
    """

    files: tuple[ChosenFile, ...]
    copied: tuple[Numbers, ...]
    encoded: tuple[Numbers, ...]

    @property
    def locations(self) -> list[str]:
        """The files."""
        return [file.entry.location for file in self.files]

    def without(self, locations: Container[str]) -> CompactGroup:
        """The group without these files."""
        kept = [number for number, name in enumerate(self.locations) if name not in locations]
        return CompactGroup(
            files=tuple(self.files[number] for number in kept),
            copied=tuple(self.copied[number] for number in kept),
            encoded=tuple(self.encoded[number] for number in kept),
        )

    @property
    def copied_bytes(self) -> int:
        """About how many bytes are copied."""
        return sum(int(file.stored[blocks].sum()) for file, blocks in zip(self.files, self.copied, strict=True))

    @property
    def encoded_bytes(self) -> int:
        """About how many bytes are decoded and encoded again."""
        return sum(int(file.stored[blocks].sum()) for file, blocks in zip(self.files, self.encoded, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What is to be done in a version."""

    groups: tuple[CompactGroup, ...] = field(default=())

    @property
    def file_count(self) -> int:
        """Files that are compacted."""
        return sum(len(group.files) for group in self.groups)


def choose_groups(snapshot: Snapshot, targets: CompactTargets, predicate: Predicate = TRUE) -> Chosen:
    """The files worth compacting, among those that may hold a matching row."""
    definition = snapshot.definition
    groups: list[CompactGroup] = []
    for (spec, _), files in by_partition(_candidates(snapshot, targets, predicate)).items():
        for some in _bins(files, targets):
            group = _divided(some, targets, is_current=spec == definition.spec)
            if _is_worth_it(group, is_current=spec == definition.spec):
                groups.append(group)
    return Chosen(groups=tuple(groups))


def all_files(snapshot: Snapshot, predicate: Predicate, reason: Reason, *, registered: bool) -> Iterator[ChosenFile]:
    """All of our own files, or all registered ones, that may hold a matching row."""
    row_bytes = least_row_bytes(snapshot.schema)
    for part, rows in _rows(snapshot, predicate):
        names = part.segment.locations.take(rows).to_pylist()
        chosen = [row for row, name in zip(rows.tolist(), names, strict=True) if is_own(str(name)) is not registered]
        yield from (_chosen(entry, reason, row_bytes) for entry in _entries(snapshot, part, chosen))


def by_partition(files: Iterator[ChosenFile]) -> dict[tuple[int, tuple[bytes | None, ...]], list[ChosenFile]]:
    """The files by spec and partition."""
    found: dict[tuple[int, tuple[bytes | None, ...]], list[ChosenFile]] = {}
    for file in files:
        found.setdefault((file.entry.spec, file.entry.partition), []).append(file)
    return found


def least_row_bytes(schema: TableSchema) -> int:
    """About how many bytes a row takes in memory at least."""
    return sum(_LEAST_ROW_BYTES for leaf in schema.leaves if isinstance(leaf.type, Scalar))


def whole(files: Sequence[ChosenFile], *, is_encoded: bool) -> CompactGroup:
    """A group of these files with all their live blocks copied, or all encoded again."""
    none = np.zeros(0, np.int64)
    blocks = [np.flatnonzero(file.live) for file in files]
    return CompactGroup(
        files=tuple(files),
        copied=tuple(none if is_encoded else some for some in blocks),
        encoded=tuple(some if is_encoded else none for some in blocks),
    )


def _candidates(snapshot: Snapshot, targets: CompactTargets, predicate: Predicate) -> Iterator[ChosenFile]:
    row_bytes = least_row_bytes(snapshot.schema)
    for part, rows in _rows(snapshot, predicate):
        files, segment = part.segment.files, part.segment
        deleted = files.deleted_rows.copy()
        deleted[list(part.deletes)] = 1
        is_small = files.size_bytes * _HALF < targets.file_bytes
        full_blocks = -(-segment.file_rows // targets.block_rows)
        is_thin = (files.block_counts > _MOSTLY * np.maximum(full_blocks, 1)) & (
            files.size_bytes * _MOSTLY < files.block_counts * targets.block_bytes
        )
        is_chosen = (deleted > 0) | is_small | is_thin
        chosen = rows[is_chosen[rows]]
        for entry in _entries(snapshot, part, chosen.tolist()):
            if is_own(entry.location):
                yield _chosen(entry, _reason(entry, targets), row_bytes)


def _reason(entry: FileEntry, targets: CompactTargets) -> Reason:
    if entry.deletes is not None:
        return Reason.DEAD
    return Reason.SMALL if entry.size_bytes * _HALF < targets.file_bytes else Reason.UNDER_FULL


def _chosen(entry: FileEntry, reason: Reason, row_bytes: int) -> ChosenFile:
    return ChosenFile(entry=entry, reason=reason, row_bytes=row_bytes)


def _rows(snapshot: Snapshot, predicate: Predicate) -> Iterator[tuple[Part, Numbers]]:
    """The files that may hold a matching row, by their place in each part; all files without a condition."""
    if predicate == TRUE:
        for part in snapshot.parts():
            gone = part.is_removed
            count = part.segment.file_count
            yield part, np.arange(count) if gone is None else np.flatnonzero(~gone)
        return
    plan: BlockPlan = plan_snapshot(snapshot, predicate, ())
    for choice in plan.choices:
        yield choice.part, np.unique(choice.files)


def _entries(snapshot: Snapshot, part: Part, rows: Sequence[int]) -> Iterator[FileEntry]:
    yield from map(snapshot.current, current_entries(part.segment, rows, snapshot.schema))


def _bins(files: Sequence[ChosenFile], targets: CompactTargets) -> Iterator[list[ChosenFile]]:
    """Neighbouring files, joined up to the target; a file that is as large already stays alone."""
    held: list[ChosenFile] = []
    size = blocks = 0
    for file in files:
        here, count = file.live_bytes, _blocks_after(file, targets)
        if held and (size + here > targets.file_bytes or blocks + count > MOST_BLOCKS):
            yield held
            held, size, blocks = [], 0, 0
        held.append(file)
        size, blocks = size + here, blocks + count
    if held:
        yield held


def _blocks_after(file: ChosenFile, targets: CompactTargets) -> int:
    thin = file.under_full(targets)
    return int((~thin & (file.live > 0)).sum()) + int(file.live[thin].sum()) // targets.block_rows


def _divided(files: Sequence[ChosenFile], targets: CompactTargets, *, is_current: bool) -> CompactGroup:
    """Copies blocks that are whole and full, and encodes the rest again. A single under-full block is copied too: there
    is no other to join it with.
    """
    if not is_current:  # its rows may belong to several partitions now
        return whole(files, is_encoded=True)
    partial = [(file.live < file.rows) & (file.live > 0) for file in files]
    thin = [file.under_full(targets) & (file.live > 0) for file in files]
    again = [dead | under for dead, under in zip(partial, thin, strict=True)]
    if sum(int(one.sum()) for one in again) == 1 and not any(one.any() for one in partial):
        again = partial
    return CompactGroup(
        files=tuple(files),
        copied=tuple(np.flatnonzero((file.live > 0) & ~one) for file, one in zip(files, again, strict=True)),
        encoded=tuple(np.flatnonzero(one) for one in again),
    )


def _is_worth_it(group: CompactGroup, *, is_current: bool) -> bool:
    if any(file.entry.deletes is not None for file in group.files):
        return True
    if not is_current:
        return len(group.files) > 1
    kinds = {kind_of(file.entry) for file, blocks in zip(group.files, group.copied, strict=True) if len(blocks)}
    encoded = sum(map(len, group.encoded))
    if len(group.files) == 1:
        return encoded > 1 and group.files[0].reason is Reason.UNDER_FULL
    return len(kinds) + (encoded > 0 and not kinds) < len(group.files)
