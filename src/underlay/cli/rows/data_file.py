"""Data files that a command names, as Arrow rows: Parquet, CSV, JSON lines, Arrow IPC.

CSV and JSON are read by the table's own types, without guessing; for a table that is not there yet they are guessed
from the beginning of the file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import IOBase
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from underlay.cli.rows.text_file import Types, explained, text_reader
from underlay.errors import InvalidRequest, SchemaMismatch, Unsupported
from underlay.ingest.rows.text_values import from_text, is_text_type
from underlay.ingest.source.file_format import FileFormat, existing_file, kind_of, open_file

STDIN = "-"
_IPC_MAGIC = b"ARROW1"

Batches = Iterator[tuple[pa.RecordBatch, float]]
"""Rows, and how much of the file is read by then, from 0 to 1."""


def guess_schema(name: str) -> pa.Schema:
    """The columns of a file; those of CSV and JSON from its beginning. A column of nulls alone is text."""
    with explained(name, None, None):
        kind = kind_of(name)
        if kind is FileFormat.PARQUET:
            return pq.read_schema(existing_file(name)).remove_metadata()
        with open_file(name) as (file, _):
            schema = (
                _arrow_reader(file).schema if kind is FileFormat.ARROW else text_reader(file, kind, None, ()).schema
            )
    return schema if kind is FileFormat.ARROW else pa.schema([field.with_type(_plain(field.type)) for field in schema])


def read_file(name: str, types: Types, nulls: tuple[str, ...] = ()) -> Batches:
    """The rows of a file, or of an Arrow stream on stdin. Raises SchemaMismatch, Malformed, NotFound."""
    if name == STDIN:
        yield from _read_stdin()
        return
    kind = kind_of(name)
    with explained(name, kind, types):
        if kind is FileFormat.PARQUET:
            yield from _read_parquet(existing_file(name))
            return
        with open_file(name) as (file, fraction):
            if kind is FileFormat.ARROW:
                yield from ((batch, fraction()) for batch in _arrow_reader(file))
                return
            rows = 0
            for batch in text_reader(file, kind, types, nulls):
                yield _typed(batch, types, name, rows), fraction()
                rows += batch.num_rows


def _plain(guessed: pa.DataType) -> pa.DataType:
    """A guessed type, for rows that were not looked at too: text where these are null, and parts of seconds."""
    if pa.types.is_null(guessed):
        return pa.string()
    if isinstance(guessed, pa.TimestampType):
        return pa.timestamp("us", guessed.tz)
    return pa.time64("us") if pa.types.is_time(guessed) else guessed


def _read_stdin() -> Batches:
    if sys.stdin.isatty():
        raise InvalidRequest("- reads an Arrow IPC stream from stdin", hint='Pipe one in: "… | underlay append …".')
    with explained("stdin", FileFormat.ARROW, None):
        yield from ((batch, 0.0) for batch in pa.ipc.open_stream(cast("IOBase", sys.stdin.buffer)))


def _read_parquet(path: Path) -> Batches:
    with pq.ParquetFile(path) as file:
        total = max(file.metadata.num_rows, 1)
        done = 0
        for batch in file.iter_batches():
            done += batch.num_rows
            yield batch, done / total


def _arrow_reader(file: pa.NativeFile) -> Any:  # noqa: ANN401  # a reader of a file is no reader of a stream for Arrow
    if file.seekable():
        is_file = file.read(len(_IPC_MAGIC)) == _IPC_MAGIC
        file.seek(0)
        if is_file:
            opened = pa.ipc.open_file(file)
            batches = (opened.get_batch(at) for at in range(opened.num_record_batches))
            return pa.RecordBatchReader.from_batches(opened.schema, batches)
    return pa.ipc.open_stream(file)


def _typed(batch: pa.RecordBatch, types: Types, place: str, rows_before: int) -> pa.RecordBatch:
    """The batch with texts made into values where the reader could not do it."""
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        wanted = types.get(name, column.type)
        if pa.types.is_float16(wanted):
            column = column.cast(wanted)
        elif pa.types.is_string(column.type) and column.type != wanted:
            if not is_text_type(wanted):
                raise _no_form(name, wanted).at(place)
            try:
                column = from_text(column, wanted, rows_before)
            except SchemaMismatch as error:
                raise error.at(f"{place}: {name}") from None
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _no_form(column: str, kind: pa.DataType) -> Unsupported:
    return Unsupported(
        f"the column {column} cannot be read from this kind of file", found=kind, hint="Use Parquet or Arrow."
    )
