"""The streamed answer of a query. Its engine is freed at the last row, at Ctrl-C, or when the result is closed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import pyarrow as pa

from underlay.errors import InvalidRequest
from underlay.local.show.frames import as_pandas, as_polars, check_installed
from underlay.local.show.text import draw
from underlay.local.sql.interruptible import NoWorker, Worker

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # optional, and without types
    import polars as pl

_Read = TypeVar("_Read")
_SHOWN_ROWS = 20
_EXPLAINED = ["explain_key", "explain_value"]
"""The columns of EXPLAIN."""


class SqlResult:
    """Rows that can be read once. Use it in a `with` block, read it to its end, or close it."""

    def __init__(
        self,
        reader: pa.RecordBatchReader,
        *,
        worker: Worker,
        close: Callable[[], None],
        translate: Callable[[Exception], Exception],
        interrupt: Callable[[], None],
        on_end: Callable[[], None],
        types: Sequence[str] | None = None,
    ) -> None:
        self.schema: pa.Schema = reader.schema
        self.types = types
        """DuckDB's types of the columns, if DuckDB answered."""
        self.cancel = interrupt
        self._on_end = on_end
        self._reader = reader
        self._worker = worker
        self._translate = translate
        self._peeked: list[pa.RecordBatch] = []
        self._is_taken = False
        self._closing = weakref.finalize(self, close)

    @classmethod
    def of_table(cls, rows: pa.Table, types: Sequence[str] | None = None) -> SqlResult:
        """A result of rows that are in memory already."""
        reader, nothing = rows.to_reader(), _nothing
        return cls(
            reader,
            worker=NoWorker(),
            close=nothing,
            translate=_as_it_is,
            interrupt=nothing,
            on_end=nothing,
            types=types,
        )

    @property
    def is_explanation(self) -> bool:
        """Whether this is the answer of EXPLAIN: a drawing of many lines, not cells."""
        return list(self.schema.names) == _EXPLAINED

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch."""
        self._check_unread()
        self._is_taken = True
        return self._batches()

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, batch by batch."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """The rows, all at once."""
        self._check_unread()
        self._is_taken = True
        rest = self._read(self._reader.read_all)
        batches = self._peeked if rest is None else [*self._peeked, *rest.to_batches()]
        self._peeked = []
        self._end()
        return pa.Table.from_batches(batches, self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas frame."""
        check_installed("pandas")
        return as_pandas(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """The rows as a Polars frame."""
        check_installed("polars")
        return as_polars(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]  # not in the stubs

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:  # Any: values of the columns' types
        for batch in self.to_batches():
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def fetchall(self) -> list[tuple[Any, ...]]:  # Any: values of the columns' types
        """The rows as tuples of Python values."""
        return list(iter(self))  # not list(self), which would call len() first

    def show(self) -> None:
        """Print the first rows."""
        print(self)

    def __repr__(self) -> str:
        if self._is_read:
            return f"<SqlResult of {', '.join(self.schema.names)}, read>"
        table = self._peek(_SHOWN_ROWS + 1)
        if self.is_explanation:
            return "\n".join(str(text).rstrip("\n") for text in table.column(1).to_pylist())
        return draw(table.slice(0, _SHOWN_ROWS), has_more=table.num_rows > _SHOWN_ROWS)

    def head(self, rows: int = 10) -> pa.Table:
        """The first rows, which can still be read afterwards. Raises InvalidRequest when the result was read
        already.
        """
        self._check_unread()
        return self._peek(rows).slice(0, rows)

    def __len__(self) -> int:
        """How many rows there are. Loads all of them, and they can still be read. Raises InvalidRequest if they were
        read already.
        """
        self._check_unread()
        while (batch := self._next()) is not None:
            self._peeked.append(batch)
        return sum(batch.num_rows for batch in self._peeked)

    def __bool__(self) -> bool:
        return True

    def _repr_html_(self) -> str:
        from underlay.local.show.html import MOST_ROWS, as_html, as_text  # needed only in notebooks

        if self._is_read or self.is_explanation:
            return as_text(repr(self))
        return as_html(self._peek(MOST_ROWS + 1))

    @property
    def _is_read(self) -> bool:
        return self._is_taken or (not self._closing.alive and not self._peeked)

    def _check_unread(self) -> None:
        if self._is_taken:
            raise InvalidRequest("the result was read already", hint="Run the query again, or keep to_arrow().")

    def _peek(self, rows: int) -> pa.Table:
        """At least `count` rows, if there are so many."""
        while sum(batch.num_rows for batch in self._peeked) < rows:
            batch = self._next()
            if batch is None:
                break
            self._peeked.append(batch)
        return pa.Table.from_batches(self._peeked, self.schema)

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
        return self._read(self._reader.read_next_batch)

    def _read(self, read: Callable[[], _Read]) -> _Read | None:
        """The next batch of the reader. None at its end, which frees the engine."""
        if not self._closing.alive:
            return None
        try:
            return self._worker.call(read, self.cancel)
        except StopIteration:
            self._end()
            return None
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            self._closing()
            raise self._translate(error) from None
        except BaseException:  # Ctrl-C: the query was interrupted
            self._closing()
            raise

    def _end(self) -> None:
        """Free the engine after the last row."""
        if self._closing.alive:
            self._on_end()
        self._closing()


def _nothing() -> None:
    """For results without an engine to free or interrupt."""


def _as_it_is(error: Exception) -> Exception:
    return error
