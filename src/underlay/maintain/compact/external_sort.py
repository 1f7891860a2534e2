"""Sorts more rows than memory holds: runs that fit are sorted and spilled to this machine's disk, then merged.

A merge step takes the part of every run that is in memory, and sorts these parts together. Of the runs with more rows
on disk, it takes the smallest last row, and passes on all rows up to it: no later row sorts before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_MERGE_BYTES = 256 << 20
"""About how much of all runs together is held in memory."""
_LEAST_ROWS = 1024

Indices = NDArray[np.int64]


def sorted_runs(runs: Iterable[pa.Table], order_of: Callable[[pa.Table], Indices]) -> Iterator[pa.Table]:
    """The rows of all runs in order, as tables that fit in memory."""
    given = iter(runs)
    first, second = next(given, None), next(given, None)
    if first is None:
        return
    if second is None:
        yield _taken(first, order_of(first))
        return
    with TemporaryDirectory(prefix="underlay-sort-") as folder:
        spilled = []
        for number, run in enumerate(chain((first, second), given)):
            spilled.append(_spill(Path(folder) / f"{number}.arrow", _taken(run, order_of(run))))
        del first, second
        yield from _merged(
            [_Spilled(file=file, batch_rows=_batch_rows(file, len(spilled))) for file in spilled], order_of
        )


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    row_count: int
    row_bytes: float


def _spill(path: Path, run: pa.Table) -> _File:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, run.schema) as writer:
        writer.write_table(run, max_chunksize=_LEAST_ROWS * 16)
    return _File(path, run.num_rows, max(run.nbytes / max(run.num_rows, 1), 1.0))


def _batch_rows(file: _File, run_count: int) -> int:
    return max(int(_MERGE_BYTES / run_count / file.row_bytes), _LEAST_ROWS)


class _Spilled:
    """A sorted run on the disk, read a part at a time."""

    def __init__(self, *, file: _File, batch_rows: int) -> None:
        self._batches = _read(file.path)
        self._batch_rows = batch_rows
        self._left = file.row_count
        self.held: pa.Table | None = None

    @property
    def has_more(self) -> bool:
        """Whether rows are left on the disk."""
        return self._left > 0

    def fill(self) -> int:
        """Read the next part if nothing is in memory. Returns how many rows are."""
        if (self.held is None or not self.held.num_rows) and self.has_more:
            some: list[pa.RecordBatch] = []
            while self.has_more and sum(batch.num_rows for batch in some) < self._batch_rows:
                some.append(next(self._batches))
                self._left -= some[-1].num_rows
            self.held = pa.Table.from_batches(some)
        return 0 if self.held is None else self.held.num_rows

    def drop(self, count: int) -> None:
        """Forget these first rows: they were passed on."""
        if self.held is not None:
            self.held = self.held.slice(count)


def _read(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path), "rb") as source:
        reader = pa.ipc.open_file(source)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def _merged(runs: list[_Spilled], order_of: Callable[[pa.Table], Indices]) -> Iterator[pa.Table]:
    while True:
        counts = [run.fill() for run in runs]
        held = [run.held for run in runs if run.held is not None]
        ends = np.cumsum(counts)
        if not ends[-1]:
            return
        rows = pa.concat_tables(held)
        order = order_of(rows)
        count = len(order)
        limits = [int(end) - 1 for end, run in zip(ends, runs, strict=True) if run.has_more]
        if limits:
            place = np.empty(len(order), np.int64)
            place[order] = np.arange(len(order))
            count = int(place[limits].min()) + 1
        passed = order[:count]
        yield _taken(rows, passed)
        owners = np.bincount(np.searchsorted(ends, passed, side="right"), minlength=len(runs))
        for run, gone in zip(runs, owners.tolist(), strict=True):
            run.drop(gone)


def _taken(rows: pa.Table, order: Indices) -> pa.Table:
    return rows.take(pa.array(order, pa.int64()))
