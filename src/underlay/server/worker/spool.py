"""Reads a kept result: an Arrow file, from which any window can be read without the rest."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

import pyarrow as pa
import pyarrow.dataset as ds

from underlay.errors import InvalidRequest, UnknownColumn, name_hint
from underlay.local.sql.run import run_sql
from underlay.local.text.time_travel import quoted
from underlay.server.worker.job import WindowJob

MOST_BATCH_BYTES = 8 << 20
"""The largest batch: reading a window reads little more than its rows."""


def split_batch(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split a batch into parts of a few megabytes."""
    parts = max(1, -(-batch.nbytes // MOST_BATCH_BYTES))
    step = max(1, -(-batch.num_rows // parts))
    for at in range(0, batch.num_rows, step):
        yield batch.slice(at, step)


def open_window(job: WindowJob) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns, and the rows of the window. Raises UnknownColumn."""
    if job.order_by is not None:
        return _sorted(job)
    reader = pa.ipc.open_file(pa.memory_map(job.spool))
    return reader.schema, _sliced(reader, job.offset, job.limit)


def _sliced(reader: pa.ipc.RecordBatchFileReader, offset: int, limit: int | None) -> Iterator[pa.RecordBatch]:
    counts = [reader.get_batch(at).num_rows for at in range(reader.num_record_batches)]
    end = sum(counts) if limit is None else offset + limit
    for at, (count, after) in enumerate(zip(counts, accumulate(counts), strict=True)):
        begin = after - count
        if after > offset and begin < end:
            first = max(offset - begin, 0)
            yield reader.get_batch(at).slice(first, min(end, after) - begin - first)


def _sorted(job: WindowJob) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    rows = ds.dataset(job.spool, format="ipc")
    name = job.order_by or ""
    count = rows.schema.names.count(name)
    if count != 1:
        hint = name_hint(name, rows.schema.names)
        raise UnknownColumn("the result has no such column" if not count else "two columns have the name", hint=hint)
    if len({one.lower() for one in rows.schema.names}) < len(rows.schema.names):
        raise InvalidRequest("two columns have the same name", hint="Give them names with AS.")
    limit = "" if job.limit is None else f" LIMIT {job.limit:d}"
    order = f"{quoted(name)} {'DESC' if job.is_descending else 'ASC'}"
    text = f"SELECT * FROM kept ORDER BY {order} NULLS LAST{limit} OFFSET {job.offset:d}"
    result = run_sql(text, _no_table, list, given={"kept": rows})
    return result.schema, result.to_batches()


def _no_table(name: str, version: object, as_of: object) -> None:
    """Refuse any table: the query reads none of the lake's."""
