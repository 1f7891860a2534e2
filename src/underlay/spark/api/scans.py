"""Lists the scans of our tables in a Spark plan: how each is read, by which conditions, and what it needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from pyspark.sql import DataFrame

from underlay.plan.part import BoolArray, Part
from underlay.plan.plan import BlockPlan
from underlay.prune import TRUE, has_opaque
from underlay.prune.predicates.predicate import And
from underlay.scan.query import Query
from underlay.spark.catalog.view_entry import HIDDEN
from underlay.spark.files.file_groups import Group
from underlay.spark.files.file_index import TableFileIndex
from underlay.spark.filters.applicable import can_apply
from underlay.spark.filters.catalyst import and_parts, read_filter
from underlay.spark.jvm.gateway import JavaObject, call, call_text, field_names, java_plan, try_text
from underlay.spark.jvm.plan_nodes import PlanNode, items_of, nodes_of
from underlay.spark.jvm.proxy import find_proxy
from underlay.spark.ranged.read import ChosenSnapshot
from underlay.spark.ranged.table import RangedScan

_SOURCE = "underlay"
"""The name of the data source in `format`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileScan:
    """A scan of some files of a table. Without a plan nothing else is known about it."""

    table: str
    version: int | None
    how: str
    is_native: bool
    is_cached: bool
    plan: BlockPlan | None = None
    query: Query | None = None
    """What the plan is of."""
    is_whole: bool = True
    """Whether the plan covers all files of the version."""
    taken: tuple[str, ...] = ()
    """Conditions that were translated, as predicates."""
    left_to_spark: tuple[str, ...] = ()
    """Conditions that were not translated, or only partly, as Spark shows them."""


def scans_of(frame: DataFrame) -> list[FileScan]:
    """The scans of our tables, in the order of the plan. Reads only metadata."""
    return [scan for node in nodes_of(call(java_plan(frame), "executedPlan")) for scan in _scan_of(node)]


def _scan_of(node: PlanNode) -> Iterator[FileScan]:
    if node.kind == "FileSourceScanExec":
        index = find_proxy(call(call(node.node, "relation"), "location"))
        if isinstance(index, TableFileIndex):
            yield _native_scan(node, index)
    elif node.kind == "BatchScanExec":
        scan = find_proxy(call(node.node, "scan"))
        if isinstance(scan, RangedScan):
            yield _ranged_scan(node, scan)
        elif call_text(call(node.node, "table"), "name") == _SOURCE:
            yield _source_scan(node)


def _native_scan(node: PlanNode, index: TableFileIndex) -> FileScan:
    version, group = index.version, index.group
    filters = [(one, read_filter(one, index.names)) for one in items_of(call(node.node, "dataFilters"))]
    understood = version.understood(And(tuple(predicate for _, predicate in filters)))
    taken = [predicate for predicate in understood.parts if not has_opaque(predicate)]
    left = [one for one, predicate in filters if predicate not in taken]
    query = version.table.query(_columns(node.node, index), understood)

    def is_chosen(part: Part, _place: int) -> BoolArray:
        return version.groups.is_in(group, part, np.arange(part.segment.file_count))

    chosen = replace(query, snapshot=ChosenSnapshot(query.snapshot, is_chosen))
    return FileScan(
        table=version.table.name,
        version=version.snapshot.version,
        how=_how(group),
        is_native=True,
        is_cached=node.is_cached,
        plan=chosen.plan,
        query=chosen,
        is_whole=len(version.groups.size_bytes) <= 1,
        taken=tuple(map(str, taken)),
        left_to_spark=_shown(left),
    )


def _shown(expressions: list[JavaObject]) -> tuple[str, ...]:
    """The expression as SQL, without the name of the view that a column came through."""
    texts = (try_text(one, "sql") or call_text(one, "toString") for one in expressions)
    return tuple(HIDDEN.sub("", text) for text in texts)


def _columns(scan: JavaObject, index: TableFileIndex) -> list[str]:
    """The table's columns that a scan reads, wholly or in part."""
    paths = [(name,) for name in field_names(call(scan, "requiredSchema"))]
    found = {(index.names or {}).get(path, path)[0] for path in paths}
    return [name for name in index.version.snapshot.schema.names if name in found]


def _how(group: Group) -> str:
    parts = ["registered files, by Spark itself" if group.is_registered else "by Spark itself"]
    if group.reading is not None and not group.reading.is_by_name:
        parts.append("under the files' own column names and types")
    if group.has_deletes:
        parts.append("deleted rows taken out by a join")
    return ", ".join(parts)


def _ranged_scan(node: PlanNode, scan: RangedScan) -> FileScan:
    read, schema = scan.read, scan.table.schema_of_table
    filters = () if scan.filters is None else items_of(scan.filters)
    left = [one for one in filters if has_opaque(found := read_filter(one)) or not can_apply(found, schema)]
    return FileScan(
        table=read.table,
        version=read.pin.version,
        how=f"by the ranged reader, since {read.why}" if read.why else "by the ranged reader",
        is_native=False,
        is_cached=node.is_cached,
        plan=scan.query.plan,
        query=scan.query,
        is_whole=read.chosen is None,
        taken=() if scan.predicate == TRUE else tuple(map(str, and_parts(scan.predicate))),
        left_to_spark=_shown(left),
    )


def _source_scan(node: PlanNode) -> FileScan:
    version = _option(node.node, "version")
    return FileScan(
        table=_option(node.node, "path") or "",
        version=None if version is None else int(version),
        how='by format("underlay"), whose version was fixed when it was loaded',
        is_native=False,
        is_cached=node.is_cached,
    )


def _option(batch_scan: JavaObject, name: str) -> str | None:
    """An option of a Python source, read from Spark's private field, as Spark does not expose it."""
    scan = call(batch_scan, "scan")
    field = call(call(scan, "getClass"), "getDeclaredField", "options")
    call(field, "setAccessible", True)
    found = call(call(field, "get", scan), "get", name)
    return None if found is None else str(found)
