"""A lake: tables by name, and SQL over them.

Methods import what works on tables when they need it: a listing needs only a tenth of the modules.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from threading import Event
from typing import TYPE_CHECKING, Self, Unpack

from underlay.api.importing_lake import ImportingLake
from underlay.api.opened.context import LakeContext
from underlay.api.opened.info import RevisionInfo, TableInfo
from underlay.api.opened.moment import show_moment
from underlay.errors import InvalidRequest, NotFound
from underlay.index.catalog import find_table
from underlay.runtime.locks import cached_property
from underlay.store import Store, open_store
from underlay.table.catalog.changes import rename_table
from underlay.table.versions.environment import Surroundings

if TYPE_CHECKING:
    from underlay.api.ingest import Ingests
    from underlay.api.jobs_and_leases import JobInfo, LeaseInfo
    from underlay.api.run_info import RunInfo
    from underlay.api.table import Table
    from underlay.ingest.run.dry_run import DryRun
    from underlay.ingest.run.record import Keep
    from underlay.ingest.run.summary import Summary
    from underlay.ingest.run.watch import Pace, Watch
    from underlay.ingest.work.progress import IngestProgress
    from underlay.ingest.work.settings import Options, Settings, Sources
    from underlay.ingest.work.workers import MakeWorkers
    from underlay.local.dataset.source import EngineDataset
    from underlay.local.sql.connection import LakeConnection
    from underlay.local.sql.result import SqlResult
    from underlay.local.sql.views import SystemView
    from underlay.maintain.verify.finding import Report
    from underlay.registry.registry import Registry


def connect(
    url: str | os.PathLike[str] | Store,
    *,
    options: Mapping[str, str] | None = None,
    registry: str | None = None,
    max_staleness_seconds: float = 0.0,
    hot: str | os.PathLike[str] | None = None,
) -> Lake:
    """The lake at a path or URL (`s3://bucket/lake`, `gs://…`, `az://…`, `memory://name`).

    Makes no request: a lake that does not exist is created with its first table. `options` are the store's, such as
    endpoint and region; credentials also come from the usual environment variables. `registry` is the metadata
    database: `postgresql://…`, `sqlite:////path`, `none`; else UNDERLAY_REGISTRY, else SQLite, in a local lake's folder
    or in the user's state directory. A table's newest version is looked up again only after `max_staleness_seconds`.
    `hot` is the directory of hot partitions on this machine, else UNDERLAY_HOT: queries of a table's newest version see
    its rows too.
    `with connect(…) as lake:` closes it at the end.
    """
    if not isinstance(url, str | os.PathLike | Store) or not url:
        raise InvalidRequest(
            "a lake must be given as a path or URL", found=repr(url), hint="Write data/lake or s3://bucket/lake."
        )
    store = url if isinstance(url, Store) else open_store(url, options)
    known = None if registry == "none" else _open_registry(registry, store)
    place = os.fspath(hot) if hot is not None else os.environ.get("UNDERLAY_HOT")
    return Lake(store, options=options, max_staleness_seconds=max_staleness_seconds, registry=known, hot=place)


def _open_registry(url: str | None, store: Store) -> Registry | None:
    from underlay.registry.registry import open_registry

    return open_registry(url, store)


class Lake(ImportingLake):
    """Tables in one place. Made by `connect`. Thread-safe."""

    def __init__(
        self,
        store: Store,
        *,
        options: Mapping[str, str] | None = None,
        max_staleness_seconds: float = 0.0,
        surroundings: Surroundings | None = None,
        registry: Registry | None = None,
        hot: str | None = None,
    ) -> None:
        if not isinstance(store, Store):
            raise InvalidRequest(
                "a lake is made by connect", found=f"Lake({store!r})", hint=f"Write underlay.connect({store!r})."
            )
        self._context = LakeContext(
            store,
            options=options,
            max_staleness_seconds=max_staleness_seconds,
            surroundings=surroundings,
            registry=registry,
            hot=hot,
        )
        self._lake = self._context.catalog

    @cached_property
    def _ingests(self) -> Ingests:
        from underlay.api.ingest import Ingests  # a sixth of the package, not needed for a listing or a scan

        return Ingests(lake=self._lake, stores=self._context.stores, open_table=self._context.open_table)

    @property
    def registry(self) -> Registry | None:
        """The metadata database, or None."""
        return self._context.registry

    @property
    def url(self) -> str:
        """Where the lake is."""
        return self._lake.store.url

    @property
    def options(self) -> Mapping[str, str]:
        """What the store was opened with. Credentials are among it, and are shown as `***`."""
        return self._context.options

    def exists(self) -> bool:
        """Whether the lake exists. One request."""
        try:
            self._context.newest_catalog()
        except NotFound:
            return False
        return True

    def initialise(self) -> None:
        """Create the lake unless it exists. Refuses a store on which commits would not be safe."""
        self._lake.initialise()

    def create_table(
        self,
        name: str,
        schema: object = None,
        *,
        data: object = None,
        exist_ok: bool = False,
        key: Sequence[str] = (),
        sort_by: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        comment: str | None = None,
        properties: Mapping[str, str | int] | None = None,
        replaces: int | None = None,
    ) -> Table:
        """Create a table: empty, or with all rows of `data`.

        `schema` is an Arrow schema, a frame whose columns are taken, or text such as `id bigint not null, s string`;
        without one it is that of `data`. `key` columns get bloom filters; rows of a file are sorted by `sort_by`
        (`["pickup", "-fare"]`); `partition_by` splits rows into separate files (`["month(pickup)",
        "bucket(16, id)"]`). `replaces` is the version of the table with this name that the new one replaces. Raises
        TableExists, with `exist_ok` only when the definition differs; CommitConflict when the replaced table was
        changed.
        """
        from underlay.api.create import create_table
        from underlay.api.table import Table

        opened = create_table(
            self._context,
            name,
            schema,
            data=data,
            exist_ok=exist_ok,
            key=key,
            sort_by=sort_by,
            partition_by=partition_by,
            comment=comment,
            properties=properties,
            replaces=replaces,
        )
        return Table(opened, self._context)

    def table(
        self,
        name: str,
        *,
        version: int | None = None,
        as_of: str | date | datetime | None = None,
        tag: str | None = None,
    ) -> Table:
        """The table of this name, newest or at one version. Raises TableNotFound, VersionNotFound."""
        from underlay.api.table import Table

        table = Table(self._context.open_table(name), self._context)
        if version is None and as_of is None and tag is None:
            return table
        return table.at(version=version, as_of=as_of, tag=tag)

    def tables(self) -> list[TableInfo]:
        """All tables by name. One request. A lake that does not exist has none."""
        try:
            catalog = self._context.newest_catalog()
        except NotFound:
            return []
        return [
            TableInfo(name=name, folder=record.folder, revision=record.active)
            for name, record in sorted(catalog.tables.items())
        ]

    def catalog_number(self) -> int:
        """The number of the catalog's newest entry. It changes when a table is created, dropped or renamed."""
        return self._context.newest_catalog().number

    def revisions(self, name: str) -> list[RevisionInfo]:
        """The revisions of a table, oldest first."""
        record = find_table(self._lake.catalog(), name)
        return [
            RevisionInfo(id=one, is_active=one == record.active, created=show_moment(known.created_us))
            for one, known in sorted(record.revisions.items(), key=lambda pair: pair[1].created_us)
        ]

    def rename_table(self, name: str, new_name: str) -> None:
        """Rename a table. Its files stay where they are. Raises TableNotFound, TableExists."""
        self._lake.change(rename_table(name, new_name))

    def drop_table(self, name: str) -> None:
        """Drop a table. Its files stay until they are swept. Raises TableNotFound."""
        from underlay.table.catalog.lifecycle import drop

        drop(self._lake, name)

    def ingest(
        self,
        name: str,
        sources: Sources | Settings,
        *,
        progress: IngestProgress | None = None,
        workers: MakeWorkers | None = None,
        keep: Keep | None = None,
        **options: Unpack[Options],
    ) -> Summary:
        """Ingest each source exactly once, and create the table if it does not exist.

        Sources are paths, patterns and URLs: `data/*.csv`, `s3://bucket/in/`. See docs/sources.md for `options`.
        Threads of this process do the work unless `workers` are given; `keep` leaves a record of the run.
        """
        from underlay.ingest.run.record import keep_record
        from underlay.ingest.work.settings import make_settings

        settings = make_settings(sources, **options)
        return self._ingests.once(name, settings, workers=workers, progress=progress, keep=keep or keep_record)

    def dry_run(self, name: str, sources: Sources | Settings, **options: Unpack[Options]) -> DryRun:
        """What `ingest` would do. Nothing is changed."""
        from underlay.ingest.work.settings import make_settings

        return self._ingests.dry_run(name, make_settings(sources, **options))

    def watch(
        self,
        name: str,
        sources: Sources | Settings,
        *,
        pace: Pace | None = None,
        progress: IngestProgress | None = None,
        workers: MakeWorkers | None = None,
        **options: Unpack[Options],
    ) -> Watch:
        """Ingest sources as they arrive: `for summary in lake.watch(…)`. Without a `pace` it polls every
        5 seconds until it is interrupted or closed."""
        from underlay.ingest.run.watch import Pace
        from underlay.ingest.work.settings import make_settings

        chosen = pace or Pace(wait=Event().wait)
        settings = make_settings(sources, **options)
        return self._ingests.watch(name, settings, chosen, workers=workers, progress=progress)

    def verify(self, *names: str, deep: bool = False, repair: bool = False, registry: bool = True) -> Report:
        """Check every object of these tables, or of all, as `underlay verify` does. The report says what is wrong.

        `deep` also reads all rows; `repair` rebuilds sidecars and the registry where they are wrong.
        """
        from underlay.api.verify import verify_lake  # few processes need it

        return verify_lake(self._context, names, deep=deep, repair=repair, registry=registry)

    def jobs(self, name: str | None = None) -> list[JobInfo]:
        """Writers' jobs, of a table or of all."""
        from underlay.api.jobs_and_leases import list_jobs

        return list_jobs(self._lake, name)

    def runs(self, name: str | None = None, *, most: int = 50) -> list[RunInfo]:
        """The newest runs that ended, and the watches that run now, of a table or of all; newest first."""
        from underlay.api.run_info import list_runs

        return list_runs(self._lake, name, most)

    def leases(self, name: str | None = None) -> list[LeaseInfo]:
        """Readers' leases, of a table or of all."""
        from underlay.api.jobs_and_leases import list_leases

        return list_leases(self._lake, name)

    def sql(
        self,
        text: str,
        parameters: Sequence[object] | Mapping[str, object] | None = None,
        *,
        tables: Mapping[str, object] | None = None,
    ) -> SqlResult:
        """Run a statement: a query on DuckDB, or one that changes a table and returns a row of counts.

        Tables go by their two-part names. The whole statement reads each table at one version.

        Older versions by `FROM taxi.trips VERSION AS OF 7` and `TIMESTAMP AS OF '2026-01-01'`. `tables` are frames,
        readers and datasets by one-part names: `lake.sql("from df join taxi.trips using (id)", tables={"df": df})`. A
        statement cannot reach anything else on this machine.
        """
        from underlay.local.sql.run import is_change, run_sql  # loads DuckDB

        given = dict(tables or {})
        if given:
            from underlay.api.table import Table

            given = {name: rows.dataset() if isinstance(rows, Table) else rows for name, rows in given.items()}
        if is_change(text):
            from underlay.api.changing_lake import ChangingLake
            from underlay.local.statements.run import run_statement  # loads a parser of SQL

            return run_statement(
                text, ChangingLake(self._context), self._dataset, given, parameters, self._system_views
            )
        return run_sql(text, self._dataset, self._table_names, parameters, given=given, views=self._system_views)

    def duckdb(self) -> LakeConnection:
        """A DuckDB connection of your own, in memory, with the tables as `dataset.table`; close it after use.

        Each query reads the newest version of each table, one for the whole query, and pushes columns and filters into
        the planner. Nothing is locked down: SQL can reach whatever this process can, but cannot change the lake.
        """
        from duckdb import connect as open_duckdb  # loads DuckDB

        from underlay.local.sql.connection import LakeConnection

        return LakeConnection(
            open_duckdb(":memory:"), lambda name: self.table(name).source(), self._ipython_key_completions_
        )

    def close(self) -> None:
        """Apply this process's commits to the registry, waiting at most 2 s, stop its thread and close its connections.
        Background care ends after its current step, for which this waits at most 10 s.

        Using the lake or one of its tables afterwards raises InvalidRequest; closing it again does nothing. A process
        does the same when it exits.
        """
        self._context.end_care()
        self._lake.close()
        self._context.close()
        if self.registry is not None:
            self.registry.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _dataset(self, name: str, version: int | str | None, as_of: datetime | None) -> EngineDataset:
        """A table as a query names it; a version given as text is a tag. Raises TableNotFound."""
        from underlay.local.dataset.source import EngineDataset  # loads pyarrow.dataset

        tag = version if isinstance(version, str) else None
        table = self.table(name, version=None if isinstance(version, str) else version, as_of=as_of, tag=tag)
        return EngineDataset(table.source())

    def _system_views(self) -> Mapping[str, SystemView]:
        from underlay.api.jobs_and_leases import job_row, list_jobs
        from underlay.api.views.system_views import system_views

        return system_views(self._context, lambda table: map(job_row, list_jobs(self._lake, table.name)))

    def __getitem__(self, name: str) -> Table:
        return self.table(name)

    def __contains__(self, name: object) -> bool:
        return name in self._ipython_key_completions_()

    __iter__ = None

    def _table_names(self) -> list[str]:
        try:
            return list(self._context.newest_catalog().tables)
        except NotFound:
            return []

    def _ipython_key_completions_(self) -> list[str]:
        return [table.name for table in self.tables()]

    def __repr__(self) -> str:
        return f"Lake({self.url!r})"
