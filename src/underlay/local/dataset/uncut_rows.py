"""Rows that are not of a lake, for statements that change tables by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from underlay.errors import InvalidRequest
from underlay.local.dataset.cut_values import refuse_cut
from underlay.local.dataset.failures import FailureListener


class UncutRows(ds.Dataset):
    """Rows for DuckDB, which raise InvalidRequest when it reads a value that it would truncate.

    As in EngineDataset there is no C++ object inside, so it never leaves this package.
    """

    def __init__(self, rows: ds.Dataset, on_failure: FailureListener | None = None) -> None:
        self._rows = rows
        self._on_failure = on_failure

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._rows.schema

    def watched(self, on_failure: FailureListener) -> UncutRows:
        """The same, but it reports its errors before it raises them."""
        return UncutRows(self._rows, on_failure)

    def scanner(  # type: ignore[override]  # what DuckDB asks for
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **_: object
    ) -> ds.Scanner:
        """A scan of these columns."""
        read = self._rows.scanner(columns=None if columns is None else list(columns), filter=filter)
        return ds.Scanner.from_batches(self._checked(read), schema=read.projected_schema)

    def _checked(self, read: ds.Scanner) -> Iterator[pa.RecordBatch]:
        for batch in read.to_batches():
            try:
                refuse_cut(batch)
            except InvalidRequest as error:
                if self._on_failure is not None:
                    self._on_failure(error)
                raise
            yield batch
