"""A table: every verb is one call of the layer that does it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache
from os import PathLike
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from underlay.api.context import LakeContext
from underlay.api.info import Version, describe
from underlay.api.moment import read_moment
from underlay.api.plan import Plan
from underlay.api.scan import Scan
from underlay.change.define.evolve import set_comment
from underlay.change.register import register as registering
from underlay.change.register import unregister as unregistering
from underlay.change.rows import append as appending
from underlay.errors import BadPredicate, InvalidRequest, VersionNotFound
from underlay.index.catalog import find_table
from underlay.index.root import Definition
from underlay.prune import TRUE, Predicate
from underlay.prune.parse.arrow import named_columns, split_filter
from underlay.scan.query import Query, RestFilter
from underlay.scan.read.file_stores import FileStores
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.table_schema import TableSchema
from underlay.table import time_travel as travel
from underlay.table.catalog.changes import untag_version
from underlay.table.coordination.job import TTL_SECONDS as JOB_TTL_SECONDS
from underlay.table.coordination.job import Job, acquire
from underlay.table.coordination.lease import TTL_SECONDS as LEASE_TTL_SECONDS
from underlay.table.coordination.lease import Lease, take_lease
from underlay.table.open_table import Head, OpenTable
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import Snapshot

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]  # an optional library without types
    import polars

    from underlay.local.dataset.dataset import TableDataset
    from underlay.local.dataset.source import SnapshotSource
    from underlay.prune.parse.parameters import Parameters

Where = str | Predicate | pc.Expression | None
"""A condition: SQL text, `col("a") > 1`, or an Arrow expression."""
Params = Sequence[object] | Mapping[str, object]
"""Values for `?` in their order, or for `$name` by name."""


class Table:
    """A table of a lake: its newest version at every call, or one version for good.

    Made by `Lake.table` and `Lake.create_table`. Safe for many threads.
    """

    def __init__(
        self,
        opened: OpenTable,
        context: LakeContext,
        pinned: Head | None = None,
    ) -> None:
        self._opened = opened
        self._context = context
        self._pinned = pinned

    @property
    def name(self) -> str:
        """`dataset.table`."""
        return self._opened.name

    @property
    def version(self) -> int:
        """The version that is read."""
        return self.read_head().root.version

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return to_arrow(self.snapshot().schema)

    @property
    def definition(self) -> Definition:
        """Columns with their ids, key, order, partitions, properties, comment."""
        return self.read_head().root.definition

    @property
    def revision(self) -> str:
        """The id of the revision that is read."""
        return self._read_revision().id

    def append(self, data: object, *, token: str | None = None) -> appending.Appended:
        """Add rows: an Arrow table, batch or reader, a pandas or Polars frame, a DuckDB relation; all or none.

        With a token, rows are added once however often this is called with it.
        """
        return appending.append(self.writable(), data, token=token)

    def register(
        self,
        *files: str | PathLike[str],
        ignore_surplus: bool = False,
        hive: bool = True,
        skip_known: bool = False,
        refresh: bool = False,
        progress: registering.Progress | None = None,
    ) -> registering.Registered:
        """Make Parquet files part of the table where they are: paths, URLs, patterns such as `data/*.parquet`.

        They must never change. `ignore_surplus` allows columns that the table does not have, `hive` takes values from
        folders such as `year=2024`. Files that are part of the table are refused, unless `skip_known` leaves them alone
        or `refresh` replaces those whose bytes changed.
        """
        return registering.register(
            self.writable(),
            files,
            self._context.stores,
            ignore_surplus=ignore_surplus,
            hive=hive,
            skip_known=skip_known,
            refresh=refresh,
            progress=progress,
        )

    def unregister(self, *files: str | PathLike[str]) -> unregistering.Unregistered:
        """Remove registered files from the table: paths, URLs, folders, patterns. The files themselves stay."""
        return unregistering.unregister(self.writable(), files, self._context.stores)

    def scan(self, columns: Sequence[str] | None = None, where: Where = None, *, params: Params | None = None) -> Scan:
        """Rows that match, with these columns. `params` are values for `$name` or `?` in the text of a condition."""
        return Scan(self.query(columns, where, params), self.name)

    def plan(self, columns: Sequence[str] | None = None, where: Where = None, *, params: Params | None = None) -> Plan:
        """What such a scan would read, and why the rest is skipped."""
        return Plan(self.query(columns, where, params))

    def count(self, where: Where = None, *, params: Params | None = None) -> int:
        """How many rows match."""
        return self.scan((), where, params=params).count()

    def to_arrow(self) -> pa.Table:
        """All rows."""
        return self.scan().to_arrow()

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a pandas frame; pandas must be installed."""
        return self.scan().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """All rows as a Polars frame; Polars must be installed."""
        return self.scan().to_polars()

    def head(self, rows: int = 10) -> pa.Table:
        """The first rows. Reads only the files that hold them."""
        return self.scan().head(rows)

    def dataset(self) -> TableDataset:
        """This version as a `pyarrow.dataset.Dataset`, for Arrow, DuckDB, Polars, DataFusion and pandas."""
        from underlay.local.dataset.dataset import TableDataset  # loads pyarrow.dataset and DuckDB's rules

        return TableDataset(self.source())

    def source(self) -> SnapshotSource:
        """The version that is read, as engines of this process scan it."""
        from underlay.local.dataset.source import SnapshotSource  # loads pyarrow.dataset

        return SnapshotSource(
            snapshot=self.snapshot(), stores=self._context.stores, cache=self._context.cache, name=self.name
        )

    def history(self, limit: int | None = None) -> Iterator[Version]:
        """Versions, the newest first."""
        head = self.read_head()
        for root in travel.history(head.revision, limit, head.root.version):
            yield describe(root)

    def tag(self, name: str, version: int | None = None) -> None:
        """Give this version, or another, a name."""
        if version is None:
            revision, root = self.read_head()
            version = root.version
        else:
            revision = self._read_revision()
        travel.tag(self._opened.lake, self.name, name, revision, version)

    def untag(self, name: str) -> None:
        """Remove a tag. Raises NotFound."""
        self._opened.lake.change(untag_version(self.name, name))

    @property
    def tags(self) -> dict[str, int]:
        """Tags of the revision that is read, with their versions."""
        record = find_table(self._opened.lake.catalog(), self.name)
        revision = self.revision
        return {name: tag.version for name, tag in record.tags.items() if tag.revision == revision}

    def rollback(self, version: int | None = None, *, tag: str | None = None) -> Version:
        """Commit a new version with the contents of this older one, or of the one with this tag."""
        opened = self.writable()
        if (version is None) == (tag is None):
            raise InvalidRequest("give a version or a tag")
        if version is None:
            version = self.at(tag=tag).version
            if self.tags.get(tag or "") != version:
                raise InvalidRequest("the tag stands for a version of another revision", place=self.name, found=tag)
        held = opened.held_now()
        return describe(travel.rollback(opened.head().revision, version, held))

    def comment(self, text: str | None, column: str | None = None) -> Version:
        """Set the comment of the table or of a column."""
        return describe(set_comment(self.writable(), text, column))

    def job(
        self,
        name: str,
        *,
        ttl_seconds: float = JOB_TTL_SECONDS,
        exclusive: bool = False,
        take_over: bool = False,
        note: str = "",
    ) -> Job[Table]:
        """Take a job, so that no other process does it too: `with trips.job("nightly") as job: job.table.append(rows)`.

        Raises LeaseHeld while its holder counts as alive: until `ttl_seconds` after its last renewal. `take_over` does
        not wait, and shuts the holder out. Of all `exclusive` jobs of a table, one runs at a time.
        """
        return acquire(
            self.writable(),
            name,
            lambda held: Table(held, self._context),
            ttl_seconds=ttl_seconds,
            exclusive=exclusive,
            take_over=take_over,
            note=note,
        )

    def lease(self, name: str | None = None, *, ttl_seconds: float = LEASE_TTL_SECONDS) -> Lease[Table]:
        """Keep this version from expiring: `with trips.lease() as held: held.table.to_arrow()`."""
        head = self.read_head()
        return take_lease(head, Table(self._opened, self._context, head), name=name, ttl_seconds=ttl_seconds)

    def at(
        self, *, version: int | None = None, as_of: str | date | datetime | None = None, tag: str | None = None
    ) -> Table:
        """The same table, at one version for good. Raises VersionNotFound, NotFound for a tag."""
        if sum(choice is not None for choice in (version, as_of, tag)) != 1:
            raise InvalidRequest("give exactly one of version, as_of and tag")
        if tag is not None:
            revision, root = travel.at_tag(self._opened.lake, self.name, tag)
        else:
            revision = self._opened.active()
            try:
                root = (
                    travel.at_version(revision, version)
                    if version is not None
                    else travel.at_time(revision, read_moment(as_of or ""))
                )
            except VersionNotFound as error:
                error.place = self.name
                raise
        return Table(self._opened, self._context, Head(revision, root))

    def snapshot(self) -> Snapshot:
        """The version that is read, as the layers below know it."""
        return self._opened.snapshot(self.read_head())

    @property
    def stores(self) -> FileStores:
        """The store of the lake, and those of registered files."""
        return self._context.stores

    def query(self, columns: Sequence[str] | None, where: Where, params: Params | None = None) -> Query:
        """A query of the version that is read."""
        if isinstance(columns, str):
            raise InvalidRequest("columns must be a list of names", found=repr(columns), hint=f"Write [{columns!r}].")
        snapshot = self.snapshot()
        predicate, rest, rest_columns = _read_where(where, params, snapshot)
        names = snapshot.schema.names if columns is None else tuple(snapshot.schema.column(c).name for c in columns)
        return Query(
            snapshot=snapshot,
            columns=names,
            stores=self._context.stores,
            cache=self._context.cache,
            predicate=predicate,
            rest=rest,
            rest_columns=rest_columns,
        )

    def read_head(self) -> Head:
        """The version that is read and its revision, as the layers below know them."""
        return self._pinned or self._opened.head(self._context.max_staleness_seconds)

    def _read_revision(self) -> Revision:
        """The revision that is read, also when its newest root cannot be."""
        return self._pinned.revision if self._pinned else self._opened.active(self._context.max_staleness_seconds)

    def writable(self) -> OpenTable:
        """The table as the layers below change it. Raises InvalidRequest when it is opened at one version."""
        if self._pinned is not None:
            raise InvalidRequest(
                f"{self.name} was opened at version {self._pinned.root.version}, which never changes",
                hint="Open the table without a version.",
            )
        return self._opened

    def __len__(self) -> int:
        """The rows of the version that is read, from metadata."""
        return self.read_head().root.row_count

    def __bool__(self) -> bool:
        """A table without rows is a table."""
        return True

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow C stream."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The columns."""
        return self.schema.__arrow_c_schema__()

    def _repr_html_(self) -> str:
        from underlay.local.show.html import as_html

        head = self.read_head()
        pinned = Table(self._opened, self._context, head)
        caption = f"{self.name}, version {head.root.version}: {len(pinned):,} rows"
        return as_html(pinned.head(), caption=caption, has_more=len(pinned) > 10)

    def __repr__(self) -> str:
        return f"Table({self.name!r}{'' if self._pinned is None else f', version={self._pinned.root.version}'})"


