"""A snapshot to scan with Arrow's columns and filters, and as the datasets that DuckDB in this process scans."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from underlay.cache.objects import DecodedCache
from underlay.local.dataset.failures import FailureListener, FilterMisread
from underlay.local.dataset.scanner import DEFAULT_BATCH_ROWS, Columns, TableScanner, make_projection
from underlay.prune import TRUE, And, Predicate
from underlay.prune.parse.arrow import SplitFilter, is_true_inside, named_columns, split_filter
from underlay.scan.query import Query, answer_schema
from underlay.scan.read.file_stores import FileStores
from underlay.schema.convert.half_floats import widened
from underlay.table.versions.snapshot import Snapshot


class NamedScan(NamedTuple):
    """A scan of a table that an engine asked for."""

    table: str | None
    query: Query


@dataclass(frozen=True, kw_only=True, eq=False)
class SnapshotSource:
    """One version of a table, or its rows that match `where`, without rows for which `implied` is not true.

    `on_failure` receives a scan's error before it is raised, as engines hide it behind an error of their own.
    """

    snapshot: Snapshot
    stores: FileStores
    cache: DecodedCache | None = None
    name: str | None = None
    where: pc.Expression | None = None
    implied: Predicate = TRUE
    on_failure: FailureListener | None = None
    scans: list[NamedScan] | None = None
    """Collects the scans."""
    refuses_cut: bool = False
    """Whether a scan raises InvalidRequest for values that DuckDB would truncate."""

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return answer_schema(self.snapshot.schema, tuple(self.snapshot.schema.names))

    def matching(self, expression: pc.Expression | None) -> SnapshotSource:
        """The rows that also match this."""
        if expression is None:
            return self
        return replace(self, where=expression if self.where is None else self.where & expression)

    def scan(
        self,
        columns: Columns | None = None,
        filter: pc.Expression | None = None,
        *,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        locations: Collection[str] | None = None,
        are_halves_widened: bool = False,
    ) -> TableScanner:
        """A scan that reads nothing until it is iterated. Raises UnknownColumn, BadPredicate."""
        schema = self.schema
        projection = make_projection(columns, schema)
        where = self.matching(filter).where
        split = SplitFilter(TRUE, None) if where is None else split_filter(where, schema)
        query = Query(
            snapshot=self.snapshot,
            columns=tuple(dict.fromkeys(projection.names)),
            stores=self.stores,
            cache=self.cache,
            predicate=split.predicate if self.implied == TRUE else And((split.predicate, self.implied)),
            rest=split.rest,
            rest_columns=() if split.rest is None else tuple(named_columns(split.rest, schema)),
        )
        if self.scans is not None:
            self.scans.append(NamedScan(self.name, query))
        return TableScanner(
            query,
            projection,
            schema,
            batch_rows=batch_rows,
            on_failure=self.on_failure,
            locations=locations,
            are_halves_widened=are_halves_widened,
            refuses_cut=self.refuses_cut,
        )


class EngineDataset(ds.Dataset):
    """The part of a dataset that DuckDB uses, and nothing else. Rows are passed without a copy.

    It has no C++ object inside, so Arrow's own functions would crash on it: it never leaves this package.
    """

    def __init__(self, source: SnapshotSource) -> None:
        self.source = source

    @property
    def schema(self) -> pa.Schema:
        """The columns as shown to DuckDB."""
        return widened(self.source.schema)

    @property
    def is_as_stored(self) -> bool:
        """Whether DuckDB sees the columns' own types, so that its filters mean the same here."""
        schema = self.source.schema
        return widened(schema) == schema

    def watched(self, on_failure: FailureListener) -> EngineDataset:
        """The same, but it reports its errors before it raises them."""
        return EngineDataset(replace(self.source, on_failure=on_failure))

    def uncut(self) -> EngineDataset:
        """The same, which raises InvalidRequest for values that DuckDB would truncate."""
        return EngineDataset(replace(self.source, refuses_cut=True))

    def noted(self, scans: list[NamedScan]) -> EngineDataset:
        """The same, but it records each scan."""
        return EngineDataset(replace(self.source, scans=scans))

    def narrow(self, implied: Predicate) -> None:
        """Leave out rows for which this is not true: none of them matters to the query."""
        self.source = replace(self.source, implied=implied)

    def scanner(  # type: ignore[override]  # what DuckDB asks for
        self,
        columns: Columns | None = None,
        filter: pc.Expression | None = None,
        batch_size: int = DEFAULT_BATCH_ROWS,
        **_: object,
    ) -> TableScanner:
        """A scan that reads nothing until it is iterated. Raises FilterMisread."""
        if self.source.on_failure is not None and filter is not None:
            _check_filter(filter, self.source.on_failure)
        return self.source.scan(columns, filter, batch_rows=batch_size, are_halves_widened=True)


def _check_filter(filter: pc.Expression, on_failure: FailureListener) -> None:
    """Raise FilterMisread for a filter that contains a bare `true`, into which DuckDB turns `c <= NaN`: nulls would
    match.
    """
    if "true" in str(filter) and is_true_inside(filter):
        error = FilterMisread("DuckDB handed over a comparison with NaN that is true for nulls")
        on_failure(error)
        raise error
