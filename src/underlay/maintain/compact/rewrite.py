"""Rewrites one group: copies its whole blocks, encodes the rows of the others again, and puts the new files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from underlay.change.files.rows import runs_of
from underlay.change.files.writer import FileWriter, next_block
from underlay.change.update.edit import FileAccess, choose_blocks
from underlay.errors import Damaged, InvalidRequest, NotFound, SchemaMismatch, Unsupported
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.root import Definition
from underlay.maintain.compact.choose import MOST_BLOCKS, CompactGroup, CompactTargets, whole
from underlay.maintain.compact.external_sort import sorted_runs
from underlay.maintain.compact.order import SAMPLE_ROWS, OrderOf
from underlay.maintain.compact.outputs import OpenFile, Outputs, StoredFile, open_files, open_new
from underlay.plan.part import Numbers
from underlay.scan.query import Query
from underlay.schema.convert.arrow import to_arrow
from underlay.table.versions.snapshot import Snapshot

_SAMPLE_BLOCKS = 64


_UNREADABLE = (Damaged, NotFound, Unsupported)


class DoneGroup(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Files that were compacted, as they were then, and the files that can replace them.

    The new files are in the store; no version references them yet.
    """

    failed: dict[str, str] = {}
    """Files of the group that cannot be read, with the reason. They are left as they are."""

    inputs: tuple[FileEntry, ...]
    outputs: tuple[FileEntry, ...]
    layouts: tuple[FileLayout, ...]
    copied_bytes: int
    encoded_bytes: int
    copied_blocks: int
    encoded_blocks: int


