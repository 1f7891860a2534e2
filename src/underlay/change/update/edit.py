"""The core of every verb that changes rows: deletes rows by position and adds rows, as one transaction.

Rows are deleted by deletion bits. A block that loses more than half of its rows is rewritten: its other rows are
deleted too, and written again among the new ones. A file that has no rows left is removed. Only positions are held in
memory; rows stream from files to files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import msgspec
import numpy as np
import pyarrow as pa

from underlay.cache.objects import DecodedCache
from underlay.change.files.rows import runs_of
from underlay.change.rows.append import add_rows
from underlay.change.rows.replace_all import replace_all
from underlay.change.rows.staged import Staged, add_staged
from underlay.change.update.result import Changed
from underlay.index import deletion_vectors as bitmaps
from underlay.index.entry import FileEntry
from underlay.index.operation import Operation
from underlay.index.state import count_rows
from underlay.plan.by_part import PartChoice
from underlay.plan.part import BoolArray, Numbers
from underlay.scan.positions import MatchedRows, Positions
from underlay.scan.query import Query
from underlay.scan.read.file_stores import FileStores
from underlay.scan.slabs import Slab
from underlay.schema.cast.conform import conform
from underlay.schema.convert.arrow import to_arrow
from underlay.table.commit.conflicts import ReadSet
from underlay.table.commit.transaction import Transaction
from underlay.table.commit_change import commit_change
from underlay.table.open_table import Head, OpenTable
from underlay.table.versions.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAccess:
    """What a verb needs to read the files of a table. Without a `cache` no bloom filter is used."""

    stores: FileStores
    cache: DecodedCache | None = None


WriteAgain = Callable[[Query, Iterator[Slab], int], Sequence[Staged] | None]
"""Writes the rows of a query's slabs, about the given number, as files elsewhere; returns None to leave them to this
process."""


class RowEdit:
    """Collects deleted and added rows for one transaction, with statistics of what was done. For one thread."""

    def __init__(self, transaction: Transaction, files: FileAccess, *, is_dry: bool = False) -> None:
        self.transaction = transaction
        self.files = files
        self.is_dry = is_dry
        self.done = Changed(version=transaction.base.version, blocks_total=_block_count(transaction.snapshot))
        self._gone: dict[str, bytes] = {}
        self._is_emptied = False
        self._came = 0

    @property
    def snapshot(self) -> Snapshot:
        """The version being changed."""
        return self.transaction.snapshot

    def read(self, found: MatchedRows) -> None:
        """Count what was read to find rows."""
        self.count_read(blocks=found.block_count, fetched=found.fetch_bytes)

    def count_read(self, *, blocks: int = 0, fetched: int = 0) -> None:
        """Count bytes, and blocks that were not read before."""
        done = self.done
        self.done = replace(done, blocks_read=done.blocks_read + blocks, bytes_read=done.bytes_read + fetched)

    def remove(self, location: str, positions: Positions | bytes) -> None:
        """Delete rows that are not deleted yet, by their positions in a file or a packed bitmap of them."""
        if not len(positions):
            return
        bits = positions if isinstance(positions, bytes) else bitmaps.pack(positions)
        known = self._gone.get(location)
        self._gone[location] = bits if known is None else bitmaps.union(known, bits)

    def remove_all(self) -> int:
        """Delete all rows, and return their number."""
        self._is_emptied = True
        return self.transaction.base.row_count

    def finish(
        self,
        rows: Iterable[pa.Table] = (),
        *,
        reads: ReadSet,
        matched: int | None = None,
        updated: int = 0,
        staged: Sequence[Staged] = (),
        write_again: WriteAgain | None = None,
    ) -> None:
        """Put everything into the transaction: the collected changes, and new rows.

        `staged` has further new rows, in files. `write_again` may write the remaining rows of rewritten blocks;
        otherwise this process does.

        `matched` defaults to the number of deleted rows. Of the new rows, `updated` replace a deleted one and the
        others count as inserted; the remaining deleted rows count as deleted. `reads` is what the choice of rows
        depends on. Raises SchemaMismatch when a row does not fit the table.
        """
        transaction = self.transaction
        kept: dict[str, tuple[Numbers, int]] = {}
        if self._is_emptied:
            gone = transaction.base.row_count
            replace_all(transaction)
        else:
            gone = sum(map(bitmaps.count, self._gone.values()))
            kept = self._take_out()
        written = self._write_files(rows, kept, staged, write_again)
        transaction.rely_on(reads)
        self.done = replace(
            self.done,
            rows_matched=gone if matched is None else matched,
            rows_inserted=self._came - updated,
            rows_updated=updated,
            rows_deleted=gone - updated,
            blocks_rewritten=sum(len(blocks) for blocks, _ in kept.values()),
            bytes_written=written,
        )
        again = sum(count for _, count in kept.values())
        counts = {
            "rows_matched": self.done.rows_matched,
            "rows_inserted": self.done.rows_inserted,
            "rows_updated": updated,
            "rows_rewritten": again,
        }
        for name, number in counts.items():
            if number:
                transaction.count(name, number)
        if transaction.adds_files:  # deletions of a commit that only deletes are counted when it is applied to the head
            transaction.count("rows_deleted", self.done.rows_deleted)

    def _take_out(self) -> dict[str, tuple[Numbers, int]]:
        """Set bits and remove files; returns the blocks to rewrite, by file, and how many of their rows remain."""
        kept: dict[str, tuple[Numbers, int]] = {}
        entries = self.snapshot.find_files(self._gone)
        for location, gone in self._gone.items():
            entry = entries[location]
            first, live, going = _block_counts(entry, gone)
            blocks = np.flatnonzero((going < live) & (2 * going > live))
            if len(blocks):
                kept[location] = blocks, int((live - going)[blocks].sum())
                going[blocks] = live[blocks]
            if (going == live).all():
                self.transaction.remove_file(location)
            elif len(blocks):
                whole = [np.arange(first[block], first[block + 1]) for block in blocks.tolist()]
                bits = bitmaps.union(gone, bitmaps.pack(np.concatenate(whole)))
                self.transaction.delete_rows(location, bitmaps.difference(bits, entry.deletes))
            else:
                self.transaction.delete_rows(location, gone)
        return kept

    def _write_files(
        self,
        rows: Iterable[pa.Table],
        kept: dict[str, tuple[Numbers, int]],
        staged: Sequence[Staged],
        write_again: WriteAgain | None,
    ) -> int:
        """Write new and remaining rows, and add staged files; returns the bytes of new files."""
        self._came += sum(count_rows(entry) for one in staged for entry in one.entries)
        again: Sequence[Staged] | None = None
        if kept and write_again is not None:
            query, slabs = self._kept_slabs(kept)
            again = write_again(query, slabs, sum(count for _, count in kept.values()))
        every = [*staged, *(again or ())]
        if every:
            add_staged(self.transaction, every)
        written = self._write(rows, kept if again is None else {})
        return written + sum(entry.size_bytes + entry.sidecar_bytes for one in every for entry in one.entries)

    def _write(self, rows: Iterable[pa.Table], kept: dict[str, tuple[Numbers, int]]) -> int:
        """Write the new rows and the remaining rows of rewritten blocks; returns the bytes of new files."""
        schema = to_arrow(self.snapshot.schema)
        stay = self._staying(kept) if kept else iter(())
        batches = chain(self._coming(rows), (_typed(batch, schema) for batch in stay))
        first = next(batches, None)
        if first is None:
            return 0
        reader = pa.RecordBatchReader.from_batches(schema, chain((first,), batches))
        return add_rows(self.transaction, lambda: runs_of(reader), is_dry=self.is_dry)

    def _coming(self, rows: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        for run in rows:
            fitting = conform(run, self.snapshot.schema, first_row=self._came)
            self._came += fitting.num_rows
            yield from fitting.to_batches()

    def _staying(self, kept: dict[str, tuple[Numbers, int]]) -> Iterator[pa.RecordBatch]:
        query, slabs = self._kept_slabs(kept)
        return query.batches(slabs)

    def _kept_slabs(self, kept: dict[str, tuple[Numbers, int]]) -> tuple[Query, Iterator[Slab]]:
        """The blocks to rewrite, with all their columns and without the deleted rows."""
        snapshot = self.snapshot
        query = Query(
            snapshot=snapshot, columns=snapshot.schema.names, stores=self.files.stores, cache=self.files.cache
        )
        chosen = choose_blocks(snapshot, {location: blocks for location, (blocks, _) in kept.items()})
        return query, map(self._without_gone, query.slabs(query.plan.narrowed(chosen)))

    def _without_gone(self, slab: Slab) -> Slab:
        self.count_read(fetched=slab.fetch_bytes)
        return msgspec.structs.replace(slab, deletes=bitmaps.union(slab.deletes, self._gone[slab.location]))


def commit_edit(
    table: OpenTable,
    files: FileAccess,
    operation: Operation,
    prepare: Callable[[RowEdit], object],
    *,
    token: str | None = None,
    base: Head | None = None,
    can_redo: bool = True,
    dry_run: bool = False,
) -> Changed:
    """Commit what `prepare` collects and finishes, as `commit_change` does; `dry_run` only tells what it would do."""
    edits: list[RowEdit] = []

    def edit(transaction: Transaction) -> None:
        edits.append(RowEdit(transaction, files, is_dry=dry_run))
        prepare(edits[-1])

    if dry_run:
        edit(table.begin(base or table.head(), operation))
        return edits[-1].done
    done = commit_change(table, operation, edit, token=token, base=base, can_redo=can_redo)
    if done.is_repeat:
        return Changed(version=done.version, is_repeat=True)
    # Another commit may have deleted some of the same rows: the root has the number that this one deleted.
    deleted = done.head.root.counts.get("rows_deleted", 0) if done.is_new else 0
    return replace(edits[-1].done, version=done.version, rows_deleted=deleted)


def choose_blocks(snapshot: Snapshot, blocks: Mapping[str, Numbers]) -> Callable[[PartChoice], BoolArray]:
    """Narrows a plan of the snapshot to some blocks, given by file and number."""

    def chosen(choice: PartChoice) -> BoolArray:
        segment = choice.part.segment
        rows = snapshot.rows_at(segment, blocks.keys())
        wanted = [segment.block_begin[row] + blocks[location] for location, row in rows.items()]
        return np.isin(choice.blocks, np.concatenate(wanted)) if wanted else np.zeros(len(choice.blocks), np.bool_)

    return chosen


def _block_counts(file: FileEntry, gone: bytes) -> tuple[Numbers, Numbers, Numbers]:
    """The first row of each block and the end, the number of its undeleted rows, and how many of them are deleted
    now."""
    first = np.concatenate([[0], np.cumsum(np.frombuffer(file.block_rows, "<i8"))])
    live = np.diff(first)
    if file.deletes is not None:
        live -= bitmaps.counts_in_blocks(file.deletes, first[:-1])
    return first, live, bitmaps.counts_in_blocks(gone, first[:-1])


def _block_count(snapshot: Snapshot) -> int:
    """The number of blocks in the snapshot's files."""
    root = snapshot.root
    count = sum(ref.block_count for ref in root.segments) + sum(len(file.block_rows) // 8 for file in root.tail)
    for segment in snapshot.segments if root.removed else ():
        rows = list(snapshot.rows_at(segment, root.removed).values())
        count -= int(segment.files.block_counts[rows].sum())
    return count


def _typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the metadata of the table's fields."""
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
