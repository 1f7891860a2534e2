"""Resolves each table that a query names once, to one snapshot, whichever engine runs the query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from underlay.errors import Unsupported
from underlay.index.catalog import split_name
from underlay.local.sql.duckdb_errors import no_table
from underlay.local.text.time_travel import Rewritten, Travel
from underlay.runtime.locks import cached_property

if TYPE_CHECKING:
    from underlay.local.dataset.source import EngineDataset  # half of the package, which `select 1` does not need
    from underlay.local.sql.views import SystemView

Resolve: TypeAlias = "Callable[[str, int | str | None, datetime | None], EngineDataset | None]"
"""Returns a table's snapshot by name: the newest, a version by number or tag, or as of a moment. None if the table does
not exist."""

Views: TypeAlias = "Callable[[], Mapping[str, SystemView]]"
"""Returns the system views by name. Called only when a query names the dataset `underlay`."""
SYSTEM = "underlay"
"""The dataset of system views."""

_CATALOGS = ("information_schema", "duckdb_tables", "duckdb_views", "duckdb_columns", "pg_catalog", "duckdb_schemas")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueriedTable:
    """A snapshot, and its name in the query."""

    schema: str
    table: str
    dataset: EngineDataset


class QueriedTables:
    """The tables of one query. Raises TableNotFound, and Unsupported for a table that DuckDB would misread."""

    def __init__(
        self,
        rewritten: Rewritten,
        resolve: Resolve,
        tables: Callable[[], Iterable[str]],
        views: Views | None = None,
    ) -> None:
        self._rewritten = rewritten
        self._resolve = resolve
        self._list_tables = tables
        self._views = views

    @cached_property
    def tables(self) -> list[str]:
        """The names of all existing tables."""
        return sorted(self._list_tables())

    @cached_property
    def named(self) -> list[QueriedTable]:
        """The tables and versions whose names occur in the text, or all tables if it queries the catalog."""
        newest = ((name, self._resolve(name, None, None)) for name in self._names())
        found = [
            *map(self._version, self._rewritten.travels),
            *(_source(name, dataset) for name, dataset in newest if dataset is not None),
        ]
        for source in found:
            if f"{source.schema}.{source.table}".lower() in self._rewritten.folded_pairs:
                refuse_alike_names(source.dataset.schema, f"{source.schema}.{source.table}")
        return found

    @cached_property
    def views(self) -> dict[str, SystemView]:
        """The system views whose names occur in the text, by their names in the dataset; a table of the same name
        wins.
        """
        if self._views is None or SYSTEM not in self._rewritten.words:
            return {}
        pairs = self._rewritten.folded_pairs - {table.lower() for table in self.tables}
        return {name: view for name, view in self._views().items() if f"{SYSTEM}.{name}" in pairs}

    @cached_property
    def are_pushed_right(self) -> bool:
        """Whether DuckDB compares all columns as Arrow does, so that either may filter.

        DuckDB pushes no nanoseconds of a day, supports only microseconds for timestamps with a time zone, and no
        float16.
        """
        shown = [source.dataset for source in self.named]
        are_stored = all(dataset.is_as_stored for dataset in shown)
        return are_stored and not any(has_unlike_type(field.type) for dataset in shown for field in dataset.schema)

    def find_named(self, dataset: str, table: str) -> QueriedTable | None:
        """The newest version of a table that occurs in the text."""
        name = f"{dataset}.{table}".lower()
        return next((one for one in self.named if f"{one.schema}.{one.table}".lower() == name), None)

    def _names(self) -> list[str]:
        """The tables whose newest version is needed. Some of these names may really be columns."""
        if not self._rewritten.words.isdisjoint(_CATALOGS):
            return self.tables
        pairs = self._rewritten.folded_pairs
        return [name for name in self.tables if name.lower() in pairs] if pairs else []

    def _version(self, travel: Travel) -> QueriedTable:
        name = f"{travel.dataset}.{travel.table}"
        written = next((one for one in self.tables if one.lower() == name.lower()), None)
        found = None if written is None else self._resolve(written, travel.version, travel.as_of)
        if found is None:
            raise no_table(name, self.tables)
        return QueriedTable(schema=travel.schema, table=travel.table, dataset=found)


def _source(name: str, dataset: EngineDataset) -> QueriedTable:
    schema, table = split_name(name)
    return QueriedTable(schema=schema, table=table, dataset=dataset)


def refuse_alike_names(schema: pa.Schema, place: str | None = None) -> None:
    """Raise Unsupported for columns, or fields of one struct, that DuckDB cannot tell apart."""
    alike = _alike_names(schema)
    if alike is not None:
        raise Unsupported(
            "SQL cannot tell apart columns whose names differ only in case",
            place=place,
            found=" and ".join(alike),
            hint="Read the table with scan(), or rename a column.",
        )


@lru_cache(maxsize=256)
def _alike_names(schema: pa.Schema) -> list[str] | None:
    for group in _groups(pa.struct(list(schema)), ()):
        by_fold: dict[bytes, list[str]] = {}
        for name in group:
            by_fold.setdefault(name.encode().lower(), []).append(name)  # of bytes: folds only A to Z, as DuckDB does
        alike = next((names for names in by_fold.values() if len(names) > 1), None)
        if alike is not None:
            return alike
    return None


def _groups(kind: pa.DataType, path: tuple[str, ...]) -> Iterator[list[str]]:
    """The names on each level of a type, with their paths."""
    fields = _fields(kind)
    if isinstance(kind, pa.StructType):
        yield [".".join((*path, field.name)) for field in fields]
    for field in fields:
        yield from _groups(field.type, (*path, field.name))


def has_unlike_type(kind: pa.DataType) -> bool:
    """Whether DuckDB and Arrow compare values of a type differently."""
    if isinstance(kind, pa.TimestampType):
        return kind.unit == "ns" and kind.tz is not None
    return kind == pa.time64("ns") or any(has_unlike_type(field.type) for field in _fields(kind))


def _fields(kind: pa.DataType) -> list[pa.Field[pa.DataType]]:
    return [kind.field(at) for at in range(kind.num_fields)]
