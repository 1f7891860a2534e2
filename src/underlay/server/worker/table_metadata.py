"""Answers the catalog endpoints from metadata, for the tables that the caller may read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import pyarrow as pa

from underlay.api.jobs_and_leases import job_row
from underlay.api.lake import Lake
from underlay.api.limited.limited_lake import LimitedLake
from underlay.api.table import Table
from underlay.api.views.block_map import ScanVerdicts, binned, block_map
from underlay.api.views.column_rows import CHANGES, COLUMNS, column_rows, definition_changes, file_changes
from underlay.api.views.file_rows import FILES, file_rows
from underlay.api.views.system_views import JOBS, SOURCES, VERSIONS, source_rows, version_rows
from underlay.errors import InvalidRequest
from underlay.hot.read.snapshot import HotSnapshot
from underlay.index.catalog import split_name
from underlay.local.dataset.source import NamedScan
from underlay.local.text.time_travel import quoted
from underlay.plan.block_map import BlockVerdict
from underlay.plan.plan import BlockPlan
from underlay.scan.query import Query
from underlay.schema.arrow_aliases import AnyType
from underlay.server.formats.types import columns_of
from underlay.server.lockdown.check import SYSTEM_VIEWS, Lockdown
from underlay.server.worker.job import LookJob
from underlay.server.worker.scans import describe_scans, load_scan, planned, sums_of

_TEXT, _NUMBER, _TIME = pa.string(), pa.int64(), pa.timestamp("us", "UTC")
_RUNS: Mapping[str, AnyType] = {
    "table": _TEXT, "run": _TEXT, "owner": _TEXT, "operation": _TEXT, "state": _TEXT, "started": _TIME, "ended": _TIME,
    "seconds": pa.float64(), "asked": _TEXT, "workers": _TEXT, "sources": _NUMBER, "known": _NUMBER,
    "skipped": _NUMBER, "failed": _NUMBER, "claimed": _NUMBER, "replaced": _NUMBER, "row_count": _NUMBER,
    "rejected_count": _NUMBER, "source_bytes": _NUMBER, "versions": pa.list_(_NUMBER), "version_count": _NUMBER,
    "reason": _TEXT, "problem": _TEXT,
}  # fmt: skip
_REJECTED = "_rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What was found: facts, and rows if there are any. `etag` is None for answers that change without a commit."""

    facts: Mapping[str, object]
    rows: pa.Table | None = None
    etag: str | None = None


