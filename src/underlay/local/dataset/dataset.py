"""A snapshot as a pyarrow dataset: DuckDB, Polars, pandas, DataFusion and Arrow itself read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from underlay.errors import Unsupported
from underlay.local.dataset.fragment import TableFragment, make_fragments
from underlay.local.dataset.scanner import DEFAULT_BATCH_ROWS, Columns, TableScanner
from underlay.local.dataset.source import SnapshotSource
from underlay.local.dataset.virtual_files import dataset_of_files
from underlay.runtime.locks import ProcessLock, cached_property
from underlay.scan.query import Query
from underlay.scan.slabs import Slab

_SHARE_BYTES = 16 << 20
_MOST_SHARES = 2048


class TableDataset(ds.UnionDataset):
    """One version of a table. Filters follow the rules of SQL engines: NaN is the greatest value and equals itself.

    Its methods, and the scanners that they return, push columns and filters into the planner. Operations of Arrow's C++
    on the dataset itself (`Scanner.from_dataset`, unions, joins, Acero) read all columns, in pieces, and filter by
    Arrow's rules: NaN matches no comparison.
    """

    def __init__(self, source: SnapshotSource) -> None:
        self.source = source
        shares = _Shares(source)
        name = f"{source.snapshot.keys.folder}/{source.snapshot.version}"
        files = dataset_of_files(shares.count, shares.read, file_schema=source.schema, schema=source.schema, name=name)
        super().__init__(source.schema, [files])  # type: ignore[call-arg]  # not in the stubs

    def filter(self, expression: pc.Expression) -> TableDataset:
        """The rows that match."""
        return TableDataset(self.source.matching(expression))

    def scanner(  # type: ignore[override]  # options that are left out are taken as they come
        self,
        columns: Columns | None = None,
        filter: pc.Expression | None = None,
        batch_size: int = DEFAULT_BATCH_ROWS,
        **options: object,
    ) -> ds.Scanner:
        """A scan that reads no row until it is iterated, and can be run again."""
        return self._scan(columns, filter, batch_size).arrow_scanner(**options)

    def to_table(  # type: ignore[override]  # as above
        self,
        columns: Columns | None = None,
        filter: pc.Expression | None = None,
        batch_size: int = DEFAULT_BATCH_ROWS,
        **_: object,
    ) -> pa.Table:
        """The rows, all at once. Options of Arrow's own scanners are accepted and ignored, here and below."""
        return self._scan(columns, filter, batch_size).to_table()

    def to_batches(  # type: ignore[override]  # as above
        self,
        columns: Columns | None = None,
        filter: pc.Expression | None = None,
        batch_size: int = DEFAULT_BATCH_ROWS,
        **_: object,
    ) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch."""
        return self._scan(columns, filter, batch_size).to_batches()

    def head(  # type: ignore[override]  # as above
        self, num_rows: int, columns: Columns | None = None, filter: pc.Expression | None = None, **_: object
    ) -> pa.Table:
        """The first rows."""
        return self._scan(columns, filter).head(num_rows)

    def count_rows(self, filter: pc.Expression | None = None, **_: object) -> int:  # type: ignore[override]  # as above
        """How many rows match: from metadata alone where that is exact."""
        return self._scan(None, filter).count_rows()

    def take(  # type: ignore[override]  # as above
        self, indices: object, columns: Columns | None = None, filter: pc.Expression | None = None, **_: object
    ) -> pa.Table:
        """The rows of these positions. Reads all rows."""
        return self._scan(columns, filter).take(indices)

    def join_asof(
        self,
        right_dataset: ds.Dataset,
        on: str,
        by: str | list[str],
        tolerance: int,
        right_on: str | list[str] | None = None,
        right_by: str | list[str] | None = None,
    ) -> ds.InMemoryDataset:
        """The nearest rows of another dataset. Reads both completely: Arrow keeps the order only of tables."""
        right = right_dataset.to_table()
        joined = self.to_table().join_asof(right, on, by, tolerance, right_on, right_by)
        return ds.InMemoryDataset(joined)  # type: ignore[call-arg]  # not in the stubs

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[TableFragment]:
        """The rows in parts, to be read in parallel: each has some of the files that may hold matching rows.

        They have the methods of Arrow's fragments, but are not instances of them.
        """
        return iter(make_fragments(self.source, filter))

    _get_fragments = get_fragments

    def __reduce__(self) -> NoReturn:
        raise Unsupported("a dataset cannot be pickled", hint="Open the lake in the other process at the same version.")

    def __repr__(self) -> str:
        snapshot = self.source.snapshot
        return f"<TableDataset {self.source.name or snapshot.keys.folder} version {snapshot.version}>"

    def _scan(
        self, columns: Columns | None, filter: pc.Expression | None, batch_rows: int = DEFAULT_BATCH_ROWS
    ) -> TableScanner:
        return self.source.scan(columns, filter, batch_rows=batch_rows)


class _Shares:
    """All rows in shares of about equal size. Their number is known without a request, their files only when one is
    read.
    """

    def __init__(self, source: SnapshotSource) -> None:
        root = source.snapshot.root
        self.count = max(1, min(root.data_bytes // _SHARE_BYTES + 1, _MOST_SHARES))
        self._source = source
        self._lock = ProcessLock()

    @cached_property
    def _query(self) -> Query:
        return self._source.scan().query

    @cached_property
    def _slabs(self) -> list[list[Slab]]:
        pieces = [piece for slab in self._query.slabs() for piece in slab.cut(_SHARE_BYTES // 4)]
        total = sum(piece.fetch_bytes for piece in pieces)
        shares: list[list[Slab]] = [[] for _ in range(self.count)]
        seen = 0
        for piece in pieces:
            shares[min(seen * self.count // max(total, 1), self.count - 1)].append(piece)
            seen += piece.fetch_bytes
        return shares

    def read(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of a share."""
        with self._lock:
            slabs = self._slabs[number]
        return self._query.batches(slabs)
