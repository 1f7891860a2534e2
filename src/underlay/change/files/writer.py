"""Writes rows as new files of a table: sorts them, splits them by partition, and makes entries and sidecars."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace
from numpy.typing import NDArray

from underlay.change.files.row_checks import checks_of
from underlay.change.files.settings import write_options
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.intake.entries import written_entry
from underlay.index.keys import RevisionKeys, file_name
from underlay.index.partition_specs import bind_record
from underlay.index.root import Definition, Root
from underlay.parquet.write.writer import WrittenFile, write_files
from underlay.pm.convert.build import sidecar_of
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.cast.conform import conform
from underlay.schema.convert.file_columns import file_rows, file_schema
from underlay.schema.convert.stored_values import stored_array
from underlay.schema.partitioning.partition import apply_transform
from underlay.schema.partitioning.sort import SortField, sort_indices
from underlay.schema.partitioning.transform import PartitionField
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar
from underlay.store.store import Data

# Rows split by partition, with the partition's values as the index stores them.

_MOST_COMBINATIONS = 2**62
"""The most combinations of partition values that one integer can number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRows:
    """The rows of one partition; `values` are in the form of `FileEntry.partition`."""

    values: tuple[bytes | None, ...]
    rows: pa.Table


def split(table: pa.Table, fields: Sequence[PartitionField], schema: TableSchema) -> Iterator[PartitionRows]:
    """The rows by partition, in the order in which partitions first occur."""
    if not fields:
        yield PartitionRows(values=(), rows=table)
        return
    encoded = [_encoded(apply_transform(field, _leaf(table, schema, field.field))) for field in fields]
    codes = _combined(encoded, table.num_rows)
    _, firsts, numbers = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=len(firsts)))
    for number in np.argsort(firsts, kind="stable").tolist():
        rows = order[(ends[number - 1] if number else 0) : ends[number]]
        values = tuple(
            _packed(one.dictionary.slice(int(one.indices[int(firsts[number])].as_py()), 1), field.type)
            for one, field in zip(encoded, fields, strict=True)
        )
        yield PartitionRows(values=values, rows=table if len(firsts) == 1 else table.take(rows))


def _combined(encoded: Sequence[pa.DictionaryArray[Any, Any]], row_count: int) -> NDArray[np.int64]:
    """A number for each row, which only rows with the same values in all columns share."""
    codes, combinations = np.zeros(row_count, np.int64), 1
    for one in encoded:
        count = max(1, len(one.dictionary))
        if combinations * count > _MOST_COMBINATIONS:
            _, codes = np.unique(codes, return_inverse=True)
            combinations = row_count
        codes = codes * count + one.indices.to_numpy().astype(np.int64)
        combinations *= count
    return codes


def _encoded(values: pa.Array[Any]) -> pa.DictionaryArray[Any, Any]:
    """Equal values as equal numbers, null as one of the values. An extension type is encoded by its storage."""
    plain = values.storage if isinstance(values, pa.ExtensionArray) else values
    found = pc.dictionary_encode(plain, null_encoding="encode")
    if not isinstance(found, pa.DictionaryArray):
        raise TypeError(f"a dictionary, not {type(found).__name__}")
    return found


def _packed(value: pa.Array[Any], scalar: Scalar) -> bytes | None:
    """The one value of an array, packed. It stays in Arrow, since Python lacks nanoseconds and limits years."""
    if value.null_count:
        return None
    stored = stored_array(value, scalar)
    if isinstance(stored, np.ndarray):
        return stored.astype(storage_of(scalar).value).tobytes()
    found = stored[0].as_py()
    if storage_of(scalar) is not Storage.BYTES or not isinstance(found, bytes):
        raise TypeError(f"a partition value of {scalar} is stored as bytes")
    return found


def _leaf(table: pa.Table, schema: TableSchema, field: int) -> pa.ChunkedArray[Any]:
    top, *inner = schema.leaf_by_id[field].path
    column = table.column(top)
    for name in inner:
        column = pc.struct_field(column, name)
    return column


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file that is not yet in the store."""

    entry: FileEntry
    layout: FileLayout
    data: Data
    sidecar: bytes

    def objects(self, keys: RevisionKeys) -> dict[str, Data]:
        """The objects to put, by key."""
        location = self.entry.location
        key = keys.file(location)
        if key is None:
            raise AssertionError(f"a new file lies elsewhere: {location}")
        return {key: self.data, keys.sidecar(location): self.sidecar}


def next_block(root: Root) -> int:
    """Where numbers in names of new files begin: about the number of existing blocks."""
    return sum(ref.block_count for ref in root.segments) + len(root.tail)


class FileWriter:
    """Writes rows of a table with one definition. `block_count` is where the numbers in their names begin."""

    def __init__(self, definition: Definition, block_count: int) -> None:
        self.schema = from_record(definition.schema)
        self._arrow = file_schema(self.schema)
        self._options = write_options(definition)
        self._sort = [
            SortField(field=one.field, is_descending=one.descending, is_nulls_last=one.nulls_last)
            for one in definition.sort_by
        ]
        self._partitions = [bind_record(self.schema, one) for one in definition.partition_by]
        self._spec = definition.spec
        self._checks = checks_of(definition)
        self._block_count = block_count

    def write(self, runs: Iterable[pa.Table]) -> Iterator[NewFile]:
        """The files of these rows. Each run is sorted and split by itself; without order and partitions a file
        continues from one run to the next. Raises SchemaMismatch when rows do not fit the table, or contradict a
        check."""
        fitting = self._conform(runs)
        if self._sort or self._partitions:
            for run in fitting:
                yield from self._write_run(run)
        else:
            for written in write_files(map(self._stored, fitting), self._arrow, self._options):
                yield self._finish(written, ())

    def write_ordered(self, runs: Iterable[pa.Table]) -> Iterator[NewFile]:
        """The files of rows that are already in order: they are split by partition, not sorted."""
        fitting = self._conform(runs)
        if self._partitions:
            for run in fitting:
                for part in split(run, self._partitions, self.schema):
                    for written in write_files([self._stored(part.rows)], self._arrow, self._options):
                        yield self._finish(written, part.values)
        else:
            for written in write_files(map(self._stored, fitting), self._arrow, self._options):
                yield self._finish(written, ())

    def _conform(self, runs: Iterable[pa.Table]) -> Iterator[pa.Table]:
        row = 0
        for run in runs:
            fitting = conform(run, self.schema, first_row=row)
            if self._checks is not None:
                self._checks.verify(fitting, first_row=row)
            yield fitting
            row += run.num_rows

    def _stored(self, rows: pa.Table) -> pa.Table:
        return file_rows(rows, self.schema)

    def _write_run(self, run: pa.Table) -> Iterator[NewFile]:
        for part in split(run, self._partitions, self.schema):
            table = part.rows
            if self._sort and table.num_rows > 1:
                table = table.take(sort_indices(table, self._sort, self.schema))
            for written in write_files([self._stored(table)], self._arrow, self._options):
                yield self._finish(written, part.values)

    def _finish(self, written: WrittenFile, partition: tuple[bytes | None, ...]) -> NewFile:
        location = file_name(self._block_count, int.from_bytes(os.urandom(8), "big"))
        self._block_count += written.footer.row_group_count
        data = written.view()
        sidecar = sidecar_of(data, written.footer)
        entry, layout = written_entry(written, self.schema, location, sidecar=sidecar)
        placed = replace(entry, partition=partition, spec=self._spec)
        return NewFile(entry=placed, layout=layout, data=data, sidecar=sidecar)
