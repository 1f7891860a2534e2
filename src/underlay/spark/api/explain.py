"""Explains which files and blocks of a lake's tables Spark reads for a DataFrame, and why it skips the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pyspark.sql import DataFrame

from underlay.errors import Unsupported
from underlay.plan.chunks import fetch_bytes
from underlay.plan.explain import explain as explain_plan
from underlay.plan.plan import BlockPlan
from underlay.spark.api.scans import FileScan, scans_of

NOTHING = "the query reads no table of a lake"
_SHOWN_CHARS = 120


def explain(frame: DataFrame) -> str:
    """Explain each scan of a table: the version, how it is read, which files Spark gets, and which of their blocks the
    plan needs. Runs nothing.

    Equal scans are shown once. Raises Unsupported over Spark Connect, where no plan can be seen.
    """
    if not hasattr(frame, "_jdf"):
        raise Unsupported("Spark Connect does not expose query plans", hint="Use table.plan(where=…).explain().")
    counted = Counter(map(_show, scans_of(frame)))
    return "\n\n".join(text if times == 1 else _counted(text, times) for text, times in counted.items()) or NOTHING


def _counted(text: str, times: int) -> str:
    title, mark, rest = text.partition("\n")
    return f"{title} ({times} scans){mark}{rest}"


def _show(scan: FileScan) -> str:
    version = "" if scan.version is None else f" version {scan.version}"
    lines = [f"{scan.table}{version}, {scan.how}{', through a cached frame' if scan.is_cached else ''}"]
    if scan.taken:
        lines.append(f"conditions of the plan: {_list(scan.taken)}")
    if scan.left_to_spark:
        lines.append(f"left to Spark, dropping nothing: {_list(scan.left_to_spark)}")
    if scan.plan is not None:
        lines += _show_plan(scan.plan, scan)
    return "\n  ".join(lines)


def _show_plan(plan: BlockPlan, scan: FileScan) -> list[str]:
    table, *drops, read = explain_plan(plan).splitlines()
    drops = [table if scan.is_whole else table.replace("table:", "these files of the table:", 1), *drops]
    if not scan.is_native:
        return [*drops, read]
    total, kept = plan.totals, plan.kept
    return [
        *drops,
        f"handed to Spark: {kept.files:,} of {_count(total.files, 'file')}, {kept.data_bytes:,} bytes",
        f"needed of them: {kept.blocks:,} of {_count(total.blocks, 'block')}, {_count(kept.rows, 'row')},"
        f" {fetch_bytes(plan):,} bytes of {_count(len(plan.columns), 'column')}; Spark picks row groups itself",
    ]


def _list(conditions: Sequence[str]) -> str:
    return "; ".join(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…" for text in conditions)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
