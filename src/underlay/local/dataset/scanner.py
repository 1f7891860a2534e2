"""One scan of a snapshot as Arrow's engines ask for it: columns or expressions, and a filter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from underlay.errors import UnknownColumn, Unsupported, name_hint
from underlay.plan.answers import exact_row_count
from underlay.prune import TRUE
from underlay.prune.parse.arrow import SplitFilter, is_true_inside, named_columns, split_filter
from underlay.scan.query import Query

DEFAULT_BATCH_ROWS = 1 << 17
Columns = Sequence[str] | Mapping[str, pc.Expression]
"""Names of columns, or what to call an expression over them."""
FailureListener = Callable[[Exception], None]
MakeQuery = Callable[[Sequence[str], SplitFilter], Query]
"""The query for these columns of the rows that match."""


class FilterMisread(Exception):
    """DuckDB handed over a filter that does not mean what the query says. Without filters the query is right."""


def check_filter(filter: pc.Expression, on_failure: FailureListener) -> None:
    """Raise FilterMisread for a filter with a bare `true`, which DuckDB makes of `c <= NaN`: nulls would match."""
    if "true" in str(filter) and is_true_inside(filter):
        error = FilterMisread("DuckDB handed over a comparison with NaN that is true for nulls")
        on_failure(error)
        raise error


def not_possible(verb: str) -> Unsupported:
    """What Arrow's own datasets do and a snapshot does not."""
    return Unsupported(f"{verb} is not possible here", hint="Use to_table() and what Arrow tables can do.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Projection:
    """What to read, and what to make of it. No expressions: the columns as they are."""

    names: tuple[str, ...]
    expressions: Mapping[str, pc.Expression] | None

    def apply(self, table: pa.Table) -> pa.Table:
        if self.expressions is None:
            return table.select(self.names)
        return ds.dataset(table).to_table(columns=dict(self.expressions), use_threads=False)


class TableScanner(ds.Scanner):
    """One scan of a dataset, that can be run again. Memory is bounded by the query's budget."""

    def __init__(
        self,
        schema: pa.Schema,
        make_query: MakeQuery,
        columns: Columns | None,
        where: pc.Expression | None,
        batch_rows: int,
        on_failure: FailureListener | None,
    ) -> None:
        self._schema = schema
        self._make_query = make_query
        self._batch_rows = batch_rows
        self._on_failure = on_failure
        self._projection = _projection(columns, schema)
        self._split = SplitFilter(TRUE, None) if where is None else split_filter(where, schema)

    @property
    def dataset_schema(self) -> pa.Schema:
        """The columns of the table."""
        return self._schema

    @property
    def projected_schema(self) -> pa.Schema:
        """The columns of the answer."""
        return self._projected_schema

    @cached_property
    def _projected_schema(self) -> pa.Schema:
        read = pa.schema([self._schema.field(name) for name in self._projection.names])
        return self._projection.apply(read.empty_table()).schema

    @cached_property
    def query(self) -> Query:
        """What is read, with its plan."""
        return self._make_query(self._projection.names, self._split)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, as they come."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, as they come."""
        try:
            for batch in self.query.batches():
                yield from self._finished(batch)
        except Exception as error:  # bugs too: an engine would hide them behind an error of its own
            if self._on_failure is not None:
                self._on_failure(error)
            raise

    def to_table(self) -> pa.Table:
        """The rows, all at once."""
        return pa.Table.from_batches(self.to_batches(), self.projected_schema)

    def scan_batches(self) -> NoReturn:
        """Refused: a snapshot has no fragments."""
        raise not_possible("scan_batches")

    def head(self, num_rows: int) -> pa.Table:
        """The first rows. Reads only the files that hold them."""
        taken: list[pa.RecordBatch] = []
        left = num_rows
        for batch in self.to_batches() if left > 0 else ():
            taken.append(batch.slice(0, left))
            left -= taken[-1].num_rows
            if left == 0:
                break
        return pa.Table.from_batches(taken, self.projected_schema)

    def take(self, indices: object) -> pa.Table:
        """The rows of these positions."""
        return self.to_table().take(indices)  # type: ignore[arg-type]  # what Arrow takes

    def count_rows(self) -> int:
        """How many rows match: from metadata alone where that is exact."""
        if self._split.rest is None:
            known = exact_row_count(self.query.plan)
            if known is not None:
                return known
        return sum(batch.num_rows for batch in self.to_batches())

    def _finished(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if self._projection.expressions is None and batch.num_rows <= self._batch_rows:
            yield batch
            return
        table = self._projection.apply(pa.Table.from_batches([batch]))
        yield from table.to_batches(max_chunksize=self._batch_rows)


def _projection(columns: Columns | None, schema: pa.Schema) -> _Projection:
    if columns is None:
        return _Projection(names=tuple(schema.names), expressions=None)
    if isinstance(columns, Mapping):
        wanted = set[str]().union(*(named_columns(one, schema) for one in columns.values()))
        names = tuple(name for name in schema.names if name in wanted)
        return _Projection(names=names or tuple(schema.names[:1]), expressions=columns)
    if all(name in schema.names for name in columns):
        return _Projection(names=tuple(columns), expressions=None)
    return _projection({name: _reference(name, schema) for name in columns}, schema)


def _reference(name: str, schema: pa.Schema) -> pc.Expression:
    """A column, or a field inside one, written with dots."""
    if name in schema.names:
        return pc.field(name)
    first, *rest = name.split(".")
    if first not in schema.names or not rest:
        raise UnknownColumn(f"there is no column {name}", hint=name_hint(name, schema.names))
    return pc.field(first, *rest)
