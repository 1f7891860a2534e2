"""Walks the nodes of a physical plan, including those that its tree does not list as children.

| node | holds |
|---|---|
| AdaptiveSparkPlan | the first plan: later ones leave out what was found to be empty, after reading it |
| a stage of an adaptive plan | what it runs |
| InMemoryTableScan | the plan that a cached frame was filled by |
| ReusedSubquery, CommandResult | the plan that ran elsewhere, or before |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from underlay.spark.jvm.gateway import JavaObject, call, call_number, call_text

_STAGE = "QueryStageExec"
_CACHE = "InMemoryTableScanExec"
_SCAN = "FileSourceScanExec"
_HELD = {
    "AdaptiveSparkPlanExec": "initialPlan",
    "ReusedSubqueryExec": "child",
    "CommandResultExec": "commandPhysicalPlan",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNode:
    """A node. `is_cached`: Spark's cache holds, or will hold, its rows."""

    kind: str
    node: JavaObject
    is_cached: bool


def nodes_of(plan: JavaObject, *, is_cached: bool = False) -> Iterator[PlanNode]:
    """Every node below a plan, each before its inputs. A reused exchange is listed once."""
    kind = call_text(call(plan, "getClass"), "getSimpleName")
    yield PlanNode(kind=kind, node=plan, is_cached=is_cached)
    for below in items_of(call(plan, "children")):
        yield from nodes_of(below, is_cached=is_cached)
    if kind != _SCAN:  # the filter above it repeats what a scan filters by
        for below in items_of(call(plan, "subqueries")):
            yield from nodes_of(below, is_cached=is_cached)
    if kind in _HELD or kind.endswith(_STAGE):
        yield from nodes_of(call(plan, _HELD.get(kind, "plan")), is_cached=is_cached)
    if kind == _CACHE:
        yield from nodes_of(call(call(plan, "relation"), "cachedPlan"), is_cached=True)


def items_of(found: JavaObject) -> Iterator[JavaObject]:
    """What a Scala Seq holds."""
    return (call(found, "apply", place) for place in range(call_number(found, "size")))
