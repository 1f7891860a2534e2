"""Reads rows to append, from anything that speaks Arrow, in runs that fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from tempfile import SpooledTemporaryFile
from weakref import finalize

import pyarrow as pa

from underlay.errors import InvalidRequest, SchemaMismatch, Unsupported
from underlay.schema.arrow_aliases import AnyArray

RUN_BYTES = 256 << 20
"""Bytes of Arrow memory that are sorted and written together."""
_KEPT_BYTES = 64 << 20
"""Rows kept for another read stay in memory up to this size."""

Rows = Callable[[], Iterable[pa.Table]]
"""The runs of an input, from its beginning at each call; an input that can be read only once raises at the second
call."""


def read_rows(data: object, *, is_kept: bool = False) -> Rows:
    """The rows of an Arrow table, batch, reader, stream, dataset or scanner, a pandas, Polars or DuckDB frame, a Polars
    LazyFrame, or a list of batches or of dicts. Raises InvalidRequest for anything else.

    `is_kept`: data that can be read only once is kept, on this machine's disk if large, to be read again.
    """
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        table = data
        return lambda: [table]
    if isinstance(data, list | tuple) and data and all(isinstance(batch, pa.RecordBatch) for batch in data):
        return read_rows(pa.Table.from_batches(data))
    if isinstance(data, list | tuple) and all(isinstance(row, Mapping) for row in data):
        return read_rows(_table_of(data))
    if hasattr(data, "scanner") and hasattr(data, "get_fragments"):  # an Arrow dataset, which can be read again
        dataset = data
        return lambda: runs_of(_checked(dataset.scanner().to_reader()))
    if hasattr(data, "collect") and hasattr(data, "collect_schema"):  # a Polars LazyFrame
        return read_rows(data.collect())
    return _kept(_reader(data)) if is_kept else _once(_reader(data))


def _table_of(rows: Sequence[Mapping[object, object]]) -> pa.Table:
    """The rows of a list of dicts: a column for each key that occurs, null in rows that lack it."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns: dict[str, AnyArray] = {}
    for name in names:
        if not isinstance(name, str):
            raise InvalidRequest("the name of a column must be text", found=repr(name))
        values = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise SchemaMismatch(
                "the values have no common Arrow type",
                place=name,
                found=str(error).strip().partition("\n")[0],
                hint="Give values of one type, or a pyarrow table with the column's type.",
            ) from None
    return pa.table(columns)


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
        hint="Give a pyarrow table, reader or dataset, a pandas or Polars frame, a list of dicts, or a DuckDB result.",
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


def _kept(reader: pa.RecordBatchReader) -> Rows:
    kept = SpooledTemporaryFile(max_size=_KEPT_BYTES)  # noqa: SIM115  # closed with what reads it
    once = _once(reader)
    is_whole = False

    def first() -> Iterator[pa.Table]:
        nonlocal is_whole
        with pa.ipc.new_stream(pa.PythonFile(kept, "w"), reader.schema) as writer:
            for run in once():
                writer.write_table(run)
                yield run
        is_whole = True

    def take() -> Iterator[pa.Table]:
        if not is_whole:
            return first()
        kept.seek(0)
        return runs_of(pa.ipc.open_stream(pa.PythonFile(kept, "r")))

    finalize(take, kept.close)
    return take


def runs_of(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """The rows of a reader in runs that are sorted and written together; a single empty run when there are none."""
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
