"""Parts of a snapshot that engines such as DataFusion read in parallel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from underlay.local.dataset.scanner import DEFAULT_BATCH_ROWS, Columns, TableScanner
from underlay.local.dataset.source import SnapshotSource

_FRAGMENT_BYTES = 64 << 20
_MOST_FRAGMENTS = 256


@dataclass(frozen=True, eq=False, slots=True)
class TableFragment:
    """The rows of some files of a snapshot, with the methods of `pyarrow.dataset.Fragment`."""

    source: SnapshotSource
    locations: frozenset[str]

    @property
    def physical_schema(self) -> pa.Schema:
        """The columns."""
        return self.source.schema

    @property
    def partition_expression(self) -> pc.Expression:
        """True: nothing is known to hold for all rows."""
        return pc.scalar(True)

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Columns | None = None,
        filter: pc.Expression | None = None,
        batch_size: int = DEFAULT_BATCH_ROWS,
        **options: object,
    ) -> ds.Scanner:
        """A scan that reads no row until it is iterated. The schema is always the table's."""
        return self._scan(columns, filter, batch_size).arrow_scanner(**options)

    def to_table(
        self,
        schema: pa.Schema | None = None,
        columns: Columns | None = None,
        filter: pc.Expression | None = None,
        batch_size: int = DEFAULT_BATCH_ROWS,
        **_: object,
    ) -> pa.Table:
        """The rows, all at once."""
        return self._scan(columns, filter, batch_size).to_table()

    def to_batches(
        self,
        schema: pa.Schema | None = None,
        columns: Columns | None = None,
        filter: pc.Expression | None = None,
        batch_size: int = DEFAULT_BATCH_ROWS,
        **_: object,
    ) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch."""
        return self._scan(columns, filter, batch_size).to_batches()

    def head(
        self, num_rows: int, columns: Columns | None = None, filter: pc.Expression | None = None, **_: object
    ) -> pa.Table:
        """The first rows."""
        return self._scan(columns, filter).head(num_rows)

    def take(
        self, indices: object, columns: Columns | None = None, filter: pc.Expression | None = None, **_: object
    ) -> pa.Table:
        """The rows of these positions."""
        return self._scan(columns, filter).take(indices)

    def count_rows(self, filter: pc.Expression | None = None, **_: object) -> int:
        """How many rows match."""
        return self._scan(None, filter).count_rows()

    def _scan(
        self, columns: Columns | None, filter: pc.Expression | None, batch_rows: int = DEFAULT_BATCH_ROWS
    ) -> TableScanner:
        return self.source.scan(columns, filter, batch_rows=batch_rows, locations=self.locations)


def make_fragments(source: SnapshotSource, filter: pc.Expression | None) -> list[TableFragment]:
    """The files that may hold matching rows, in order, a few in each fragment. Plans, but reads no row."""
    plan = source.scan([], filter).query.plan
    most_bytes = max(_FRAGMENT_BYTES, plan.kept.data_bytes // _MOST_FRAGMENTS + 1)
    groups: list[list[str]] = []
    held = 0
    for file in plan.files():
        if not groups or held + file.size_bytes > most_bytes:
            groups.append([])
            held = 0
        groups[-1].append(file.location)
        held += file.size_bytes
    return [TableFragment(source, frozenset(group)) for group in groups]
