"""Rows as new files of a table: sorted, split by partition, written with their entries and sidecars."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from msgspec.structs import replace

from underlay.change.files.settings import write_options
from underlay.change.files.split import split
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.intake.entries import written_entry
from underlay.index.keys import RevisionKeys, file_name
from underlay.index.root import Definition, Root
from underlay.parquet.write.writer import WrittenFile, write_files
from underlay.pm.convert.build import sidecar_of
from underlay.schema.cast.conform import conform
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.partitioning.sort import SortField, sort_indices
from underlay.schema.partitioning.transform import bind_partition
from underlay.schema.record import from_record
from underlay.store.store import Data


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file that is not yet in the store."""

    entry: FileEntry
    layout: FileLayout
    data: Data
    sidecar: bytes

    def objects(self, keys: RevisionKeys) -> dict[str, Data]:
        """What to put, by key."""
        location = self.entry.location
        key = keys.file(location)
        if key is None:
            raise AssertionError(f"a new file lies elsewhere: {location}")
        return {key: self.data, keys.sidecar(location): self.sidecar}


def next_block(root: Root) -> int:
    """What names of files go on from: about the number of blocks that there are."""
    return sum(ref.block_count for ref in root.segments) + len(root.tail)


class FileWriter:
    """Writes rows of a table with one definition. `block_count` is what its names go on from."""

    def __init__(self, definition: Definition, block_count: int) -> None:
        self.schema = from_record(definition.schema)
        self._arrow = to_arrow(self.schema)
        self._options = write_options(definition)
        self._sort = [
            SortField(field=one.field, is_descending=one.descending, is_nulls_last=one.nulls_last)
            for one in definition.sort_by
        ]
        self._partitions = [
            bind_partition(self.schema, one.field, one.transform, one.width) for one in definition.partition_by
        ]
        self._block_count = block_count

    def write(self, runs: Iterable[pa.Table]) -> Iterator[NewFile]:
        """The files of these rows, of which each run is sorted and split by itself; without order and partitions files
        go on from one run to the next. Raises SchemaMismatch when rows do not fit the table."""
        fitting = (conform(run, self.schema) for run in runs)
        if self._sort or self._partitions:
            for run in fitting:
                yield from self._write_run(run)
        else:
            for written in write_files(fitting, self._arrow, self._options):
                yield self._finish(written, ())

    def _write_run(self, run: pa.Table) -> Iterator[NewFile]:
        for part in split(run, self._partitions, self.schema):
            table = part.rows
            if self._sort and table.num_rows > 1:
                table = table.take(sort_indices(table, self._sort, self.schema))
            for written in write_files([table], self._arrow, self._options):
                yield self._finish(written, part.values)

    def _finish(self, written: WrittenFile, partition: tuple[bytes | None, ...]) -> NewFile:
        location = file_name(self._block_count, int.from_bytes(os.urandom(8), "big"))
        self._block_count += written.footer.row_group_count
        data = written.view()
        sidecar = sidecar_of(data, written.footer)
        entry, layout = written_entry(written, self.schema, location, sidecar=sidecar)
        return NewFile(entry=replace(entry, partition=partition), layout=layout, data=data, sidecar=sidecar)
