"""A change as a DataFrame: for each row that is deleted, inserted or updated, its number, the action, and the new
values.

If it is large, tasks turn it into deletion vectors and files; a few rows are sent back to the driver as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from itertools import chain

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from underlay.api.table import Table
from underlay.change.rows.staged import Staged, staging_for
from underlay.index import deletion_vectors as bitmaps
from underlay.index.deletion_vectors import MAX_ROWS, Positions
from underlay.schema.arrow_aliases import AnyArray, AnyChunks
from underlay.spark.tasks.map_in_arrow import map_in_arrow
from underlay.spark.tasks.stage_rows import STAGED_ROWS, check_visible, decode_staged, write_batches
from underlay.spark.tasks.store_address import StoreAddress
from underlay.table.open_table import Head

INLINE_ROWS = 2_000
"""A task returns at most this many new rows to the driver, which writes those of all tasks together."""


class RowAct(IntEnum):
    """What happens to a row."""

    UPDATE = 1
    DELETE = 2
    INSERT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFrame:
    """A change that Spark has not computed yet: the columns `number`, `act`, and the table's, by name, null in rows
    that are only deleted. `locations` are the files by their numbers.
    """

    frame: DataFrame
    number: str
    act: str
    locations: tuple[str, ...]


class TaskChange(msgspec.Struct, frozen=True, kw_only=True):
    """What one task found and wrote: packed positions of updated and deleted rows, by file number, and their counts
    with duplicates; new rows in files, or as an Arrow stream.
    """

    updated: dict[int, bytes]
    deleted: dict[int, bytes]
    update_count: int
    insert_count: int
    staged: bytes | None = None
    rows: bytes | None = None


@dataclass(slots=True, kw_only=True)
class FoundChange:
    """A change that Spark computed. `updated` and `deleted` are packed positions by file; `update_count` includes
    duplicates.
    """

    updated: dict[str, bytes] = field(default_factory=dict)
    deleted: dict[str, bytes] = field(default_factory=dict)
    update_count: int = 0
    insert_count: int = 0
    rows: list[pa.Table] = field(default_factory=list)
    staged: list[Staged] = field(default_factory=list)

    def add(self, updated: Mapping[str, bytes], deleted: Mapping[str, bytes]) -> None:
        """Add the updated and deleted rows that one task found."""
        for known, found in ((self.updated, updated), (self.deleted, deleted)):
            for location, bits in found.items():
                known[location] = bitmaps.union(known.get(location), bits)

    def add_numbers(self, numbers: Positions, locations: tuple[str, ...]) -> None:
        """Add deleted rows by their numbers."""
        self.add({}, {locations[file]: bits for file, bits in packed_by_file(numbers).items()})

    @property
    def is_repeated(self) -> bool:
        """Whether a row would be updated twice, or updated and deleted."""
        is_twice = sum(map(bitmaps.count, self.updated.values())) < self.update_count
        return is_twice or any(
            bitmaps.intersects(bits, self.deleted[location])
            for location, bits in self.updated.items()
            if location in self.deleted
        )


def by_file(numbers: Positions) -> dict[int, Positions]:
    """Row numbers as ascending positions, by file number."""
    ordered = np.sort(numbers)
    files = ordered // MAX_ROWS
    found, begins = np.unique(files, return_index=True)
    runs = np.split(ordered % MAX_ROWS, begins[1:]) if len(found) else []
    return dict(zip(found.tolist(), runs, strict=True))


def found_in(rows: pa.Table, change: ChangeFrame) -> FoundChange:
    """The change in collected rows."""
    found = FoundChange()
    acts = np.asarray(rows.column(change.act), np.int64)
    numbers = _numbers(rows.column(change.number))
    updated, deleted = (packed_by_file(numbers[acts == act]) for act in (RowAct.UPDATE, RowAct.DELETE))
    found.add(_at(updated, change.locations), _at(deleted, change.locations))
    found.update_count = int((acts == RowAct.UPDATE).sum())
    found.insert_count = int((acts == RowAct.INSERT).sum())
    coming = rows.filter(pa.array(acts != RowAct.DELETE)).drop_columns([change.act, change.number])
    if coming.num_rows:
        found.rows.append(coming)
    return found


def packed_by_file(numbers: Positions) -> dict[int, bytes]:
    """Row numbers as packed positions, by file number."""
    return {file: bitmaps.pack(positions) for file, positions in by_file(numbers).items()}


def _at(bits: Mapping[int, bytes], locations: tuple[str, ...]) -> dict[str, bytes]:
    return {locations[file]: one for file, one in bits.items()}


def found_by_tasks(change: ChangeFrame, table: Table, head: Head) -> FoundChange:
    """Have tasks compute a change, and write the new rows as files into the store.

    Raises Unavailable for files that the driver cannot see, and Spark's error when a task fails; then only unreferenced
    files are left.
    """
    staging = msgspec.msgpack.encode(staging_for(head))
    address = StoreAddress(url=table.stores.lake.url, options=table.stores.options)
    work = partial(_change_rows, address, staging, change.number, change.act)
    collected = map_in_arrow(change.frame, work, STAGED_ROWS).collect()
    found = FoundChange()
    for row in collected:
        part = msgspec.msgpack.decode(bytes(row[0]), type=TaskChange)
        found.add(_at(part.updated, change.locations), _at(part.deleted, change.locations))
        found.update_count += part.update_count
        found.insert_count += part.insert_count
        if part.staged is not None:
            found.staged.append(decode_staged(part.staged))
        if part.rows is not None:
            found.rows.append(pa.ipc.open_stream(part.rows).read_all())
    check_visible(table.stores.lake, head.revision.keys.folder, found.staged)
    return found


def _change_rows(
    address: StoreAddress, staging: bytes, number: str, act: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What a task does with its rows. It returns one row with what it found, or none if it found nothing."""
    noted: dict[RowAct, list[Positions]] = {one: [np.zeros(0, np.int64)] for one in RowAct}
    coming = _coming(batches, number, act, noted)
    held: list[pa.RecordBatch] = []
    staged = rows = None
    for batch in coming:
        held.append(batch)
        if sum(one.num_rows for one in held) > INLINE_ROWS:
            staged = write_batches(address, staging, chain(held, coming))
            held = []
    if held:
        rows = _stream(held)
    found = {one: np.concatenate(runs) for one, runs in noted.items()}
    if any(map(len, found.values())):
        done = TaskChange(
            updated=packed_by_file(found[RowAct.UPDATE]),
            deleted=packed_by_file(found[RowAct.DELETE]),
            update_count=len(found[RowAct.UPDATE]),
            insert_count=len(found[RowAct.INSERT]),
            staged=staged,
            rows=rows,
        )
        yield pa.record_batch([pa.array([msgspec.msgpack.encode(done)], pa.binary())], names=["staged"])


def _coming(
    batches: Iterable[pa.RecordBatch], number: str, act: str, noted: dict[RowAct, list[Positions]]
) -> Iterator[pa.RecordBatch]:
    """The new rows. Records row numbers by action."""
    for batch in batches:
        if not batch.num_rows:
            continue
        acts = np.asarray(batch.column(act), np.int64)
        numbers = _numbers(batch.column(number))
        for one in RowAct:
            noted[one].append(numbers[acts == one])
        rows = batch.filter(pa.array(acts != RowAct.DELETE)).drop_columns([act, number])
        if rows.num_rows and rows.num_columns:
            yield rows


def _numbers(column: AnyArray | AnyChunks) -> Positions:
    """The numbers of rows, -1 for rows that are not from the table."""
    return np.asarray(pc.coalesce(column, pa.scalar(-1, pa.int64())), np.int64)


def _stream(batches: list[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()
