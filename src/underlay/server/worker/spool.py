"""Reads a kept result: an Arrow file, from which any window can be read without the rest."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from underlay.errors import UnknownColumn, name_hint
from underlay.local.sql.run import run_sql
from underlay.server.kept.rows_file import map_rows
from underlay.server.worker.job import WindowJob, order_path

MOST_BATCH_BYTES = 8 << 20
"""The largest batch: reading a window reads little more than its rows."""
_TAKEN_ROWS = 1_000


def split_batch(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split a batch into parts of a few megabytes."""
    parts = max(1, -(-batch.nbytes // MOST_BATCH_BYTES))
    step = max(1, -(-batch.num_rows // parts))
    for at in range(0, batch.num_rows, step):
        yield batch.slice(at, step)


def open_window(job: WindowJob) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns, and the rows of the window. Raises UnknownColumn."""
    reader = pa.ipc.open_file(map_rows(job.spool))
    if job.order_by is not None:
        return reader.schema, _sorted(job, reader)
    return reader.schema, _sliced(reader, job.offset, job.limit)


def _sliced(reader: pa.ipc.RecordBatchFileReader, offset: int, limit: int | None) -> Iterator[pa.RecordBatch]:
    counts = [reader.get_batch(at).num_rows for at in range(reader.num_record_batches)]
    end = sum(counts) if limit is None else offset + limit
    for at, (count, after) in enumerate(zip(counts, accumulate(counts), strict=True)):
        begin = after - count
        if after > offset and begin < end:
            first = max(offset - begin, 0)
            yield reader.get_batch(at).slice(first, min(end, after) - begin - first)


def _sorted(job: WindowJob, reader: pa.ipc.RecordBatchFileReader) -> Iterator[pa.RecordBatch]:
    """The rows of the window, in the order of a column. Raises UnknownColumn."""
    name, names = job.order_by or "", reader.schema.names
    if names.count(name) != 1:
        detail = "two columns have the name" if name in names else "the result has no such column"
        raise UnknownColumn(detail, hint=name_hint(name, names))
    order = _order_of(job, reader, names.index(name))
    end = None if job.limit is None else job.offset + job.limit
    return _taken(reader, order[job.offset : end])


def _order_of(job: WindowJob, reader: pa.ipc.RecordBatchFileReader, column: int) -> npt.NDArray[np.uint64]:
    """The places of the rows in the order of a column. It is computed once and kept beside them: all windows belong to
    one order then, also among equal rows, so that together they have each row once."""
    path = Path(order_path(job.spool, column, is_descending=job.is_descending))
    if not path.exists():
        rows = reader.read_all()
        places = pa.array(np.arange(rows.num_rows, dtype=np.uint64))
        keys = pa.table({"key": rows.column(column), "place": places})
        way = "DESC" if job.is_descending else "ASC"
        text = f"SELECT place FROM kept ORDER BY key {way} NULLS LAST, place"
        order = run_sql(text, _no_table, list, given={"kept": keys}).to_arrow().column(0).to_numpy()
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
            np.save(file, order)
        os.replace(file.name, path)  # whole or not at all: another window may compute the same
    found: npt.NDArray[np.uint64] = np.load(path, mmap_mode="r")
    return found


def _taken(reader: pa.ipc.RecordBatchFileReader, order: npt.NDArray[np.uint64]) -> Iterator[pa.RecordBatch]:
    """The rows at these places, a few thousand at a time."""
    counts = [reader.get_batch(at).num_rows for at in range(reader.num_record_batches)]
    begins = np.array([0, *accumulate(counts)], dtype=np.int64)
    for first in range(0, len(order), _TAKEN_ROWS):
        places = order[first : first + _TAKEN_ROWS].astype(np.int64)
        batch_of = np.searchsorted(begins, places, side="right") - 1
        by_batch = np.argsort(batch_of, kind="stable")
        parts = []
        for batch in np.unique(batch_of):
            inside = places[by_batch][batch_of[by_batch] == batch] - begins[batch]
            parts.append(reader.get_batch(int(batch)).take(pa.array(inside, pa.int64())))
        back = np.empty_like(by_batch)
        back[by_batch] = np.arange(len(by_batch))
        yield from (
            pa.Table.from_batches(parts).combine_chunks().take(pa.array(back, pa.int64())).combine_chunks().to_batches()
        )


def _no_table(name: str, version: object, as_of: object) -> None:
    """Refuse any table: the query reads none of the lake's."""
