"""`underlay hot read`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import IOBase
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.csv

from underlay.cli.common.output import binary_output, say
from underlay.cli.common.row_text import as_csv_column, csv_type
from underlay.cli.hot.partitions import SidecarPartition, partitions_in
from underlay.cli.pm.choice import split_names
from underlay.pm.read.rows import read_batches

_ROWS_AT_ONCE = 16_384


def write_partitions(path: Path, *, columns: str | None, partition: str | None, format: str) -> None:
    """The rows on stdout, partition by partition. Memory holds one row group of the chosen columns."""
    names = split_names(columns)
    output = binary_output() if format == "arrow" else None
    is_ours, found, native = partitions_in(path, partition)
    if native:
        say(f"note: left out, since only QuestDB can read them: {', '.join(native)}")
    readers = [_reader(one, names, is_ours=is_ours) for one in found]
    if not readers:
        say("there are no rows")
        return
    # A partition that was written before a column was added lacks it: null there.
    schema = pa.unify_schemas([reader.schema.remove_metadata() for reader in readers], promote_options="permissive")
    schema = pa.schema([field.with_nullable(True).remove_metadata() for field in schema])
    batches = _aligned(readers, schema)
    if output is not None:
        with pa.ipc.new_stream(cast("IOBase", output), schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return
    text = pa.schema([(field.name, csv_type(field.type)) for field in schema])
    with pyarrow.csv.CSVWriter(sys.stdout.buffer, text) as writer:
        for batch in batches:
            for begin in range(0, batch.num_rows, _ROWS_AT_ONCE):
                rows = batch.slice(begin, _ROWS_AT_ONCE)
                parts = [as_csv_column(column, field.type) for column, field in zip(rows.columns, text, strict=True)]
                writer.write_batch(pa.RecordBatch.from_arrays(parts, schema=text))


def _reader(one: SidecarPartition, names: list[str] | None, *, is_ours: bool) -> pa.RecordBatchReader:
    return read_batches(one.sidecar(), one.data, columns=names, schema=one.schema(is_ours=is_ours))


def _aligned(readers: list[pa.RecordBatchReader], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for reader in readers:
        for batch in reader:
            given = set(batch.schema.names)
            columns = [
                batch.column(field.name).cast(field.type)
                if field.name in given
                else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
