"""Rows to append, from anything that speaks Arrow, in runs that fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from underlay.errors import InvalidRequest, Unsupported

RUN_BYTES = 256 << 20
"""Bytes of Arrow memory that are sorted and written together."""

Rows = Callable[[], Iterable[pa.Table]]
"""The runs of an input, each time from its beginning; an input that can be read once raises when it is asked twice."""


def read_rows(data: object) -> Rows:
    """The rows of an Arrow table, batch, reader or stream, a list of batches, or a pandas, Polars or DuckDB frame."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        table = data
        return lambda: [table]
    if isinstance(data, list | tuple) and data and all(isinstance(batch, pa.RecordBatch) for batch in data):
        return read_rows(pa.Table.from_batches(data))
    return _once(_reader(data))


def _reader(data: object) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
        if hasattr(data, "__arrow_c_array__"):
            batch = pa.record_batch(data)
            return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise Unsupported(
            "the rows have a column of a type that Arrow does not have",
            found=str(error).strip(),
            hint="Cast it first: 128-bit integers of Polars to pl.Int64 or pl.Decimal(38, 0).",
        ) from None
    if hasattr(data, "fetch_record_batch"):  # a DuckDB relation
        return _checked(data.fetch_record_batch())
    if hasattr(data, "to_reader"):  # an Arrow scanner
        return _checked(data.to_reader())
    raise InvalidRequest(
        "not rows that Arrow can read",
        found=type(data).__name__,
        hint="Give a pyarrow table or reader, a pandas or Polars frame, or a DuckDB relation.",
    )


def _checked(reader: object) -> pa.RecordBatchReader:
    if not isinstance(reader, pa.RecordBatchReader):
        raise InvalidRequest("the rows do not come as an Arrow reader", found=type(reader).__name__)
    return reader


def _once(reader: pa.RecordBatchReader) -> Rows:
    is_taken = False

    def take() -> Iterator[pa.Table]:
        nonlocal is_taken
        if is_taken:
            raise InvalidRequest(
                "the rows must be read again, but this input can be read only once",
                hint="Another commit changed the table. Nothing was appended: retry with a new reader.",
            )
        is_taken = True
        return runs_of(reader)

    return take


def runs_of(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """The rows of a reader in runs that are sorted and written together; one without rows when there are none."""
    held: list[pa.RecordBatch] = []
    size = 0
    count = 0
    for batch in reader:
        held.append(batch)
        size += batch.nbytes
        if size >= RUN_BYTES:
            yield pa.Table.from_batches(held, reader.schema)
            held, size, count = [], 0, count + 1
    if held or not count:
        yield pa.Table.from_batches(held, reader.schema)
