"""A snapshot as a pyarrow dataset: DuckDB, Polars, pandas and Arrow push columns and filters into the planner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from underlay.cache.objects import DecodedCache
from underlay.errors import InvalidRequest, Unsupported
from underlay.local.dataset.scanner import (
    DEFAULT_BATCH_ROWS,
    Columns,
    FailureListener,
    TableScanner,
    check_filter,
    not_possible,
)
from underlay.prune import TRUE, And, Predicate
from underlay.prune.parse.arrow import SplitFilter, named_columns
from underlay.scan.query import Query
from underlay.scan.read.file_stores import FileStores
from underlay.table.versions.snapshot import Snapshot


class TableDataset(ds.Dataset):
    """One version of a table. Filters follow the rules of SQL engines: NaN is the greatest value and equals itself."""

    def __init__(
        self,
        snapshot: Snapshot,
        stores: FileStores,
        *,
        cache: DecodedCache | None = None,
        name: str | None = None,
        where: pc.Expression | None = None,
        on_failure: FailureListener | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.name = name
        self._stores = stores
        self._cache = cache
        self._where = where
        self._on_failure = on_failure
        self._implied: Predicate = TRUE
        columns = tuple(field.name for field in snapshot.schema.fields)
        self._schema = Query(snapshot=snapshot, columns=columns, stores=stores).schema

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._schema

    def watched(self, on_failure: FailureListener) -> TableDataset:
        """The same, which tells its errors before it raises them: engines hide what a scan raises."""
        return self._with(self._where, on_failure)

    def narrow(self, implied: Predicate) -> None:
        """Leave out rows for which this is not true: none of them matters to the engine that asks."""
        self._implied = implied

    def filter(self, expression: pc.Expression) -> TableDataset:
        """The rows that match."""
        return self._with(self._joined(expression), self._on_failure)

    def scanner(  # type: ignore[override]  # fewer options than Arrow's
        self,
        columns: Columns | None = None,
        filter: pc.Expression | None = None,
        batch_size: int = DEFAULT_BATCH_ROWS,
        **_: object,
    ) -> TableScanner:
        """A scan that reads nothing until it is asked. Options of Arrow's own scanners are taken and ignored."""
        if isinstance(columns, str):
            raise InvalidRequest("columns is a list of names", found=repr(columns), hint=f"Write [{columns!r}].")
        if self._on_failure is not None and filter is not None:
            check_filter(filter, self._on_failure)
        return TableScanner(self._schema, self._query, columns, self._joined(filter), batch_size, self._on_failure)

    def to_table(  # type: ignore[override]  # fewer options than Arrow's
        self, columns: Columns | None = None, **options: object
    ) -> pa.Table:
        """The rows, all at once."""
        return self._scan(columns, options).to_table()

    def to_batches(  # type: ignore[override]  # fewer options than Arrow's
        self, columns: Columns | None = None, **options: object
    ) -> Iterator[pa.RecordBatch]:
        """The rows, as they come."""
        return self._scan(columns, options).to_batches()

    def head(  # type: ignore[override]  # fewer options than Arrow's
        self, num_rows: int, columns: Columns | None = None, **options: object
    ) -> pa.Table:
        """The first rows."""
        return self._scan(columns, options).head(num_rows)

    def count_rows(  # type: ignore[override]  # fewer options than Arrow's
        self, filter: pc.Expression | None = None, **_: object
    ) -> int:
        """How many rows match: from metadata alone where that is exact."""
        return self.scanner(filter=filter).count_rows()

    def take(  # type: ignore[override]  # fewer options than Arrow's
        self, indices: object, columns: Columns | None = None, **options: object
    ) -> pa.Table:
        """The rows of these positions. Reads all rows."""
        return self._scan(columns, options).take(indices)

    def sort_by(self, *args: object, **options: object) -> NoReturn:
        """Refused: use an engine, or sort an Arrow table."""
        raise not_possible("sort_by")

    def join(self, *args: object, **options: object) -> NoReturn:
        """Refused: use an engine, or join Arrow tables."""
        raise not_possible("join")

    join_asof = join

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Refused: columns change with the table."""
        raise not_possible("replace_schema")

    def get_fragments(self, filter: pc.Expression | None = None) -> NoReturn:
        """Refused: a file alone does not know its deleted rows, nor the table's columns."""
        raise not_possible("get_fragments")

    _get_fragments = get_fragments

    @property
    def partition_expression(self) -> pc.Expression:
        """True: nothing is known of all rows."""
        return pc.scalar(True)

    def __reduce__(self) -> NoReturn:
        raise Unsupported("a dataset cannot be pickled", hint="Open the lake in the other process at the same version.")

    def __repr__(self) -> str:
        return f"<TableDataset {self.name or self.snapshot.keys.folder} version {self.snapshot.version}>"

    def _joined(self, expression: pc.Expression | None) -> pc.Expression | None:
        if self._where is None or expression is None:
            return expression if self._where is None else self._where
        return self._where & expression

    def _scan(self, columns: Columns | None, options: Mapping[str, object]) -> TableScanner:
        return self.scanner(columns, **options)  # type: ignore[arg-type]  # checked by scanner

    def _query(self, columns: Sequence[str], where: SplitFilter) -> Query:
        return Query(
            snapshot=self.snapshot,
            columns=tuple(columns),
            stores=self._stores,
            cache=self._cache,
            predicate=where.predicate if self._implied == TRUE else And((where.predicate, self._implied)),
            rest=where.rest,
            rest_columns=() if where.rest is None else tuple(named_columns(where.rest, self._schema)),
        )

    def _with(self, where: pc.Expression | None, on_failure: FailureListener | None) -> TableDataset:
        return TableDataset(
            self.snapshot, self._stores, cache=self._cache, name=self.name, where=where, on_failure=on_failure
        )
