"""Reads Parquet and Arrow IPC as rows of a table: columns by name, cast exactly by value, some rows at a time.

A row is rejected for a null where the table requires a value, and for a value that the table's type cannot hold. The
source fails if the table's type can hold no value of a column's type. A name that differs only in case means the
table's column, if that is unambiguous. Times of the deprecated Parquet type INT96 are read as microseconds, since
nanoseconds would end in 2262; a row with a finer one is rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import SEEK_END, BufferedIOBase

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from underlay.errors import SourceUnreadable, UnderlayError, from_os_error
from underlay.ingest.rows.misfits import drop_rows, fit, with_reasons
from underlay.ingest.rows.reading import RAW_BYTES, Rejected, RowRules, TakenRows
from underlay.ingest.rows.schema_drift import check_names, new_column, with_table_names
from underlay.schema.arrow_aliases import AnyChunks
from underlay.schema.cast.conform import conform
from underlay.schema.convert.new_fields import lacking, lacking_names
from underlay.values.no_rows import no_rows

FILE_MAGIC = b"ARROW1"
"""The first bytes of an Arrow IPC file; a stream begins differently."""
_BATCH_ROWS = 1 << 16
_OLD_TIME = "INT96"
_UNIT = "us"


def read_parquet(file: BufferedIOBase, reading: RowRules, name: str) -> Iterator[TakenRows]:
    """The rows of a Parquet source. Raises SourceUnreadable, SchemaMismatch."""
    try:
        size = file.seek(0, SEEK_END)
        with open_parquet(file) as parquet, pq.ParquetFile(pa.PythonFile(file, "r")) as exact:
            yield from _read(parquet, exact, reading, name, size)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise _unreadable(error, "Parquet file", name) from None


def open_parquet(file: BufferedIOBase) -> pq.ParquetFile:
    """Open a Parquet source with the types that its columns get here. Raises what Arrow raises."""
    return pq.ParquetFile(pa.PythonFile(file, "r"), coerce_int96_timestamp_unit=_UNIT)


def _read(
    parquet: pq.ParquetFile, exact: pq.ParquetFile, reading: RowRules, name: str, size: int
) -> Iterator[TakenRows]:
    columns = check_columns(parquet.schema_arrow, reading, name)
    row = 1
    total = max(parquet.metadata.num_rows, 1)
    for batch, finer in _batches(parquet, columns, exact):
        rows = with_source(_renamed(pa.Table.from_batches([batch]), columns), reading, name)
        fitting, reasons = _fit(rows, reading, finer)
        rejected = tuple(reject_row(rows, at, row, reason) for at, reason in reasons.items())
        row += batch.num_rows
        yield TakenRows(rows=fitting, rejected=rejected, read_bytes=size * (row - 1) // total)


def _fit(rows: pa.Table, reading: RowRules, finer: dict[int, str]) -> tuple[pa.Table, dict[int, str]]:
    """The rows that fit, and why the others do not, by position."""
    fitting, reasons = fit(drop_rows(rows, finer), reading, ignore_surplus=reading.new_columns == "ignore")
    return fitting, with_reasons(finer, reasons, rows.num_rows)


def _batches(
    parquet: pq.ParquetFile, columns: dict[str, str], exact: pq.ParquetFile
) -> Iterator[tuple[pa.RecordBatch, dict[int, str]]]:
    """The rows in order, and which of them have a time finer than microseconds. Row groups are requested one by one,
    since Arrow fetches everything that it is asked for at once.
    """
    described = (parquet.schema.column(at) for at in range(len(parquet.schema)))
    old = [one.path for one in described if one.physical_type == _OLD_TIME and one.path in columns]
    for group in range(parquet.num_row_groups):
        begin = 0
        finer = _finer_rows(*(one.read_row_group(group, old) for one in (parquet, exact))) if old else {}
        for batch in parquet.iter_batches(_BATCH_ROWS, row_groups=[group], columns=list(columns), use_threads=False):
            end = begin + batch.num_rows
            yield batch, {at - begin: reason for at, reason in finer.items() if begin <= at < end}
            begin = end


def _finer_rows(times: pa.Table, exact: pa.Table) -> dict[int, str]:
    """The rows with times finer than microseconds, by position. `exact` has them in nanoseconds, of which
    those beyond an int64 are wrong by a multiple of 2**64."""
    found = {}
    for name in times.column_names:
        whole, nanoseconds = (_numbers(table.column(name)) for table in (times, exact))
        for at in np.flatnonzero(whole * 1000 != nanoseconds).tolist():
            found[at] = f"column {name}: a time finer than microseconds"
    return found


def _numbers(column: AnyChunks) -> NDArray[np.int64]:
    found: NDArray[np.int64] = column.cast(pa.int64()).fill_null(0).to_numpy()
    return found


def with_source(rows: pa.Table, reading: RowRules, name: str) -> pa.Table:
    """The rows with the column that holds their source's name, if the table has one."""
    if reading.source_column is None:
        return rows
    return rows.append_column(reading.source_column, pa.repeat(name, rows.num_rows))


