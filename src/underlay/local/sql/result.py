"""The answer of a query, read as it comes; its engine is freed at the last row, at Ctrl-C, or when it is closed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from underlay.errors import InvalidRequest, Unsupported
from underlay.local.sql.interruptible import Worker

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # optional, and without types
    import polars as pl

_SHOWN_ROWS = 20
_MAX_WIDTH = 32
_EXPLAINED = ["explain_key", "explain_value"]
"""The columns of EXPLAIN."""


class SqlResult:
    """Rows, once. Use it in a `with` block, or read it to its end, or close it."""

    def __init__(
        self,
        reader: pa.RecordBatchReader,
        *,
        worker: Worker,
        close: Callable[[], None],
        translate: Callable[[Exception], Exception],
        interrupt: Callable[[], None],
    ) -> None:
        self.schema: pa.Schema = reader.schema
        self.cancel = interrupt
        self._reader = reader
        self._worker = worker
        self._translate = translate
        self._peeked: list[pa.RecordBatch] = []
        self._is_taken = False
        self._closing = weakref.finalize(self, close)

    @property
    def is_explanation(self) -> bool:
        """Whether this is the answer of EXPLAIN: a drawing of many lines, not cells."""
        return list(self.schema.names) == _EXPLAINED

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, as they come."""
        if self._is_taken:
            raise InvalidRequest("the result was read already", hint="Run the query again, or keep to_arrow().")
        self._is_taken = True
        return self._batches()

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, as they come."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """The rows, all at once."""
        return pa.Table.from_batches(self.to_batches(), self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas frame."""
        try:
            return self.to_arrow().to_pandas()
        except ImportError as error:
            raise _not_installed("pandas") from error

    def to_polars(self) -> pl.DataFrame:
        """The rows as a Polars frame."""
        try:
            import polars as pl
        except ImportError as error:
            raise _not_installed("polars") from error
        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]  # not in the stubs

    def __iter__(self) -> Iterator[tuple[Any, ...]]:  # Any: values of the columns' types
        for batch in self.to_batches():
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def fetchall(self) -> list[tuple[Any, ...]]:  # Any: values of the columns' types
        """The rows as tuples of Python values."""
        return list(self)

    def show(self) -> None:
        """Print the first rows."""
        print(self)

    def __repr__(self) -> str:
        if self._is_taken or (not self._closing.alive and not self._peeked):
            return f"<SqlResult of {', '.join(self.schema.names)}, read>"
        while sum(batch.num_rows for batch in self._peeked) <= _SHOWN_ROWS:
            batch = self._next()
            if batch is None:
                break
            self._peeked.append(batch)
        table = pa.Table.from_batches(self._peeked, self.schema)
        if self.is_explanation:
            return "\n".join(str(text).rstrip("\n") for text in table.column(1).to_pylist())
        return _draw(table.slice(0, _SHOWN_ROWS), has_more=table.num_rows > _SHOWN_ROWS)

    def close(self) -> None:
        """Free the engine. What was not read is lost."""
        self._is_taken = True
        self._peeked.clear()
        self._closing()

    def __enter__(self) -> SqlResult:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._peeked
            self._peeked = []
            while (batch := self._next()) is not None:
                yield batch
        finally:
            self._closing()

    def _next(self) -> pa.RecordBatch | None:
        if not self._closing.alive:
            return None
        try:
            return self._worker.call(self._reader.read_next_batch, self.cancel)
        except StopIteration:
            self._closing()
            return None
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            self._closing()
            raise self._translate(error) from None
        except BaseException:  # Ctrl-C: the query was interrupted
            self._closing()
            raise


def _not_installed(library: str) -> Unsupported:
    return Unsupported(f"{library} is not installed", hint=f"Run pip install {library}, or use to_arrow().")


def _draw(table: pa.Table, *, has_more: bool) -> str:
    """The rows under the names of their columns; numbers to the right."""
    columns = [[_cell(value.as_py()) for value in column] for column in table.columns]
    names = _names(table)
    widths = [max(map(len, (name, *cells))) for name, cells in zip(names, columns, strict=True)]
    is_number = [_is_number(field.type) for field in table.schema]
    lines = [_line(names, widths, is_number), "  ".join("-" * width for width in widths)]
    lines += [_line(cells, widths, is_number) for cells in zip(*columns, strict=True)]
    if has_more:
        lines.append("…")
    return "\n".join(lines)


def _names(table: pa.Table) -> list[str]:
    return [_cell(name) for name in table.schema.names]


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _line(cells: Sequence[str], widths: Sequence[int], is_number: Sequence[bool]) -> str:
    placed = (
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, is_number, strict=True)
    )
    return "  ".join(placed).rstrip()


def _cell(value: object) -> str:
    text = "NULL" if value is None else str(value).replace("\n", " ")
    return text if len(text) <= _MAX_WIDTH else text[: _MAX_WIDTH - 1] + "…"
