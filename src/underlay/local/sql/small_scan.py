"""A table for a single-threaded engine, which is faster for few rows: it refuses a scan of many rows."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from underlay.errors import UnderlayError
from underlay.local.dataset.scanner import Columns, TableScanner
from underlay.local.dataset.source import EngineDataset

MAX_ROWS = 1 << 17
"""About the rows that DuckDB gives to one thread at a time: with more, several threads have work."""


class TooManyRowsError(Exception):
    """The plan of a scan keeps more rows than one thread should read."""


class SmallScan(ds.Dataset):
    """A dataset whose scans are refused, before they read, if `is_refused` and they keep more than MAX_ROWS rows."""

    def __init__(self, dataset: EngineDataset, is_refused: Callable[[], bool]) -> None:
        self._dataset = dataset
        self._is_refused = is_refused

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._dataset.schema

    def scanner(  # type: ignore[override]  # what DuckDB asks for
        self, columns: Columns | None = None, filter: pc.Expression | None = None, **options: object
    ) -> TableScanner:
        """A scan that is planned already. Raises TooManyRowsError."""
        found = self._dataset.scanner(columns, filter, **options)  # type: ignore[arg-type]  # as it was asked
        try:
            row_count = found.query.plan.kept.rows
        except UnderlayError:  # the scan raises it again, and reports it to its listener
            return found
        if row_count > MAX_ROWS and self._is_refused():
            raise TooManyRowsError
        return found
