"""Rows inserted and deleted between two versions of a table, not read yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from underlay.scan.changes.row_changes import RowChanges

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]  # an optional library without types
    import polars


class Changes:
    """Changed rows. Each read fetches them again, with the same result. Speaks the Arrow PyCapsule interface.

    Besides the table's columns each row has `_change` (`insert` or `delete`), `_version` and `_committed_at`. An update
    is a delete and an insert in one version.
    """

    def __init__(self, changes: RowChanges, name: str) -> None:
        self._changes = changes
        self._name = name

    @property
    def schema(self) -> pa.Schema:
        """The columns: those of the last version, then `_change`, `_version` and `_committed_at`."""
        return self._changes.schema

    def to_arrow(self) -> pa.Table:
        """All changed rows."""
        return pa.Table.from_batches(self._changes.batches(), self.schema)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as they are read, version by version, in bounded memory."""
        return self._changes.batches()

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self._changes.batches())

    def to_pandas(self) -> pandas.DataFrame:
        """All changed rows as a pandas frame; pandas must be installed."""
        from underlay.local.show.frames import as_pandas, check_installed

        check_installed("pandas")
        return as_pandas(self.to_arrow())

    def to_polars(self) -> polars.DataFrame:
        """All changed rows as a Polars frame; Polars must be installed."""
        from underlay.local.show.frames import as_polars, check_installed

        check_installed("polars")
        return as_polars(self.to_arrow())

    def count(self) -> int:
        """How many rows. Versions that only add or only delete are counted from metadata."""
        return self._changes.count()

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        """True, also without rows: no changes are changes too."""
        return True

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow C stream."""
        return self.to_reader().__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]  # pyarrow's

    def __arrow_c_schema__(self) -> object:
        """The columns."""
        return self.schema.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"Changes({self._name}, versions {self._changes.begin + 1} to {self._changes.end.version})"
