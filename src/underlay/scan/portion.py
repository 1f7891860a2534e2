"""Parts of a query that other processes read: everything they need beside the data itself, as bytes.

A portion names chunks by their places in files that never change, so whoever reads it asks for no root and no segment,
and reads the version that was planned or fails. Files of ours are known by random names and their sizes, registered
ones by their etags.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import msgspec
import numpy as np
import pyarrow as pa

from underlay.index.entry import FileLayout
from underlay.index.keys import RevisionKeys
from underlay.prune import Predicate
from underlay.scan.query import SPREAD, Query, answer, answer_schema, row_filter_of
from underlay.scan.read.file_read import BlockChunks, FileRead
from underlay.scan.read.file_shape import FileShape
from underlay.scan.read.file_stores import FileStores
from underlay.scan.read.pipeline import Task, run_in_order
from underlay.scan.slabs import SlabRead
from underlay.schema.record import SchemaRecord, from_record

WORKERS = 4
"""Slabs of a portion that are read side by side: whoever reads it has about one core, and waits for a store."""
_BUDGET_BYTES = 256 << 20


class SlabRecord(msgspec.Struct, frozen=True, array_like=True):
    """Some blocks of one file, see `SlabRead`."""

    location: str
    size_bytes: int
    etag: str | None
    layout: str
    blocks: tuple[BlockChunks, ...]
    first_rows: tuple[int, ...]
    must: tuple[bool, ...]
    deletes: bytes | None

    @property
    def fetch_bytes(self) -> int:
        """Bytes of its chunks."""
        return sum(map(_bytes_of, self.blocks))

    def cut(self, most_bytes: int) -> Iterator[SlabRecord]:
        """The same blocks in runs of at most so many bytes, or of one block."""
        cuts, held = [0], 0
        for number, block in enumerate(self.blocks):
            size = _bytes_of(block)
            if number > cuts[-1] and held + size > most_bytes:
                cuts.append(number)
                held = 0
            held += size
        for begin, end in pairwise([*cuts, len(self.blocks)]):
            yield msgspec.structs.replace(
                self, blocks=self.blocks[begin:end], first_rows=self.first_rows[begin:end], must=self.must[begin:end]
            )


class Portion(msgspec.Struct, frozen=True, kw_only=True):
    """Some slabs of a query over the version with this commit id; `read_columns` are its own and the predicate's."""

    folder: str
    version: int
    commit_id: str
    schema: SchemaRecord
    columns: tuple[str, ...]
    read_columns: tuple[str, ...]
    layouts: tuple[FileLayout, ...]
    slabs: tuple[SlabRecord, ...]


def portions(query: Query, *, target_bytes: int, least: int = 1) -> list[Portion]:
    """The query's work in its order, cut into portions of about `target_bytes` to fetch, and about `least` of them
    while they stay above a thirty-second of that. Plans the query. The predicate goes along apart from it."""
    slabs = [_record(slab) for slab in query.slabs()]
    total = sum(slab.fetch_bytes for slab in slabs)
    most = min(target_bytes, max(total // least + 1, target_bytes // 32))
    groups: list[list[SlabRecord]] = []
    held = 0
    for piece in (piece for slab in slabs for piece in slab.cut(most)):
        size = piece.fetch_bytes
        if not groups or held + size > most:
            groups.append([])
            held = 0
        groups[-1].append(piece)
        held += size
    return [_portion(query, tuple(group)) for group in groups]


def read_portion(portion: Portion, stores: FileStores, predicate: Predicate) -> Iterator[pa.RecordBatch]:
    """The rows of a portion that match. Raises Replaced and NotFound when a file is not what it was."""
    keys = RevisionKeys(portion.folder)
    schema = from_record(portion.schema)
    wanted = tuple(schema.column(name) for name in portion.read_columns)
    shapes = {layout.id: FileShape.of(layout, schema, wanted) for layout in portion.layouts}
    row_filter = row_filter_of(predicate)

    def task(slab: SlabRecord) -> Task[pa.Table]:
        read = _slab_read(slab, shapes[slab.layout], stores, keys)
        return Task(read.size_bytes * SPREAD, partial(read.rows, row_filter))

    found = answer_schema(schema, portion.columns)
    for table in run_in_order(map(task, portion.slabs), workers=WORKERS, budget_bytes=_BUDGET_BYTES):
        yield from answer(table, found).to_batches()


def _bytes_of(block: BlockChunks) -> int:
    return sum(chunk.size for chunk in block.chunks.values())


def _record(slab: SlabRead) -> SlabRecord:
    read = slab.read
    return SlabRecord(
        location=slab.location,
        size_bytes=read.size_bytes,
        etag=read.etag,
        layout=read.shape.layout.id,
        blocks=read.blocks,
        first_rows=tuple(slab.first_rows.tolist()),
        must=tuple(slab.must.tolist()),
        deletes=slab.deletes,
    )


def _portion(query: Query, slabs: tuple[SlabRecord, ...]) -> Portion:
    snapshot = query.snapshot
    return Portion(
        folder=snapshot.keys.folder,
        version=snapshot.version,
        commit_id=snapshot.root.commit_id,
        schema=snapshot.definition.schema,
        columns=query.columns,
        read_columns=tuple(column.name for column in query.read_columns),
        layouts=tuple(snapshot.layout(layout) for layout in dict.fromkeys(slab.layout for slab in slabs)),
        slabs=slabs,
    )


def _slab_read(slab: SlabRecord, shape: FileShape, stores: FileStores, keys: RevisionKeys) -> SlabRead:
    return SlabRead(
        location=slab.location,
        read=FileRead(
            place=stores.locate(keys, slab.location),
            size_bytes=slab.size_bytes,
            etag=slab.etag,
            shape=shape,
            blocks=slab.blocks,
        ),
        first_rows=np.array(slab.first_rows, np.int64),
        must=np.array(slab.must, np.bool_),
        deletes=slab.deletes,
    )