def check_columns(found: pa.Schema, reading: RowRules, name: str) -> dict[str, str]:
    """The columns of a source that the table takes, with the table's names. Raises SchemaMismatch."""
    own = pa.schema([field for field in found if field.name != reading.source_column])
    named = with_table_names(own, [known for known in reading.schema.names if known != reading.source_column])
    check_names(reading, named.names, name)
    names = set(reading.schema.names)
    check_types(named, [column for column in named.names if column in names], reading, name)
    return {given: known for given, known in zip(own.names, named.names, strict=True) if known in names}


def _renamed(rows: pa.Table, columns: dict[str, str]) -> pa.Table:
    return rows.rename_columns([columns[column] for column in rows.column_names])


def check_types(found: pa.Schema, columns: list[str], reading: RowRules, name: str) -> None:
    """Raise SchemaMismatch when the table's type can hold no value of a column's type, and NewColumn when a column has
    fields inside that the table lacks, unless those are ignored.
    """
    shared = pa.schema([found.field(column) for column in columns])
    new = lacking(shared, reading.schema)
    if len(new) and reading.new_columns != "ignore":
        raise new_column(lacking_names(new, reading.schema)[0], reading.schema.names, name)
    try:
        conform(with_source(no_rows(shared), reading, name), reading.schema, ignore_surplus=True)
    except UnderlayError as error:
        raise error.at(name) from None


def reject_row(rows: pa.Table, at: int, first_row: int, reason: str) -> Rejected:
    """A row that does not fit, as text, since its bytes are spread over the source. `first_row` is the number of row
    0.
    """
    row = rows.slice(at, 1)
    text = " ".join(f"{name}={row.column(name).to_string()}" for name in row.schema.names)
    return Rejected(line=first_row + at, offset=None, reason=reason, raw=text.encode()[:RAW_BYTES])


def read_arrow(file: pa.NativeFile, reading: RowRules, name: str, read_bytes: Callable[[], int]) -> Iterator[TakenRows]:
    """The rows of an Arrow IPC source. `read_bytes` returns how much of it was read. Raises SourceUnreadable,
    SchemaMismatch.
    """
    try:
        schema, batches = _open(file)
        columns = check_columns(schema, reading, name)
        row = 1
        for batch in batches:
            batch.validate(full=True)  # Arrow trusts the offsets in a file; a damaged one would crash the process
            taken = _renamed(pa.Table.from_batches([batch]).select(list(columns)), columns)
            rows = with_source(taken, reading, name)
            fitting, reasons = fit(rows, reading, ignore_surplus=reading.new_columns == "ignore")
            rejected = tuple(reject_row(rows, at, row, reason) for at, reason in reasons.items())
            row += batch.num_rows
            yield TakenRows(rows=fitting, rejected=rejected, read_bytes=read_bytes())
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(error, "Arrow IPC file or stream", name) from None


def arrow_schema(file: pa.NativeFile, name: str) -> pa.Schema:
    """The columns of an Arrow IPC source. Raises SourceUnreadable."""
    try:
        return _open(file)[0].remove_metadata()
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(error, "Arrow IPC file or stream", name) from None


def _open(file: pa.NativeFile) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Arrow's file format needs random access; a decompressed or piped source can only be a stream."""
    if file.seekable():
        is_file = file.read(len(FILE_MAGIC)) == FILE_MAGIC
        file.seek(0)
        if is_file:
            opened = pa.ipc.open_file(file)
            return opened.schema, (opened.get_batch(at) for at in range(opened.num_record_batches))
    stream = pa.ipc.open_stream(file)
    return stream.schema, iter(stream)


def _unreadable(error: Exception, what: str, name: str) -> UnderlayError:
    if isinstance(error, OSError) and error.errno is not None:
        return from_os_error(error, name)
    hint = "It may be truncated."
    return SourceUnreadable(f"not a readable {what}", place=name, found=str(error).strip(), hint=hint)
