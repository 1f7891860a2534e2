"""One scan of a snapshot, as Arrow's engines request it: columns or expressions, and a filter."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from underlay.errors import InvalidRequest, UnknownColumn, name_hint
from underlay.local.dataset.cut_values import refuse_cut
from underlay.local.dataset.failures import FailureListener
from underlay.local.dataset.virtual_files import dataset_of_files
from underlay.plan.answers import exact_row_count
from underlay.prune.parse.arrow import named_columns
from underlay.runtime.locks import cached_property
from underlay.scan.query import Query
from underlay.scan.slabs import Slab
from underlay.schema.convert.half_floats import widen, widened
from underlay.values.no_rows import no_rows

DEFAULT_BATCH_ROWS = 1 << 17
FILE_BYTES = 8 << 20
"""Bytes of chunks that Arrow sees as one file, unless a single block has more: about six times as much in memory."""
FILE_ROWS = 1 << 20
_READ_AHEAD = 2
Columns = Sequence[str] | Mapping[str, pc.Expression]
"""Names of columns, or expressions by their output names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """The columns to read, and the expressions to compute. Without expressions: the columns as they are."""

    names: tuple[str, ...]
    expressions: Mapping[str, pc.Expression] | None

    def apply(self, table: pa.Table) -> pa.Table:
        """The columns of the answer."""
        if self.expressions is None:
            return table.select(self.names)
        return ds.dataset(table).to_table(columns=dict(self.expressions), use_threads=False)


class TableScanner:
    """One scan of a snapshot, which can be run again. Memory is bounded by the query's budget.

    It has those methods of Arrow's scanners that engines call, but is not one: `arrow_scanner` makes those that Arrow's
    C++ can read. `locations` are the files to read; None for all. `are_halves_widened` is for DuckDB.
    """

    def __init__(
        self,
        query: Query,
        projection: Projection,
        schema: pa.Schema,
        *,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        on_failure: FailureListener | None = None,
        locations: Collection[str] | None = None,
        are_halves_widened: bool = False,
        refuses_cut: bool = False,
    ) -> None:
        self.query = query
        self.dataset_schema = schema
        self._projection = projection
        self._is_plain = projection.expressions is None and projection.names == query.columns
        self._batch_rows = batch_rows
        self._on_failure = on_failure
        self._locations = locations
        self._are_halves_widened = are_halves_widened
        self._refuses_cut = refuses_cut

    @cached_property
    def projected_schema(self) -> pa.Schema:
        """The columns of the answer."""
        schema = self.query.schema
        found = schema if self._is_plain else self._projection.apply(no_rows(schema)).schema
        return widened(found) if self._are_halves_widened else found

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, batch by batch."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch."""
        try:
            slabs = self._slabs()
            for batch in self.query.batches() if slabs is None else self.query.batches(slabs):
                if self._refuses_cut:
                    refuse_cut(batch)
                yield from map(widen, self._finished(batch)) if self._are_halves_widened else self._finished(batch)
        except Exception as error:  # bugs too: an engine would hide them behind an error of its own
            if self._on_failure is not None:
                self._on_failure(error)
            raise

    def to_table(self) -> pa.Table:
        """The rows, all at once."""
        return pa.Table.from_batches(self.to_batches(), self.projected_schema)

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
        if self.query.rest is None and self._locations is None:
            known = exact_row_count(self.query.plan)
            if known is not None:
                return known
        bare = replace(self.query, columns=())
        return sum(batch.num_rows for batch in bare.batches(_chosen(bare, self._locations)))

    def arrow_scanner(self, **options: object) -> ds.Scanner:
        """The same scan for Arrow's C++. It is planned now, and rows are read on demand."""
        groups = list(_groups(self._slabs() or self.query.slabs()))
        query, rows = self.query, self._batch_rows

        def read(number: int) -> Iterator[pa.RecordBatch]:
            for batch in query.batches(groups[number]):
                yield from _cut(batch, rows)

        name = f"{query.snapshot.keys.folder}/{query.snapshot.version}"
        files = dataset_of_files(len(groups), read, file_schema=query.schema, schema=self.dataset_schema, name=name)
        made = self._projection.expressions
        chosen = {"fragment_readahead": _READ_AHEAD} | options
        columns = list(self._projection.names) if made is None else dict(made)
        return files.scanner(columns=columns, batch_size=rows, **chosen)  # type: ignore[arg-type]  # Arrow checks them

    def _slabs(self) -> Iterator[Slab] | None:
        return _chosen(self.query, self._locations)

    def _finished(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if self._is_plain and batch.num_rows <= self._batch_rows:
            yield batch
            return
        table = self._projection.apply(pa.Table.from_batches([batch]))
        yield from table.to_batches(max_chunksize=self._batch_rows)


def _chosen(query: Query, locations: Collection[str] | None) -> Iterator[Slab] | None:
    return None if locations is None else (slab for slab in query.slabs() if slab.location in locations)


def _groups(slabs: Iterator[Slab]) -> Iterator[tuple[Slab, ...]]:
    """Neighbours that are read together."""
    held: list[Slab] = []
    held_bytes = held_rows = 0
    for slab in (piece for one in slabs for piece in one.cut(FILE_BYTES)):
        size, rows = slab.fetch_bytes, sum(slab.row_counts)
        if held and (held_bytes + size > FILE_BYTES or held_rows + rows > FILE_ROWS):
            yield tuple(held)
            held, held_bytes, held_rows = [], 0, 0
        held.append(slab)
        held_bytes += size
        held_rows += rows
    if held:
        yield tuple(held)


def _cut(batch: pa.RecordBatch, most_rows: int) -> Iterator[pa.RecordBatch]:
    for begin in range(0, batch.num_rows, most_rows):
        yield batch.slice(begin, most_rows)


def make_projection(columns: Columns | None, schema: pa.Schema) -> Projection:
    """The projection that an engine requests. Raises UnknownColumn, InvalidRequest."""
    if isinstance(columns, str):
        raise InvalidRequest("columns is a list of names", found=repr(columns), hint=f"Write [{columns!r}].")
    if columns is None:
        return Projection(names=tuple(schema.names), expressions=None)
    if isinstance(columns, Mapping):
        wanted = set[str]().union(*(named_columns(one, schema) for one in columns.values()))
        names = tuple(name for name in schema.names if name in wanted)
        return Projection(names=names or tuple(schema.names[:1]), expressions=columns)
    if set(schema.names).issuperset(columns):
        return Projection(names=tuple(columns), expressions=None)
    return make_projection({name: _reference(name, schema) for name in columns}, schema)


def _reference(name: str, schema: pa.Schema) -> pc.Expression:
    """A column, or a field inside one, written with dots."""
    if name in schema.names:
        return pc.field(name)
    first, *rest = name.split(".")
    if first not in schema.names or not rest:
        raise UnknownColumn(f"there is no column {name}", hint=name_hint(name, schema.names))
    return pc.field(first, *rest)
