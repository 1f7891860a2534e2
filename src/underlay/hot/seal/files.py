"""Makes files of the table from hot partitions: large blocks copied byte for byte, the others encoded together.

Nothing refers to the files before the commit of the seal. Each is looked at again in the store before that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from underlay.change.files.writer import split
from underlay.change.update.edit import FileAccess
from underlay.errors import Inconsistent
from underlay.hot.files.layout import HotLayout
from underlay.hot.files.read_blocks import read_blocks
from underlay.hot.read.entries import load_hot_footer, make_entry
from underlay.hot.read.snapshot import HotSnapshot, PinnedHot
from underlay.hot.txn.record import TxnPartition
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.partition_specs import bind_record
from underlay.maintain.compact.choose import ChosenFile, CompactGroup, CompactTargets, Reason
from underlay.maintain.compact.rewrite import DoneGroup, Rewriter
from underlay.plan.part import Numbers
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar
from underlay.table.versions.snapshot import Snapshot

_LEAST_ROW_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedFiles:
    """Files that hold all rows of some partitions, in the store."""

    entries: tuple[FileEntry, ...]
    layouts: tuple[FileLayout, ...]
    row_count: int
    copied_blocks: int
    encoded_blocks: int


def make_files(
    sealed: Snapshot, hot: PinnedHot, partitions: Sequence[TxnPartition], files: FileAccess, layout: HotLayout
) -> SealedFiles:
    """Put files with the rows of these partitions, written for the version `sealed`. Raises what reading and putting
    them does, and Inconsistent when rows are missing."""
    entries: list[FileEntry] = []
    layouts: dict[str, FileLayout] = {}
    copied = encoded = 0
    for partition in partitions:
        if not partition.row_count:
            continue
        done = _make(sealed, hot, partition, files, layout)
        _verify(sealed, partition, done)
        entries += done.outputs
        layouts |= {one.id: one for one in done.layouts}
        copied += done.copied_blocks
        encoded += done.encoded_blocks
    return SealedFiles(
        entries=tuple(entries),
        layouts=tuple(layouts.values()),
        row_count=sum(one.row_count for one in partitions),
        copied_blocks=copied,
        encoded_blocks=encoded,
    )


def _make(sealed: Snapshot, hot: PinnedHot, partition: TxnPartition, files: FileAccess, layout: HotLayout) -> DoneGroup:
    path = hot.directory(partition)
    entry, known = make_entry(path / "data.parquet", partition.size_bytes or 0, sealed.schema)
    values = _partition_values(sealed, hot, partition, layout)
    if values is not None:
        entry = replace(entry, partition=values, spec=sealed.definition.spec)
    snapshot = HotSnapshot(sealed, hot, [(entry, known)])
    targets = CompactTargets.of(sealed.definition)
    chosen = ChosenFile(entry=entry, reason=Reason.REGISTERED, row_bytes=_LEAST_ROW_BYTES)
    every: Numbers = np.arange(len(chosen.rows), dtype=np.int64)
    none: Numbers = np.zeros(0, np.int64)
    is_copied = values is not None and _is_in_order(sealed, layout)
    full = every[~chosen.under_full(targets)] if is_copied else none
    rest = np.setdiff1d(every, full)
    if is_copied and len(rest) == 1:  # alone it would be encoded to what it is
        full, rest = every, none
    group = CompactGroup(files=(chosen,), copied=(full,), encoded=(rest,))
    return Rewriter(snapshot=snapshot, files=files, targets=targets).run(group)


def _partition_values(
    sealed: Snapshot, hot: PinnedHot, partition: TxnPartition, layout: HotLayout
) -> tuple[bytes | None, ...] | None:
    """The values that all rows of a hot partition have in the table's partitions; None when they differ, or may."""
    definition = sealed.definition
    if not definition.partition_by:
        return ()
    if any(one.field != layout.time.id for one in definition.partition_by):
        return None
    fields = [bind_record(sealed.schema, one) for one in definition.partition_by]
    times = _extreme_times(hot, partition, layout, sealed.schema)
    found = list(split(times, fields, sealed.schema))
    return found[0].values if len(found) == 1 else None


def _extreme_times(hot: PinnedHot, partition: TxnPartition, layout: HotLayout, schema: TableSchema) -> pa.Table:
    """The rows of the first and the last block: they have the least and the greatest timestamp, and transforms of time
    ascend."""
    path, size = hot.directory(partition) / "data.parquet", partition.size_bytes or 0
    footer = load_hot_footer(path, size)
    ends = sorted({0, footer.row_group_count - 1})
    return read_blocks(path, size, footer.data, schema, ends)


def _is_in_order(sealed: Snapshot, layout: HotLayout) -> bool:
    """Whether files in the order of time are in the table's order."""
    order = sealed.definition.sort_by
    if not order:
        return True
    return order[0].field == layout.time.id and not order[0].descending and isinstance(layout.time.type, Scalar)


def _verify(sealed: Snapshot, partition: TxnPartition, done: DoneGroup) -> None:
    """Every row is in a file, and every file is in the store with its size."""
    rows = sum(int(np.frombuffer(entry.block_rows, "<i8").sum()) for entry in done.outputs)
    if rows != partition.row_count:
        raise Inconsistent(
            "the files of a sealed partition do not have its rows", expected=partition.row_count, found=rows
        )
    for entry in done.outputs:
        key = sealed.keys.file(entry.location) or entry.location
        found = sealed.store.head(key)
        if found is None or found.size_bytes != entry.size_bytes:
            raise Inconsistent(
                "a file of a sealed partition is not in the store as it was put",
                place=key,
                expected=f"{entry.size_bytes} bytes",
                found="nothing" if found is None else f"{found.size_bytes} bytes",
            )