class FailedGroup(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A group that is left as it is: the files that cannot be read, with the reason."""

    failed: dict[str, str]


@dataclass(kw_only=True)
class Rewriter:
    """Rewrites groups of one version, one after the other."""

    snapshot: Snapshot
    files: FileAccess
    targets: CompactTargets
    check_source: Callable[[OpenFile], object] | None = None
    """Raises Unsupported for a file whose blocks must not be copied."""
    _count: int = field(init=False)

    def __post_init__(self) -> None:
        self._count = next_block(self.snapshot.root)

    @property
    def definition(self) -> Definition:
        """How rows are encoded: by the table's properties, in files of the target size. Its checks are left out: they
        held when the rows were added.
        """
        known = self.snapshot.definition
        properties = {**known.properties, "file_bytes": str(self.targets.file_bytes)}
        return replace(known, checks={}, properties=properties)

    def run(self, group: CompactGroup) -> DoneGroup:
        """Rewrite a group. If a block cannot be copied, for example because a page index is unreadable, all are encoded
        again.

        Raises Damaged, NotFound, Unavailable, Unsupported: what a reader of the files would meet.
        """
        try:
            return self._run(group)
        except (Damaged, InvalidRequest, SchemaMismatch, Unsupported):
            if not any(map(len, group.copied)):
                raise
            return self._run(whole(group.files, is_encoded=True))

    def run_ordered(self, group: CompactGroup, order_of: OrderOf, definition: Definition) -> DoneGroup:
        """Rewrite all rows of a group in this order. Raises as `run` does."""
        outputs = self.outputs()
        rows = sorted_runs(runs_of(self.reader(encoded_blocks(group))), order_of)
        batches = (batch for some in rows for batch in some.to_batches())
        reader = pa.RecordBatchReader.from_batches(to_arrow(self.snapshot.schema), batches)
        writer = FileWriter(definition, self._count)
        for new in writer.write_ordered(runs_of(reader)):
            self.next_block(len(new.entry.block_rows) // 8)
            outputs.put(new)
        return done_group(group, outputs)

    def find_unreadable(self, group: CompactGroup) -> dict[str, str]:
        """The files of a group that cannot be read, with the reason. Decodes all live rows. Raises Unavailable."""
        found = {}
        for file in group.files:
            try:
                for _ in self.reader(encoded_blocks(whole([file], is_encoded=True))):
                    pass
            except _UNREADABLE as error:
                found[file.entry.location] = str(error)
        return found

    def sample(self, group: CompactGroup, columns: Sequence[str]) -> pa.Table:
        """A sample of a group's rows with these columns, from blocks spread over all files."""
        places = [(name, block) for name, blocks in encoded_blocks(group).items() for block in blocks.tolist()]
        chosen: dict[str, list[int]] = {}
        for name, block in places[:: max(len(places) // _SAMPLE_BLOCKS, 1)]:
            chosen.setdefault(name, []).append(block)
        wanted = {name: np.array(blocks, np.int64) for name, blocks in chosen.items()}
        reader = self.reader(wanted, tuple(dict.fromkeys(columns)))
        step = max(sum(int(file.live.sum()) for file in group.files) // SAMPLE_ROWS, 1)
        taken = [batch.take(pa.array(np.arange(0, batch.num_rows, step), pa.int64())) for batch in reader]
        return pa.Table.from_batches(taken, reader.schema)

    def outputs(self) -> Outputs:
        """Where the new files' blocks are collected."""
        return Outputs(
            store=self.snapshot.store,
            keys=self.snapshot.keys,
            schema=self.snapshot.schema,
            most_bytes=self.targets.file_bytes,
            most_blocks=MOST_BLOCKS,
            next_block=self.next_block,
        )

    def next_block(self, count: int) -> int:
        """The number that begins the name of a file with this many blocks."""
        begin = self._count
        self._count += count
        return begin

    def reader(self, blocks: Mapping[str, Numbers], columns: tuple[str, ...] | None = None) -> pa.RecordBatchReader:
        """The rows of these blocks, without deleted ones, with these columns or all current ones."""
        snapshot = self.snapshot
        names = snapshot.schema.names if columns is None else columns
        query = Query(snapshot=snapshot, columns=names, stores=self.files.stores, cache=self.files.cache)
        slabs = query.slabs(query.plan.narrowed(choose_blocks(snapshot, blocks)))
        whole_schema = to_arrow(snapshot.schema)
        schema = pa.schema([whole_schema.field(name) for name in names])

        def typed() -> Iterator[pa.RecordBatch]:
            for batch in query.batches(slabs):
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

        return pa.RecordBatchReader.from_batches(schema, typed())

    def _run(self, group: CompactGroup) -> DoneGroup:
        outputs = self.outputs()
        for file, blocks in self._opened(group):
            outputs.add(file, blocks.tolist())
        encoded = encoded_blocks(group)
        if encoded:
            writer = FileWriter(self.definition, self._count)
            for new in writer.write(runs_of(self.reader(encoded))):
                made = open_new(new)
                self.next_block(made.footer.row_group_count)
                outputs.add(made, range(made.footer.row_group_count))
        outputs.finish()
        return done_group(group, outputs)

    def _opened(self, group: CompactGroup) -> list[tuple[OpenFile, Numbers]]:
        """The files to copy from, with the blocks to copy."""
        wanted = [(file.entry, blocks) for file, blocks in zip(group.files, group.copied, strict=True) if len(blocks)]
        stores, snapshot = self.files.stores, self.snapshot
        stored = [
            StoredFile(stores.locate(snapshot.keys, entry.location), entry, snapshot.layout(entry.layout))
            for entry, _ in wanted
        ]
        found = open_files(stored, snapshot.store.parallel_requests)
        if self.check_source is not None:
            for file in found:
                self.check_source(file)
        return list(zip(found, (blocks for _, blocks in wanted), strict=True))


def try_group(
    rewriter: Rewriter, do: Callable[[CompactGroup], DoneGroup], group: CompactGroup
) -> DoneGroup | FailedGroup:
    """Rewrite the files of a group that can be read; which they are is asked only when the whole group cannot be
    rewritten. Raises Unavailable.
    """
    try:
        return do(group)
    except _UNREADABLE as error:
        reason = str(error)
    failed = rewriter.find_unreadable(group)
    rest = group.without(failed)
    if failed and rest.files:
        try:
            return replace(do(rest), failed=failed)
        except _UNREADABLE as error:
            reason = str(error)
    return FailedGroup(failed={**dict.fromkeys(rest.locations, reason), **failed})


def encoded_blocks(group: CompactGroup) -> dict[str, Numbers]:
    """The blocks to encode again, by file."""
    pairs = zip(group.files, group.encoded, strict=True)
    return {file.entry.location: blocks for file, blocks in pairs if len(blocks)}


def done_group(group: CompactGroup, outputs: Outputs) -> DoneGroup:
    """What became of a group."""
    return DoneGroup(
        inputs=tuple(file.entry for file in group.files),
        outputs=tuple(outputs.entries),
        layouts=tuple(outputs.layouts.values()),
        copied_bytes=group.copied_bytes,
        encoded_bytes=group.encoded_bytes,
        copied_blocks=sum(map(len, group.copied)),
        encoded_blocks=sum(map(len, group.encoded)),
    )


def is_better(done: DoneGroup) -> bool:
    """Whether the new files are worth a commit: fewer files or blocks than before, no deleted rows any more, or
    today's partitions, in which they can be joined with others."""
    if any(entry.deletes is not None for entry in done.inputs):
        return True
    if {entry.spec for entry in done.inputs} != {entry.spec for entry in done.outputs}:
        return True
    blocks = [sum(len(entry.block_rows) for entry in some) for some in (done.inputs, done.outputs)]
    return len(done.outputs) < len(done.inputs) or (len(done.outputs) == len(done.inputs) and blocks[1] < blocks[0])
