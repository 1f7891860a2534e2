"""DB-API 2.0 over the client: cursors whose rows are tuples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from underlay.errors import InvalidRequest, Unavailable, UnderlayError, Unsupported

if TYPE_CHECKING:
    from underlay.client.connection import RemoteConnection

apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"
Error = DatabaseError = InternalError = UnderlayError
InterfaceError = ProgrammingError = DataError = IntegrityError = InvalidRequest
OperationalError = Unavailable
NotSupportedError = Unsupported
_COUNT = "num_affected_rows"
Described = tuple[str, str, None, None, None, None, bool]


class Cursor:
    """Runs one statement at a time. `?` takes its values from a list, `$name` from a mapping."""

    arraysize = 1

    def __init__(self, connection: RemoteConnection) -> None:
        self.connection = connection
        self.description: list[Described] | None = None
        """Name, type and nullability of each column."""
        self.rowcount = -1
        """How many rows a change affected; -1 for a query."""
        self._rows: Iterator[tuple[Any, ...]] | None = None  # Any: values of the columns' types

    def execute(self, operation: str, parameters: Sequence[object] | Mapping[str, object] | None = None) -> Cursor:
        """Run a statement."""
        result = self.connection.sql(operation, parameters)
        self.description = [
            (field.name, str(field.type), None, None, None, None, field.nullable) for field in result.schema
        ]
        self.rowcount = -1
        self._rows = (
            row
            for batch in result.to_batches()
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        )
        if result.schema.names[:1] == [_COUNT]:
            rows = list(self._rows)
            self.rowcount = rows[0][0] if rows and rows[0][0] is not None else -1
            self._rows = iter(rows)
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Sequence[object]]) -> Cursor:
        """Run a statement once for each list of values; each run commits by itself."""
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
        return self

    def fetchone(self) -> tuple[Any, ...] | None:  # Any: values of the columns' types
        """The next row."""
        return next(self._current(), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:  # Any: values of the columns' types
        """The next rows, at most `size`."""
        wanted = self.arraysize if size is None else size
        return list(islice(self._current(), wanted))

    def fetchall(self) -> list[tuple[Any, ...]]:  # Any: values of the columns' types
        """All rows that are left."""
        return list(self._current())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._current()

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Does nothing: values carry their types."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing: cells may have any size."""

    def close(self) -> None:
        """Stop reading."""
        self._rows = None

    def _current(self) -> Iterator[tuple[Any, ...]]:
        if self._rows is None:
            raise InvalidRequest("there are no rows", hint="Call execute first.")
        return self._rows
