"""`underlay pm read`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from io import IOBase
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.csv

from underlay.cli.common.output import binary_output, say
from underlay.cli.pm.choice import open_version, split_names, split_numbers
from underlay.errors import InvalidRequest
from underlay.parquet.footer.tail import load_footer
from underlay.pm.read.file_schema import FileSchema
from underlay.pm.read.rows import read_batches
from underlay.pm.read.synthesise import physical_columns

_ROWS_AT_ONCE = 16_384
"""Rows that become Python objects at a time, for types that only Python can write."""


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


def csv_type(kind: pa.DataType) -> pa.DataType:
    """The type that a column is written as: text for what CSV has no form for, and else the column's own."""
    if isinstance(kind, pa.DictionaryType):
        return csv_type(kind.value_type)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    if is_bytes or pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType) or kind in _TEXT_IN_CSV:
        return pa.string()
    return kind


_TEXT_IN_CSV = (pa.string_view(), pa.binary_view(), pa.month_day_nano_interval())
"""Flat types that Arrow's CSV writer refuses."""


def _as_csv(reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        for begin in range(0, batch.num_rows, _ROWS_AT_ONCE):
            part = batch.slice(begin, _ROWS_AT_ONCE)
            columns = [as_csv_column(column, field.type) for column, field in zip(part.columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def as_csv_column(column: pa.Array[Any], kind: pa.DataType) -> pa.Array[Any]:
    """The column as `csv_type` says: bytes as hexadecimal digits, nested values as JSON."""
    if isinstance(column, pa.DictionaryArray):
        return as_csv_column(column.dictionary_decode(), kind)
    if column.type == kind:
        return column
    if pa.types.is_nested(column.type):
        column = column.cast(json_type(column.type))
    return pa.array([_as_text(value) for value in column.to_pylist()], pa.string())


def json_type(kind: pa.DataType) -> pa.DataType:
    """The nested type with text in place of times and dates: Python's have neither their range nor their precision."""
    if isinstance(kind, pa.StructType):
        return pa.struct([field.with_type(json_type(field.type)) for field in kind])
    if isinstance(kind, pa.MapType):
        return pa.map_(json_type(kind.key_type), json_type(kind.item_type))
    if isinstance(kind, pa.ListType):
        return pa.list_(kind.value_field.with_type(json_type(kind.value_type)))
    if isinstance(kind, pa.LargeListType):
        return pa.large_list(kind.value_field.with_type(json_type(kind.value_type)))
    # Arrow has no text for intervals.
    return pa.string() if pa.types.is_temporal(kind) and not pa.types.is_interval(kind) else kind


def _as_text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | dict | tuple):
        return json.dumps(value, default=_as_text, ensure_ascii=False)
    return str(value)