def _read_where(
    where: Where, params: Params | None, snapshot: Snapshot
) -> tuple[Predicate, pc.Expression | RestFilter | None, tuple[str, ...]]:
    """The condition for the planner, what of it only Arrow or DuckDB can apply, and the columns of the latter."""
    if isinstance(where, str):
        return _parse(where, snapshot.schema, params)
    if params is not None:
        raise InvalidRequest("parameters go with a condition that is text", found=type(where).__name__)
    if where is None:
        return TRUE, None, ()
    if isinstance(where, pc.Expression):
        schema = to_arrow(snapshot.schema)
        predicate, rest = split_filter(where, schema)
        return predicate, rest, () if rest is None else tuple(named_columns(rest, schema))
    if not isinstance(where, Predicate):
        raise InvalidRequest(
            "not a condition", found=type(where).__name__, hint="Write text, col('a') > 1, or an Arrow expression."
        )
    return where, None, ()


def _parse(
    where: str, schema: TableSchema, given: Params | None
) -> tuple[Predicate, RestFilter | None, tuple[str, ...]]:
    """What our own grammar understands needs no DuckDB, which is loaded for the rest."""
    if given is None:
        try:
            return _bind(where, schema, None), None, ()
        except BadPredicate as error:
            problem = error
    from underlay.prune.parse.parameters import number_parameters  # loads a parser of SQL, as below
    from underlay.prune.parse.sql import tokens_of

    text, parameters = number_parameters(where, tokens_of(where), given)
    if given is not None:
        try:
            return _bind(text, schema, parameters), None, ()
        except BadPredicate as error:
            problem = error
    from underlay.local.conditions.condition import split_condition  # loads DuckDB and pyarrow.dataset

    predicate, rest = split_condition(text, to_arrow(schema), problem, parameters)
    return predicate, rest, () if rest is None else rest.columns


@lru_cache(maxsize=256)
def _bind(where: str, schema: TableSchema, parameters: Parameters | None) -> Predicate:
    """Parsing takes longer than planning, and the same text comes again and again."""
    from underlay.prune.parse.bind import bind_where  # loads a parser of SQL, which takes long
    from underlay.prune.parse.parameters import NO_PARAMETERS

    return bind_where(where, to_arrow(schema), parameters or NO_PARAMETERS)
