"""Frames, readers and datasets that a query can use besides the tables of the lake."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from underlay.errors import InvalidRequest
from underlay.local.dataset.cut_values import instant_columns
from underlay.local.dataset.dataset import TableDataset
from underlay.local.dataset.source import EngineDataset
from underlay.local.dataset.uncut_rows import UncutRows
from underlay.local.text.time_travel import quoted
from underlay.schema.convert.half_floats import widen_table

Given = pa.Table | ds.Dataset
_HINT = "Give a pyarrow table, reader or dataset, a pandas or Polars frame, a table of a lake, or a DuckDB relation."


class GivenTables:
    """Tables by their one-part names. Rows that can be read only once are loaded immediately: a query may scan them
    twice.

    Rows in memory become DuckDB tables, so that it filters them by its own rules: filters pushed to Arrow would compare
    NaN by Arrow's. Datasets stay where they are, and no filter is pushed into one that is not a lake's.
    """

    def __init__(self, tables: Mapping[str, object] | None) -> None:
        if not isinstance(tables, Mapping | None):
            raise InvalidRequest(
                "tables must be frames by name", found=type(tables).__name__, hint='Write tables={"df": df}.'
            )
        self._tables = {_checked(name): _read(name, rows) for name, rows in (tables or {}).items()}
        if len({name.lower() for name in self._tables}) < len(self._tables):
            raise InvalidRequest("the names of two tables differ only in case")

    def uncut(self) -> dict[str, Given]:
        """The same rows for a statement that changes tables: reading a value that DuckDB would truncate raises
        InvalidRequest."""
        return {name: _uncut(rows) for name, rows in self._tables.items()}

    @property
    def are_pushed_right(self) -> bool:
        """Whether filters may be pushed into them."""
        kept = [rows for rows in self._tables.values() if not isinstance(rows, pa.Table)]
        return all(isinstance(rows, EngineDataset) and rows.is_as_stored for rows in kept)

    def add(self, connection: duckdb.DuckDBPyConnection, on_failure: Callable[[Exception], None]) -> None:
        """Register them with a connection, until its transaction ends."""
        for name, rows in self._tables.items():
            if isinstance(rows, pa.Table):
                connection.register("underlay given", widen_table(rows))
                connection.execute(f'CREATE TEMP TABLE {quoted(name)} AS FROM "underlay given"')
                connection.unregister("underlay given")
            else:
                watched = rows.watched(on_failure) if isinstance(rows, EngineDataset | UncutRows) else rows
                connection.from_arrow(watched).create_view(name, replace=False)


def _checked(name: object) -> str:
    if not isinstance(name, str) or not name or "." in name:
        raise InvalidRequest(
            "the name of a frame must have no dot: names with a dot are tables of the lake", found=repr(name)
        )
    return name


def _uncut(rows: Given) -> Given:
    if isinstance(rows, EngineDataset):
        return rows.uncut()
    if not instant_columns(rows.schema):
        return rows
    return UncutRows(ds.dataset(widen_table(rows)) if isinstance(rows, pa.Table) else rows)


def _read(name: object, rows: object) -> Given:
    if isinstance(rows, TableDataset):
        return EngineDataset(rows.source)
    if isinstance(rows, pa.Table | ds.Dataset):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, list | tuple) and rows and all(isinstance(batch, pa.RecordBatch) for batch in rows):
        return pa.Table.from_batches(rows)
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(rows).read_all()
    if hasattr(rows, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(rows)])
    if hasattr(rows, "to_reader"):  # a scanner
        return _read(name, rows.to_reader())
    raise InvalidRequest("not rows that Arrow can read", place=str(name), found=type(rows).__name__, hint=_HINT)