class Looker:
    """Looks at the metadata of one lake."""

    def __init__(self, lake: Lake, lockdown: Lockdown) -> None:
        self._lake = lake
        self._lockdown = lockdown
        self._kinds: Mapping[str, Callable[[LookJob, LimitedLake], Looked]] = {
            "plan": self._plan,
            "blocks": self._blocks,
            "scan": self._scan,
            "columns": self._columns,
            "versions": self._versions,
            "files": self._files,
            "sources": self._sources,
            "diff": self._diff,
            "health": self._health,
            "jobs": self._jobs,
            "runs": self._runs,
            "completion": self._completion,
        }

    def look(self, job: LookJob) -> Looked:
        """What the job asks for. Raises TableNotFound for tables that the caller may not read."""
        limited = LimitedLake(self._lake, may_read=job.rights.may_read, may_write=lambda name: False, as_of=job.moment)
        found = self._kinds[job.what](job, limited)
        if found.rows is None or (not job.offset and job.limit is None):
            return found
        facts = {**found.facts, "total": found.rows.num_rows, "offset": job.offset}
        return replace(found, rows=found.rows.slice(job.offset, job.limit), facts=facts)

    def _plan(self, job: LookJob, limited: LimitedLake) -> Looked:
        scans = self._scans(job, limited)
        pinned = {str(scan.table): scan.query.snapshot.version for scan, _ in scans}
        versions = pinned if job.sql is None else limited.read_versions
        facts: dict[str, object] = {
            "engine": "duckdb",
            "plans": describe_scans(scans),
            "tables": [{"name": name, "version": number} for name, number in sorted(versions.items())],
            "stats": sums_of(scans),
            "warnings": [] if len(scans) < 2 else ["a join may hand more conditions to its scans when it runs"],
        }
        if job.scan is None:
            return Looked(facts=facts)
        if job.scan >= len(scans):
            raise InvalidRequest("there is no such scan", expected=f"less than {len(scans)}", found=job.scan)
        scan, plan = scans[job.scan]
        table = limited.table(str(scan.table), version=scan.query.snapshot.version)
        return _mapped(job, table, ScanVerdicts.of(plan), None)

    def _scans(self, job: LookJob, limited: LimitedLake) -> list[tuple[NamedScan, BlockPlan]]:
        if job.sql is not None:
            self._lockdown.check(job.sql, limited.names)
            limited.plan_sql(job.sql, job.parameters)
            return planned(limited.scans)
        table = self._table(job, limited)
        return [(NamedScan(table.name, query), query.plan) for query in [self._query(job, table)]]

    def _query(self, job: LookJob, table: Table) -> Query:
        if job.where is not None:
            dataset, name = split_name(table.name)
            text = f"SELECT 1 FROM {quoted(dataset)}.{quoted(name)} WHERE (\n{job.where}\n)"
            self._lockdown.check(text, [table.name])
        return table.query(job.columns, job.where, job.parameters)

    def _blocks(self, job: LookJob, limited: LimitedLake) -> Looked:
        table = self._table(job, limited)
        plan = self._query(job, table).plan
        return _mapped(job, table, ScanVerdicts.of(plan), _etag(job, table))

    def _scan(self, job: LookJob, limited: LimitedLake) -> Looked:
        name, version, decided = load_scan(str(job.spool), job.scan or 0)
        return _mapped(job, limited.table(name, version=version), decided, None)

    def _columns(self, job: LookJob, limited: LimitedLake) -> Looked:
        table = self._table(job, limited)
        return _rows(job, table, COLUMNS, list(column_rows(table)))

    def _versions(self, job: LookJob, limited: LimitedLake) -> Looked:
        table = self._table(job, limited)
        tags = {version: name for name, version in table.tags.items()}
        found = [{**row, "tag": tags.get(int(str(row["version"])))} for row in version_rows(table, job.most)]
        return replace(_rows(job, table, {**VERSIONS, "tag": _TEXT}, found), etag=None)

    def _files(self, job: LookJob, limited: LimitedLake) -> Looked:
        table = self._table(job, limited)
        return _rows(job, table, FILES, list(file_rows(table)))

    def _sources(self, job: LookJob, limited: LimitedLake) -> Looked:
        table = self._table(job, limited)
        return _rows(job, table, SOURCES, list(source_rows(table)))

    def _diff(self, job: LookJob, limited: LimitedLake) -> Looked:
        table = self._table(job, limited)
        after = table.snapshot()
        after = after.sealed if isinstance(after, HotSnapshot) else after
        before = limited.table(table.name, version=job.since if job.since is not None else max(after.version - 1, 0))
        first = before.snapshot()
        found = _rows(job, table, CHANGES, list(file_changes(first, after)))
        facts = {
            **found.facts,
            "since": first.version,
            "rows_added": after.root.row_count - first.root.row_count,
            "bytes_added": after.root.data_bytes - first.root.data_bytes,
            "definition": definition_changes(first, after),
        }
        return replace(found, facts=facts)

    def _health(self, job: LookJob, limited: LimitedLake) -> Looked:
        return Looked(facts=asdict(limited.table(str(job.table)).health()))

    def _jobs(self, job: LookJob, limited: LimitedLake) -> Looked:
        names = limited.names if job.table is None else [limited.table(job.table).name]
        found = [{"table": name, **job_row(one)} for name in names for one in self._lake.jobs(name)]
        return Looked(facts={}, rows=_table_of({"table": _TEXT, **JOBS}, found))

    def _runs(self, job: LookJob, limited: LimitedLake) -> Looked:
        most = job.most or 50
        names = limited.names if job.table is None else [limited.table(job.table).name]
        found = [asdict(one) for name in names for one in self._lake.runs(name, most=most)]
        found.sort(key=lambda one: (one["started"] or one["ended"]).timestamp(), reverse=True)
        rejected = {name: f"{name}{_REJECTED}" for name in names if f"{name}{_REJECTED}" in limited.names}
        return Looked(facts={"rejected_rows": rejected}, rows=_table_of(_RUNS, found[:most]))

    def _completion(self, job: LookJob, limited: LimitedLake) -> Looked:
        """The engine's words, or the columns of the named tables that the caller may read."""
        if job.columns is None:
            return Looked(facts={**self._lockdown.words(), "tables": limited.names, "views": sorted(SYSTEM_VIEWS)})
        wanted = {name.lower() for name in job.columns}
        found = {name: columns_of(limited.table(name).schema) for name in limited.names if name.lower() in wanted}
        return Looked(facts={"columns": found})

    def _table(self, job: LookJob, limited: LimitedLake) -> Table:
        return _pinned(limited.table(str(job.table), version=job.version))


def _pinned(table: Table) -> Table:
    """The table, pinned to its current version."""
    return table.pinned()


def _rows(job: LookJob, table: Table, columns: Mapping[str, AnyType], rows: Sequence[Mapping[str, object]]) -> Looked:
    facts = {"table": table.name, "version": table.version, "revision": table.revision}
    return Looked(facts=facts, rows=_table_of(columns, rows), etag=_etag(job, table))


def _table_of(columns: Mapping[str, AnyType], rows: Sequence[Mapping[str, object]]) -> pa.Table:
    return pa.Table.from_pylist([dict(one) for one in rows], schema=pa.schema(list(columns.items())))


def _mapped(job: LookJob, table: Table, decided: ScanVerdicts, etag: str | None) -> Looked:
    found = block_map(table.snapshot(), decided, job.column, is_sorted=job.is_sorted)
    facts = {
        "table": table.name,
        "version": table.version,
        "column": found.column,
        "verdicts": [one.name.lower() for one in BlockVerdict],
        "steps": decided.steps,
        "block_count": found.rows.num_rows,
    }
    rows = found.rows if job.bins is None else binned(found.rows, job.bins)
    return Looked(facts=facts, rows=rows.replace_schema_metadata({"underlay": json.dumps(facts)}), etag=etag)


def _etag(job: LookJob, table: Table) -> str:
    """Made of the revision, the version, and the rest of the request."""
    asked = {name: value for name, value in asdict(job).items() if name not in ("if_none_match", "version", "as_of")}
    asked["state"] = table.state_id
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode(errors="surrogatepass")).hexdigest()
    return f'"{table.revision}-{table.version}-{digest[:16]}"'
