"""Parquet as rows of a table: columns by name, widened exactly, some rows at a time.

A row is rejected for a null where the table requires a value, and for a value that does not fit when it is widened. A
column of a type that does not widen to the table's refuses the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import SEEK_END, BufferedIOBase

import pyarrow as pa
import pyarrow.parquet as pq

from underlay.errors import SourceUnreadable, UnderlayError, from_os_error
from underlay.ingest.drift import check_names
from underlay.ingest.fitting import fit
from underlay.ingest.reading import RAW_BYTES, Reading, Rejected, Taken
from underlay.schema.conform import conform

_BATCH_ROWS = 1 << 16


def read_parquet(file: BufferedIOBase, reading: Reading, name: str) -> Iterator[Taken]:
    """The rows of a Parquet source. Raises SourceUnreadable, SchemaMismatch."""
    try:
        size = file.seek(0, SEEK_END)
        with pq.ParquetFile(pa.PythonFile(file, "r")) as parquet:
            yield from _read(parquet, reading, name, size)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _unreadable(error, name) from None
    except OSError as error:
        raise (_unreadable(error, name) if error.errno is None else from_os_error(error, name)) from None


def _read(parquet: pq.ParquetFile, reading: Reading, name: str, size: int) -> Iterator[Taken]:
    found = parquet.schema_arrow
    own = [column for column in found.names if column != reading.source_column]
    check_names(reading, own, name)
    columns = [column for column in own if column in reading.schema.names]
    check_types(found, columns, reading, name)
    row = 1
    total = max(parquet.metadata.num_rows, 1)
    for batch in _batches(parquet, columns):
        rows = _with_source(pa.Table.from_batches([batch]), reading, name)
        fitting, reasons = fit(rows, reading.schema)
        rejected = [
            Rejected(line=row + at, offset=None, reason=reason, raw=_raw(rows.slice(at, 1)))
            for at, reason in reasons.items()
        ]
        row += batch.num_rows
        yield Taken(rows=fitting, rejected=tuple(rejected), read_bytes=size * (row - 1) // total)


def _batches(parquet: pq.ParquetFile, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows in their order. Row groups are asked for one by one, since Arrow fetches all that it is asked for."""
    for group in range(parquet.num_row_groups):
        yield from parquet.iter_batches(_BATCH_ROWS, row_groups=[group], columns=columns, use_threads=False)


def _with_source(rows: pa.Table, reading: Reading, name: str) -> pa.Table:
    if reading.source_column is None:
        return rows
    return rows.append_column(reading.source_column, pa.repeat(name, rows.num_rows))


def check_types(found: pa.Schema, columns: list[str], reading: Reading, name: str) -> None:
    """Raise SchemaMismatch when one of these columns has a type that does not widen to the table's."""
    empty = pa.schema([found.field(column) for column in columns]).empty_table()
    try:
        conform(_with_source(empty, reading, name), reading.schema)
    except UnderlayError as error:
        raise error.at(name) from None


def _raw(row: pa.Table) -> bytes:
    """The row as text, since its bytes lie in many places of the source."""
    return " ".join(f"{name}={row.column(name).to_string()}" for name in row.schema.names).encode()[:RAW_BYTES]


def _unreadable(error: Exception, name: str) -> SourceUnreadable:
    return SourceUnreadable(
        "is no Parquet file that can be read", place=name, found=str(error).strip(), hint="It may be cut short."
    )
