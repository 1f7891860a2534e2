"""`underlay pm read`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import IOBase
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.csv

from underlay.cli.common.output import binary_output, say
from underlay.cli.common.row_text import as_csv_column, csv_type
from underlay.cli.pm.choice import open_version, split_names, split_numbers
from underlay.errors import InvalidRequest
from underlay.parquet.footer.tail import load_footer
from underlay.pm.read.file_schema import FileSchema
from underlay.pm.read.rows import read_batches
from underlay.pm.read.synthesise import physical_columns

_ROWS_AT_ONCE = 16_384
"""The number of rows converted to Python objects at a time, for types that only Python can write."""


def write_rows(
    file: Path,
    parquet: Path,
    *,
    columns: str | None,
    row_groups: str | None,
    version_size: int | None,
    format: str,
    schema_from: Path | None,
) -> None:
    """Rows on stdout. Memory holds one row group of the chosen columns."""
    names, numbers = split_names(columns), split_numbers(row_groups)
    output = binary_output() if format == "arrow" else None
    sidecar = open_version(file, version_size)
    schema = FileSchema.of_footer(load_footer(schema_from).footer) if schema_from else None
    try:
        reader = read_batches(sidecar, parquet, columns=names, row_groups=numbers, schema=schema)
    except InvalidRequest as error:
        raise error if error.place else error.at(str(file)) from None
    if schema is None:
        assumed = [name for name in physical_columns(sidecar) if name in reader.schema.names]
        if assumed:
            say(
                f"note: read as their physical type, since a sidecar has no logical types: {', '.join(assumed)}"
                " (--schema-from DATA.parquet takes them from a footer)"
            )
    if output is not None:
        _write_arrow(reader, output)
    else:
        _write_csv(reader)


def _write_arrow(reader: pa.RecordBatchReader, output: BinaryIO) -> None:
    with pa.ipc.new_stream(cast("IOBase", output), reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def _write_csv(reader: pa.RecordBatchReader) -> None:
    schema = pa.schema([(field.name, csv_type(field.type)) for field in reader.schema])
    with pyarrow.csv.CSVWriter(sys.stdout.buffer, schema) as writer:
        for batch in _as_csv(reader, schema):
            writer.write_batch(batch)


def _as_csv(reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        for begin in range(0, batch.num_rows, _ROWS_AT_ONCE):
            part = batch.slice(begin, _ROWS_AT_ONCE)
            columns = [as_csv_column(column, field.type) for column, field in zip(part.columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
