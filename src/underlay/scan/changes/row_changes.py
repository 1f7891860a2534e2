"""Rows that were added and deleted between two versions, version by version, in bounded memory.

A version that only adds or only deletes is read once. For one that does both, rows that were merely rewritten are
dropped: a deleted and an added row with equal values cancel each other, as in a multiset. That takes two reads of the
rows, with 17 bytes for each row kept in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from numpy.typing import NDArray

from underlay.cache.objects import DecodedCache
from underlay.errors import InvalidRequest, VersionNotFound
from underlay.index.entry import FileEntry
from underlay.index.root import Definition, Root
from underlay.runtime.locks import cached_property
from underlay.scan.changes.changed_files import ChangedFiles, SomeFiles, changed_files, row_count
from underlay.scan.changes.row_hash import Hashes, row_hashes
from underlay.scan.query import Query, answer_schema
from underlay.scan.read.file_stores import FileStores
from underlay.schema.arrow_aliases import AnyField
from underlay.schema.record import from_record
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import SegmentLoader, Snapshot

CHANGE, VERSION, COMMITTED_AT = "_change", "_version", "_committed_at"
INSERT, DELETE = "insert", "delete"
_OWN_FIELDS: list[AnyField] = [
    pa.field(CHANGE, pa.string(), nullable=False),
    pa.field(VERSION, pa.int64(), nullable=False),
    pa.field(COMMITTED_AT, pa.timestamp("us", "UTC"), nullable=False),
]
OWN_COLUMNS = pa.schema(_OWN_FIELDS)

Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class RowChanges:
    """The changes of the versions after `begin` up to `end`, with these columns of the table as defined at `end`, or by
    `shape`."""

    revision: Revision
    load_segment: SegmentLoader
    begin: int
    end: Root
    columns: tuple[str, ...]
    stores: FileStores
    cache: DecodedCache | None = None
    shape: Definition | None = None

    def __post_init__(self) -> None:
        twice = sorted(set(self.columns) & set(OWN_COLUMNS.names))
        if twice:
            raise InvalidRequest(
                "the table has a column that changes have too", found=", ".join(twice), hint="Choose other columns."
            )
        if isinstance(self.begin, bool) or not isinstance(self.begin, int):
            raise InvalidRequest("a version must be an integer", found=repr(self.begin))
        if not 0 <= self.begin <= self.end.version:
            raise InvalidRequest(
                "the first version must not be after the last", expected=f"0 to {self.end.version}", found=self.begin
            )

    @property
    def definition(self) -> Definition:
        """The definition at the end, or that of `shape`."""
        return self.shape or self.end.definition

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the answer."""
        chosen = answer_schema(from_record(self.definition.schema), self.columns)
        return pa.schema([*chosen, *OWN_COLUMNS])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, version by version: first those deleted, then those added."""
        for snapshot, files in self._versions():
            keep = self._kept(snapshot, files)
            for word, entries, mask in ((DELETE, files.gone, keep[0]), (INSERT, files.come, keep[1])):
                yield from self._rows(snapshot, word, entries, mask)

    def count(self) -> int:
        """The number of rows; from metadata for versions that only add or only delete."""
        total = 0
        for snapshot, files in self._versions():
            gone, come = self._kept(snapshot, files)
            total += row_count(files.gone) if gone is None else int(gone.sum())
            total += row_count(files.come) if come is None else int(come.sum())
        return total

    def _versions(self) -> Iterator[tuple[Snapshot, ChangedFiles]]:
        before = self._snapshot(self._root(self.begin)) if self.begin < self.end.version else None
        for version in range(self.begin + 1, self.end.version + 1):
            after = self._snapshot(self.end if version == self.end.version else self._root(version))
            if before is not None:
                files = changed_files(before, after)
                if files.gone or files.come:
                    yield self._with_layouts(after, before), files
            before = after

    def _root(self, version: int) -> Root:
        try:
            return self.revision.root(version)
        except VersionNotFound as error:
            error.hint = "What changed there is no longer known. Ask for later versions."
            raise

    def _snapshot(self, root: Root) -> Snapshot:
        return Snapshot(self.revision.store, self.revision.keys, root, self.load_segment)

    def _with_layouts(self, after: Snapshot, before: Snapshot) -> Snapshot:
        """The version with the layouts of the one before, whose files may be gone."""
        layouts = {layout.id: layout for layout in (*before.root.layouts, *after.root.layouts)}
        return self._snapshot(replace(after.root, layouts=tuple(layouts.values())))

    def _kept(self, snapshot: Snapshot, files: ChangedFiles) -> tuple[Mask | None, Mask | None]:
        """Which deleted and added rows have no counterpart on the other side; None for all of them."""
        if not files.gone or not files.come:
            return None, None
        gone, come = (self._hashes(snapshot, entries) for entries in (files.gone, files.come))
        every = np.concatenate([gone, come]).view([("a", np.uint64), ("b", np.uint64)])[:, 0]
        _, numbers = np.unique(every, return_inverse=True)
        kinds = int(numbers.max()) + 1 if len(numbers) else 0
        left, right = numbers[: len(gone)], numbers[len(gone) :]
        common = np.minimum(np.bincount(left, minlength=kinds), np.bincount(right, minlength=kinds))
        return _beyond(left, common), _beyond(right, common)

    def _hashes(self, snapshot: Snapshot, files: tuple[FileEntry, ...]) -> Hashes:
        columns = from_record(self.definition.schema).names
        found = [row_hashes(batch) for batch in self._query(snapshot, files, columns).batches()]
        return np.concatenate([np.zeros((0, 2), np.uint64), *found])

    def _query(self, snapshot: Snapshot, files: tuple[FileEntry, ...], columns: tuple[str, ...]) -> Query:
        some = SomeFiles(snapshot, self.definition, files)
        return Query(snapshot=some, columns=columns, stores=self.stores, cache=self.cache)

    def _rows(
        self, snapshot: Snapshot, word: str, files: tuple[FileEntry, ...], keep: Mask | None
    ) -> Iterator[pa.RecordBatch]:
        if not files or (keep is not None and not keep.any()):
            return
        at = 0
        for batch in self._query(snapshot, files, self.columns).batches():
            count = batch.num_rows
            if keep is not None:
                chosen = keep[at : at + count]
                at += count
                batch = batch.filter(pa.array(chosen)) if batch.num_columns else batch
                count = int(chosen.sum())
            if count:
                yield self._marked(batch, count, word, snapshot.root)

    def _marked(self, batch: pa.RecordBatch, count: int, word: str, root: Root) -> pa.RecordBatch:
        own = (
            pa.repeat(pa.scalar(word), count),
            pa.repeat(pa.scalar(root.version, pa.int64()), count),
            pa.array(np.full(count, root.committed_us, "M8[us]"), OWN_COLUMNS.field(COMMITTED_AT).type),
        )
        return pa.RecordBatch.from_arrays([*batch.columns, *own], schema=self.schema)


def _beyond(numbers: NDArray[np.int64], common: NDArray[np.int64]) -> Mask:
    """Which rows remain after cancelling the first `common` of each kind."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    starts = np.searchsorted(ordered, ordered)
    keep = np.zeros(len(numbers), np.bool_)
    keep[order] = np.arange(len(numbers)) - starts >= common[ordered]
    return keep
