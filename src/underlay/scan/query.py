"""A query over one snapshot: selected columns of the rows that match, or their number, read by exact byte ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from underlay.cache.objects import DecodedCache
from underlay.errors import BadPredicate, NotFound
from underlay.plan import answers
from underlay.plan.plan import BlockPlan
from underlay.prune import TRUE, Predicate, columns_of, matches
from underlay.runtime.locks import cached_property
from underlay.scan.blooms.refine import BloomLoader
from underlay.scan.blooms.sidecars import Sidecars
from underlay.scan.plan_snapshot import plan_snapshot
from underlay.scan.read.file_shape import FileShape
from underlay.scan.read.file_stores import FileStores, ObjectPlace
from underlay.scan.read.pipeline import DEFAULT_BUDGET_BYTES, Task, default_workers, run_in_order
from underlay.scan.slabs import RowFilter, Slab, SlabFiles, reading_tasks, rows_together, slabs_of
from underlay.schema.convert.arrow import to_arrow_field
from underlay.schema.table_schema import TableSchema, leaves_in
from underlay.schema.types import Field
from underlay.table.versions.snapshot import Snapshot

RestFilter = Callable[[pa.Table], pa.Table]
"""The rows that an engine keeps, in their order."""


@runtime_checkable
class ExplainedFilter(Protocol):
    """A row filter that can say which of its parts prune."""

    def explain(self) -> Iterator[tuple[str, Predicate]]:
        """Each part of the condition, with a predicate that holds wherever it is true: TRUE for one that only
        filters."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """What to read of a snapshot.

    `columns` are top-level columns in the order of the answer. `rest` is a condition besides `predicate` that only
    Arrow or another engine can apply, and `rest_columns` are the columns that it names: all of them when it names one
    by its number. Without a `cache` no bloom filter is used.
    """

    snapshot: Snapshot
    columns: tuple[str, ...]
    stores: FileStores
    cache: DecodedCache | None = None
    predicate: Predicate = TRUE
    rest: pc.Expression | RestFilter | None = None
    rest_columns: tuple[str, ...] = ()
    workers: int | None = None
    budget_bytes: int = DEFAULT_BUDGET_BYTES
    done: list[tuple[int, int]] = field(default_factory=list, init=False, repr=False, compare=False)
    """Blocks and bytes read so far, piece by piece."""
    _shapes: dict[str, FileShape] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def table_schema(self) -> TableSchema:
        """All columns of the table."""
        return self.snapshot.schema

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the answer."""
        return answer_schema(self.table_schema, self.columns)

    @cached_property
    def read_columns(self) -> tuple[Field, ...]:
        """The columns of the answer, then those that only the conditions name."""
        named = dict.fromkeys((*self.columns, *(path[0] for path in columns_of(self.predicate)), *self.rest_columns))
        return tuple(self.table_schema.column(name) for name in named)

    @property
    def leaves(self) -> tuple[int, ...]:
        """The ids of the scalar columns to read."""
        return tuple(leaf.id for column in self.read_columns for leaf in leaves_in(column))

    @cached_property
    def plan(self) -> BlockPlan:
        """The plan: what is read, and why the rest is not."""
        try:
            plan = plan_snapshot(self.snapshot, self.predicate, self.leaves)
        except NotFound:
            self.snapshot.check_left()
            raise
        if self.cache is None:
            return plan
        sidecars = Sidecars(cache=self.cache, keys=self.snapshot.keys)
        return BloomLoader(sidecars=sidecars, shape_of=self._shape, locate=self._locate).refine(plan)

    def batches(self, slabs: Iterable[Slab] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows that match, in the order of the table's files; or those of some slabs of this query."""
        workers = self.workers or default_workers(self.snapshot.store)
        tasks = self._tasks(self.slabs() if slabs is None else slabs)
        for table in run_in_order(tasks, workers=workers, budget_bytes=self.budget_bytes):
            yield from answer(table, self.schema).to_batches()

    def reader(self) -> pa.RecordBatchReader:
        """The rows that match, as they come."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def table(self) -> pa.Table:
        """The rows that match, all at once."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def slabs(self, plan: BlockPlan | None = None) -> Iterator[Slab]:
        """The pieces of work of the plan, or of a given one with fewer of its blocks, in order."""
        return slabs_of(plan or self.plan, self.files, self.cache, is_remote=self.snapshot.store.is_remote)

    @property
    def files(self) -> SlabFiles:
        """What reading the slabs of this query takes."""
        return SlabFiles(self._shape, self._locate)

    def _tasks(self, slabs: Iterable[Slab]) -> Iterator[Task[pa.Table]]:
        row_filter = row_filter_of(self.predicate)
        read = partial(self._rows, row_filter)
        return reading_tasks(slabs, read, is_remote=self.snapshot.store.is_remote)

    def _rows(self, row_filter: RowFilter | None, slabs: tuple[Slab, ...]) -> pa.Table:
        try:
            found = self.apply_rest(rows_together(slabs, self.files, row_filter))
        except NotFound:
            self.snapshot.check_left()
            raise
        self.done.append((sum(len(slab.row_counts) for slab in slabs), sum(slab.fetch_bytes for slab in slabs)))
        return found

    def apply_rest(self, rows: pa.Table) -> pa.Table:
        """The rows that `rest` keeps, with all their columns. Raises BadPredicate."""
        if self.rest is None:
            return rows
        if not isinstance(self.rest, pc.Expression):
            return self.rest(rows)
        # in the table's order: a condition may name a column by its number
        named = [column.name for column in self.table_schema.fields if column.name in self.rest_columns]
        return keep_by_arrow(rows, self.rest, named)

    def _shape(self, layout: str) -> FileShape:
        if layout not in self._shapes:
            self._shapes[layout] = FileShape.of(self.snapshot.layout(layout), self.table_schema, self.read_columns)
        return self._shapes[layout]

    def _locate(self, location: str) -> ObjectPlace:
        return self.stores.locate(self.snapshot.keys, location)


@lru_cache(maxsize=256)
def answer_schema(schema: TableSchema, columns: tuple[str, ...]) -> pa.Schema:
    """The columns of an answer."""
    return pa.schema([to_arrow_field(schema.column(name)).remove_metadata() for name in columns])


def answer(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of the answer. A table without columns still has rows, unless it is made from arrays."""
    chosen = table.select(schema.names)
    return pa.Table.from_arrays(chosen.columns, schema=schema) if schema.names else chosen


def row_filter_of(predicate: Predicate) -> RowFilter | None:
    """The function that tells for which rows the predicate is true; None when it is true for all."""
    if predicate == TRUE:
        return None
    return lambda table: matches(predicate, table).to_numpy(zero_copy_only=False)


def keep_by_arrow(rows: pa.Table, condition: pc.Expression, columns: Sequence[str]) -> pa.Table:
    """The rows for which Arrow finds the condition on these columns true. Raises BadPredicate."""
    import pyarrow.dataset as ds  # slow: loads pandas if it is installed; few conditions come here

    try:
        found = ds.dataset(rows.select(columns)).to_table(columns={"is_match": condition}, use_threads=False)
        return rows.filter(found.column("is_match"))
    except pa.ArrowException as error:
        raise BadPredicate(f"Arrow cannot apply the condition: {error}", found=str(condition)) from error


def count_matches(query: Query) -> int:
    """The number of rows that match: without a request when every kept block matches in full."""
    exact = answers.exact_row_count(query.plan) if query.rest is None else None
    if exact is not None:
        return exact
    return sum(batch.num_rows for batch in replace(query, columns=()).batches())
