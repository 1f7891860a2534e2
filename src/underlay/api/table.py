"""A table: every verb is one call of the layer that does it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from underlay.api.changing.exporting_table import ExportingTable
from underlay.api.opened.changes import Changes
from underlay.api.opened.condition import Params, Where
from underlay.api.opened.info import Version, describe
from underlay.api.opened.moment import read_moment
from underlay.api.plan import Plan
from underlay.api.scan import Scan
from underlay.errors import InvalidRequest, VersionNotFound
from underlay.index.catalog import find_table
from underlay.index.root import Definition
from underlay.scan.changes.row_changes import RowChanges
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.record import from_record
from underlay.table import time_travel as travel
from underlay.table.catalog.changes import untag_version
from underlay.table.coordination.job import TTL_SECONDS as JOB_TTL_SECONDS
from underlay.table.coordination.job import Job, acquire
from underlay.table.coordination.lease import TTL_SECONDS as LEASE_TTL_SECONDS
from underlay.table.coordination.lease import Lease, take_lease
from underlay.table.open_table import Head

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]  # an optional library without types
    import polars

    from underlay.api.hot_writer import HotTableWriter
    from underlay.local.dataset.dataset import TableDataset
    from underlay.local.dataset.source import SnapshotSource


class Table(ExportingTable):
    """A table of a lake: its newest version at every call, or pinned to one version.

    Made by `Lake.table` and `Lake.create_table`. Thread-safe.
    """

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

    def scan(self, columns: Sequence[str] | None = None, where: Where = None, *, params: Params | None = None) -> Scan:
        """The matching rows, with these columns. `params` are values for `$name` or `?` in the text of a condition."""
        again = None if self._pinned else partial(self.query, columns, where, params)
        return Scan(self.query(columns, where, params), self.name, again)

    def plan(self, columns: Sequence[str] | None = None, where: Where = None, *, params: Params | None = None) -> Plan:
        """What such a scan would read, and why it skips the rest."""
        return Plan(self.query(columns, where, params), is_newest=self._pinned is None)

    def changes(
        self, from_version: int, to_version: int | None = None, *, columns: Sequence[str] | None = None
    ) -> Changes:
        """Rows that versions after `from_version` inserted and deleted, up to `to_version` or the version that is read.

        Rows that a compaction or the rewrite of a block merely copied are not among them. The columns are those of the
        last version.
        """
        head = self.read_head()
        is_given = to_version is not None and to_version != head.root.version
        end = travel.at_version(head.revision, to_version) if is_given and to_version is not None else head.root
        schema = from_record(end.definition.schema)
        names = schema.names if columns is None else tuple(schema.column(name).name for name in columns)
        found = RowChanges(
            revision=head.revision,
            load_segment=self.snapshot().load_segment,
            begin=from_version,
            end=end,
            columns=names,
            stores=self._context.stores,
            cache=self._context.cache,
        )
        return Changes(found, self.name)

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
        """The version that is read, for engines in this process to scan."""
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
        """Name this version, or another one."""
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
        """The tags of the revision that is read, with their versions."""
        record = find_table(self._opened.lake.catalog(), self.name)
        revision = self.revision
        return {name: tag.version for name, tag in record.tags.items() if tag.revision == revision}

    def rollback(self, version: int | None = None, *, tag: str | None = None) -> Version:
        """Commit a new version with the contents of an older one, given by number or tag."""
        opened = self.writable()
        if (version is None) == (tag is None):
            raise InvalidRequest("give a version or a tag")
        if version is None:
            version = self.at(tag=tag).version
            if self.tags.get(tag or "") != version:
                raise InvalidRequest("the tag names a version of another revision", place=self.name, found=tag)
        held = opened.held_now()
        return describe(travel.rollback(opened.head().revision, version, held))

    def job(
        self,
        name: str,
        *,
        ttl_seconds: float = JOB_TTL_SECONDS,
        exclusive: bool = False,
        take_over: bool = False,
        note: str = "",
    ) -> Job[Table]:
        """Take a job, so that no other process does the same: `with trips.job("nightly") as job:
        job.table.append(rows)`.

        Raises LeaseHeld while the job's holder counts as alive: until `ttl_seconds` after its last renewal. `take_over`
        does not wait, and shuts the holder out. Of all `exclusive` jobs of a table, only one runs at a time.
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
        table = Table(self._opened, self._context, head)
        return take_lease(head, table, name=name, ttl_seconds=ttl_seconds, is_old=self._pinned is not None)

    def at(
        self, *, version: int | None = None, as_of: str | date | datetime | None = None, tag: str | None = None
    ) -> Table:
        """The same table, pinned to one version. Raises VersionNotFound, NotFound for a tag."""
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
        return self.at_head(Head(revision, root))

    def at_head(self, head: Head) -> Table:
        """The same table, pinned to a version that is already open."""
        return Table(self._opened, self._context, head)

    def pinned(self) -> Table:
        """The same table, pinned to what is read now: the newest version, with its hot partitions as they are."""
        snapshot = self.snapshot()
        head = self.read_head()
        if head.root.version != snapshot.version:
            head = Head(head.revision, travel.at_version(head.revision, snapshot.version))
        return Table(self._opened, self._context, head, snapshot)

    def hot(
        self,
        partition: str | None = None,
        commit_interval_ms: float = 100,
        *,
        column: str | None = None,
        dedup: bool | None = None,
        most_pending_bytes: int = 256 << 20,
        reader_age_seconds: float = 300.0,
    ) -> HotTableWriter:
        """The writer of this table's hot partitions: `with trips.hot(partition="day") as hot: hot.append(rows)`.

        Rows are cut by the time of `column` into partitions of an `hour`, `day` (the default), `week`, `month`, `year`
        or `none`; the column is by default the first timestamp of the table's order or partitions, or the only one.
        `dedup`: of rows with equal keys only the last is kept; the key must have the column. Rows of `append_nowait`
        are committed within `commit_interval_ms`; it waits when `most_pending_bytes` wait already. A query may open the
        files that it planned for up to `reader_age_seconds`.

        Raises LeaseHeld when there is another writer, InvalidRequest when the lake was opened without `hot=`.
        """
        from underlay.api.hot_writer import open_table_writer  # loads what compacts

        return open_table_writer(
            self.writable(),
            self._context,
            partition=partition,
            commit_interval_ms=commit_interval_ms,
            column=column,
            is_deduplicated=dedup,
            most_pending_bytes=most_pending_bytes,
            reader_age_seconds=reader_age_seconds,
        )

    def __len__(self) -> int:
        """How many rows the version that is read has, from metadata."""
        return self.snapshot().root.row_count

    def __bool__(self) -> bool:
        """True, also for a table without rows."""
        return True

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow C stream."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The columns."""
        return self.schema.__arrow_c_schema__()

    def _repr_html_(self) -> str:
        from underlay.local.show.html import as_html

        pinned = self.pinned()
        caption = f"{self.name}, version {pinned.version}: {len(pinned):,} rows"
        return as_html(pinned.head(), caption=caption, has_more=len(pinned) > 10)

    def __repr__(self) -> str:
        return f"Table({self.name!r}{'' if self._pinned is None else f', version={self._pinned.root.version}'})"
