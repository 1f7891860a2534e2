"""Arrow IPC files and streams as rows of a table: columns by name, widened exactly, one record batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from underlay.errors import SourceUnreadable, from_os_error
from underlay.ingest.rows.parquet import check_columns, reject_row, with_source
from underlay.ingest.rows.reading import RowRules, TakenRows
from underlay.ingest.rows.row_errors import fit

FILE_MAGIC = b"ARROW1"


def read_arrow(file: pa.NativeFile, reading: RowRules, name: str, read_bytes: Callable[[], int]) -> Iterator[TakenRows]:
    """The rows of an Arrow IPC source. `read_bytes` tells how much of it is read. Raises SourceUnreadable,
    SchemaMismatch."""
    try:
        schema, batches = _open(file)
        columns = check_columns(schema, reading, name)
        row = 1
        for batch in batches:
            batch.validate(full=True)  # Arrow trusts the offsets in a file; a damaged one would crash the process
            rows = with_source(pa.Table.from_batches([batch]).select(columns), reading, name)
            fitting, reasons = fit(rows, reading.schema)
            rejected = tuple(reject_row(rows, at, row, reason) for at, reason in reasons.items())
            row += batch.num_rows
            yield TakenRows(rows=fitting, rejected=rejected, read_bytes=read_bytes())
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(error, name) from None


def arrow_schema(file: pa.NativeFile, name: str) -> pa.Schema:
    """The columns of an Arrow IPC source. Raises SourceUnreadable."""
    try:
        return _open(file)[0].remove_metadata()
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(error, name) from None


def _open(file: pa.NativeFile) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """A file needs random access; what is decompressed or piped in can only be a stream."""
    if file.seekable():
        is_file = file.read(len(FILE_MAGIC)) == FILE_MAGIC
        file.seek(0)
        if is_file:
            opened = pa.ipc.open_file(file)
            return opened.schema, (opened.get_batch(at) for at in range(opened.num_record_batches))
    stream = pa.ipc.open_stream(file)
    return stream.schema, iter(stream)


def _unreadable(error: Exception, name: str) -> Exception:
    if isinstance(error, OSError) and error.errno is not None:
        return from_os_error(error, name)
    return SourceUnreadable(
        "not a readable Arrow IPC file or stream", place=name, found=str(error).strip(), hint="It may be truncated."
    )
