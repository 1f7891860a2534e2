"""System views: facts about a lake's tables, as tables for SQL. They are built when a query names them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from underlay.index.catalog import split_name
from underlay.local.dataset.failures import FailureListener
from underlay.prune import TRUE, And, columns_of
from underlay.prune.parse.arrow import split_filter
from underlay.prune.predicates.normalise import conjuncts
from underlay.prune.rows.matches import matches

NAMES = pa.schema([("dataset", pa.string()), ("table_name", pa.string())])
"""The first columns of every view."""
_NAME_COLUMNS = frozenset((name,) for name in NAMES.names)


class SystemView(Protocol):
    """Facts about tables; the first columns are the tables' names."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""

    def read(self, tables: Sequence[str], columns: Collection[str]) -> pa.Table:
        """The rows for these tables. Columns that were not requested may be null."""


class ViewDataset(ds.Dataset):
    """A system view for DuckDB. A filter on names decides which tables are looked at."""

    def __init__(self, view: SystemView, tables: Callable[[], list[str]], on_failure: FailureListener) -> None:
        self._view = view
        self._list_tables = tables
        self._on_failure = on_failure

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._view.schema

    def scanner(  # type: ignore[override]  # what DuckDB asks for
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **_: object
    ) -> ds.Scanner:
        """The rows that match."""
        wanted = self.schema.names if columns is None else list(columns)
        try:
            needed = {*wanted, *(() if filter is None else self._named_by(filter))}
            rows = self._view.read(self._tables_for(filter), needed)
        except Exception as error:
            self._on_failure(error)  # DuckDB hides it behind an error of its own
            raise
        return ds.dataset(rows).scanner(columns=wanted, filter=filter)

    def _tables_for(self, filter: pc.Expression | None) -> list[str]:
        tables = self._list_tables()
        predicate = TRUE if filter is None else split_filter(filter, self.schema).predicate
        told = And(tuple(part for part in conjuncts(predicate) if columns_of(part) <= _NAME_COLUMNS))
        pairs = [dict(zip(NAMES.names, split_name(table), strict=True)) for table in tables]
        names = pa.Table.from_pylist(pairs, schema=NAMES)
        is_kept = matches(told, names).to_pylist()
        return [table for table, kept in zip(tables, is_kept, strict=True) if kept]

    def _named_by(self, filter: pc.Expression) -> set[str]:
        split = split_filter(filter, self.schema)
        if split.rest is not None:
            return set(self.schema.names)
        return {path[0] for path in columns_of(split.predicate)}
