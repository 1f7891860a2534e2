"""A snapshot for DuckDB with a number for each row, to find the rows again that a query chooses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.local.dataset.cut_values import refuse_cut
from underlay.local.dataset.failures import FailureListener
from underlay.local.dataset.scanner import DEFAULT_BATCH_ROWS, Columns, Projection, TableScanner
from underlay.local.dataset.source import EngineDataset, SnapshotSource
from underlay.prune import FALSE, Or, Predicate
from underlay.prune.predicates.normalise import normalise
from underlay.runtime.locks import ProcessLock, cached_property
from underlay.scan.positions import Positions, matched_rows
from underlay.schema.convert.half_floats import widen_table

ROW_NUMBER = "underlay row\x1f"
"""The column of row numbers. The upper bits hold the file's number, the lower ones the row's position in the file. No
column of a table has this name: names hold no control characters."""
_POSITION_BITS = 40
Numbers = NDArray[np.int64]


@dataclass(slots=True)
class RowNumbers:
    """The files that scans numbered, and what they read. Scans may run in any thread."""

    _locations: dict[str, int] = field(default_factory=dict)
    _predicates: list[Predicate] = field(default_factory=list)
    _lock: ProcessLock = field(default_factory=ProcessLock)
    block_count: int = 0
    fetch_bytes: int = 0

    @property
    def predicate(self) -> Predicate:
        """A predicate that is true for every row that was scanned."""
        with self._lock:
            return normalise(Or(tuple(self._predicates))) if self._predicates else FALSE

    def begin(self, predicate: Predicate) -> None:
        """Record a scan of the matching rows."""
        with self._lock:
            self._predicates.append(predicate)

    def number(self, location: str, positions: Positions, *, block_count: int, fetch_bytes: int) -> Numbers:
        """Assign numbers to the rows of a file."""
        with self._lock:
            self.block_count += block_count
            self.fetch_bytes += fetch_bytes
            number = self._locations.setdefault(location, len(self._locations))
        return positions + (number << _POSITION_BITS)

    def places(self, numbers: Numbers) -> dict[str, tuple[Positions, Numbers]]:
        """For rows given by distinct numbers: their positions in each file, ascending, and each number's index."""
        order = np.argsort(numbers, kind="stable")
        files, positions = numbers[order] >> _POSITION_BITS, numbers[order] & ((1 << _POSITION_BITS) - 1)
        found: dict[str, tuple[Positions, Numbers]] = {}
        for location, number in self._locations.items():
            begin, end = np.searchsorted(files, (number, number + 1))
            if begin < end:
                found[location] = positions[begin:end], order[begin:end]
        return found


class NumberedDataset(EngineDataset):
    """The rows of a snapshot and their numbers."""

    def __init__(self, source: SnapshotSource, numbers: RowNumbers) -> None:
        super().__init__(source)
        self._numbers = numbers

    @property
    def schema(self) -> pa.Schema:
        """The columns, and the number."""
        return super().schema.append(pa.field(ROW_NUMBER, pa.int64()))

    def watched(self, on_failure: FailureListener) -> NumberedDataset:
        """The same, but it reports its errors before it raises them."""
        return NumberedDataset(replace(self.source, on_failure=on_failure), self._numbers)

    def scanner(  # type: ignore[override]  # as in the class above
        self,
        columns: Columns | None = None,
        filter: pc.Expression | None = None,
        batch_size: int = DEFAULT_BATCH_ROWS,
        **_: object,
    ) -> NumberedScanner:
        """A scan that reads nothing until it is iterated. Raises FilterMisread."""
        names = tuple(self.schema.names if columns is None else columns)
        kept = [name for name in names if name != ROW_NUMBER]
        return NumberedScanner(super().scanner(kept, filter, batch_size), names, self._numbers, self.source.on_failure)


class NumberedScanner(TableScanner):
    """A scan that adds the number column to another one's rows."""

    def __init__(
        self, scan: TableScanner, names: Sequence[str], numbers: RowNumbers, on_failure: FailureListener | None
    ) -> None:
        super().__init__(scan.query, Projection(names=tuple(names), expressions=None), scan.dataset_schema)
        self._read_schema = scan.projected_schema
        self._names = list(names)
        self._numbers = numbers
        self._listener = on_failure

    @cached_property
    def projected_schema(self) -> pa.Schema:
        """The columns of the answer."""
        fields = {one.name: one for one in (*self._read_schema, pa.field(ROW_NUMBER, pa.int64()))}
        return pa.schema([fields[name] for name in self._names])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, as they come."""
        try:
            self._numbers.begin(self.query.predicate)
            for found in matched_rows(self.query):
                numbers = self._numbers.number(
                    found.location, found.positions, block_count=found.block_count, fetch_bytes=found.fetch_bytes
                )
                refuse_cut(found.rows)
                rows = widen_table(found.rows)
                columns = dict(zip(rows.schema.names, rows.columns, strict=True))
                columns[ROW_NUMBER] = pa.chunked_array([pa.array(numbers)])
                table = pa.table([columns[name] for name in self._names], schema=self.projected_schema)
                yield from table.to_batches(DEFAULT_BATCH_ROWS)
        except Exception as error:  # bugs too: an engine would hide them behind an error of its own
            if self._listener is not None:
                self._listener(error)
            raise
