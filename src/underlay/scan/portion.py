"""Parts of a query for other processes to read: everything they need except the data itself, as bytes.

A portion names chunks by their places in files that never change, so its reader needs no root and no segment, and
either reads the version that was planned or fails. Our own files are identified by random names and their sizes,
registered ones by their etags.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import msgspec
import pyarrow as pa

from underlay.errors import InvalidRequest
from underlay.index.entry import FileLayout
from underlay.index.keys import RevisionKeys
from underlay.prune import Predicate
from underlay.scan.positions import Positions, live_positions
from underlay.scan.query import Query, RestFilter, answer, answer_schema, row_filter_of
from underlay.scan.read.file_shape import FileShape
from underlay.scan.read.file_stores import FileStores
from underlay.scan.read.pipeline import run_in_order
from underlay.scan.slabs import Slab, SlabFiles, reading_tasks, rows_together
from underlay.schema.record import SchemaRecord, from_record

WORKERS = 4
"""Slabs of a portion that are read in parallel: a reader has about one core, and waits for a store."""
_BUDGET_BYTES = 256 << 20


class Portion(msgspec.Struct, frozen=True, kw_only=True):
    """Some slabs of a query over the version with this commit id; `read_columns` are its own and the conditions'.

    `has_rest` says that its rows need another filter besides the predicate.
    """

    folder: str
    version: int
    commit_id: str
    schema: SchemaRecord
    columns: tuple[str, ...]
    read_columns: tuple[str, ...]
    layouts: tuple[FileLayout, ...]
    slabs: tuple[Slab, ...]
    has_rest: bool = False


def portions(query: Query, chosen: Iterable[Slab] | None = None, *, target_bytes: int, least: int = 1) -> list[Portion]:
    """The query's work in its order, or these slabs of it, cut into portions of about `target_bytes` to fetch, or
    smaller, down to a thirty-second of that, for about `least` portions. Plans the query. Its conditions are sent
    separately."""
    slabs = list(query.slabs() if chosen is None else chosen)
    total = sum(slab.fetch_bytes for slab in slabs)
    most = min(target_bytes, max(total // least + 1, target_bytes // 32))
    groups: list[list[Slab]] = []
    held = 0
    for piece in (piece for slab in slabs for piece in slab.cut(most)):
        size = piece.fetch_bytes
        if not groups or held + size > most:
            groups.append([])
            held = 0
        groups[-1].append(piece)
        held += size
    return [_portion(query, tuple(group)) for group in groups]


def read_portion(
    portion: Portion, stores: FileStores, predicate: Predicate, rest: RestFilter | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a portion that match. Raises Replaced and NotFound when a file has changed or is missing, and
    InvalidRequest without the rest of the query's conditions."""
    if portion.has_rest and rest is None:
        raise InvalidRequest("a portion of a query is read without all of the query's conditions")
    keys = RevisionKeys(portion.folder)
    schema = from_record(portion.schema)
    wanted = tuple(schema.column(name) for name in portion.read_columns)
    shapes = {layout.id: FileShape.of(layout, schema, wanted) for layout in portion.layouts}
    row_filter = row_filter_of(predicate)
    files = SlabFiles(shapes.__getitem__, partial(stores.locate, keys))
    read = partial(rows_together, files=files, matches=row_filter)
    tasks = reading_tasks(portion.slabs, read, is_remote=stores.lake.is_remote)
    found = answer_schema(schema, portion.columns)
    for table in run_in_order(tasks, workers=WORKERS, budget_bytes=_BUDGET_BYTES):
        yield from answer(table if rest is None else rest(table), found).to_batches()


def numbered_batches(portion: Portion, stores: FileStores) -> Iterator[tuple[str, Positions, pa.RecordBatch]]:
    """All rows of a portion that are not deleted: their file, their positions in it, and their columns."""
    keys = RevisionKeys(portion.folder)
    schema = from_record(portion.schema)
    wanted = tuple(schema.column(name) for name in portion.read_columns)
    shapes = {layout.id: FileShape.of(layout, schema, wanted) for layout in portion.layouts}
    files = SlabFiles(shapes.__getitem__, partial(stores.locate, keys))
    found = answer_schema(schema, portion.columns)
    for slab in portion.slabs:
        positions, is_live = live_positions(slab)
        first = 0
        positions = positions[is_live]
        for batch in answer(slab.rows(files, None), found).to_batches():
            yield slab.location, positions[first : first + batch.num_rows], batch
            first += batch.num_rows


def _portion(query: Query, slabs: tuple[Slab, ...]) -> Portion:
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
        has_rest=query.rest is not None,
    )
