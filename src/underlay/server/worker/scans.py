"""The scans of a statement: how answers describe them, and what is kept for their block maps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from underlay.api.views.block_map import ScanVerdicts
from underlay.local.dataset.source import NamedScan
from underlay.plan.chunks import fetch_bytes
from underlay.plan.explain import to_dict
from underlay.plan.plan import BlockPlan
from underlay.server.common.problem import Problem

_COLUMNS = pa.schema(
    [("about", pa.string()), ("verdicts", pa.large_list(pa.uint8())), ("steps", pa.large_list(pa.uint16()))]
)


def planned(scans: Iterable[NamedScan]) -> list[tuple[NamedScan, BlockPlan]]:
    """The scans with their plans, in the order in which the engine asked for them."""
    return [(scan, scan.query.plan) for scan in list(scans)]


def sums_of(scans: Sequence[tuple[NamedScan, BlockPlan]]) -> dict[str, int]:
    """Totals over all scans of a statement."""
    return {
        "blocks_total": sum(plan.totals.blocks for _, plan in scans),
        "blocks_read": sum(plan.kept.blocks for _, plan in scans),
        "bytes_read": sum(fetch_bytes(plan) for _, plan in scans),
    }


def progress_of(scans: Iterable[NamedScan]) -> dict[str, int]:
    """The progress of the scans that have begun."""
    known = [scan.query for scan in list(scans) if "plan" in vars(scan.query)]
    done = [one for query in known for one in list(query.done)]
    return {
        "blocks": sum(query.plan.kept.blocks for query in known),
        "blocks_read": sum(blocks for blocks, _ in done),
        "bytes_read": sum(size for _, size in done),
    }


def describe_scans(scans: Sequence[tuple[NamedScan, BlockPlan]]) -> list[dict[str, object]]:
    """Each scan as shown in answers: what each step dropped, and what is left."""
    found = []
    for number, (scan, plan) in enumerate(scans):
        known = to_dict(plan)
        found.append(
            {
                "scan": number,
                "table": scan.table,
                "version": scan.query.snapshot.version,
                "columns": [field.name for field in scan.query.read_columns],
                "predicate": known["predicate"],
                "filter": None if scan.query.rest is None else "rows are filtered by another condition too",
                "total": known["table"],
                "kept": known["kept"],
                "steps": known["steps"],
            }
        )
    return found


def pack_scans(scans: Sequence[tuple[NamedScan, BlockPlan]]) -> bytes:
    """The verdict on each block, as `load_scan` reads it from a file; nothing without scans."""
    if not scans:
        return b""
    rows: dict[str, list[Any]] = {name: [] for name in _COLUMNS.names}  # Any: of each column's type
    for scan, plan in scans:
        decided = ScanVerdicts.of(plan)
        about = {
            "table": scan.table,
            "version": scan.query.snapshot.version,
            "skipped": sorted(decided.skipped),
            "leaves": decided.leaves,
            "steps": decided.steps,
        }
        rows["about"].append(json.dumps(about))
        rows["verdicts"].append(decided.verdicts)
        rows["steps"].append(decided.numbers)
    table = pa.table(rows, schema=_COLUMNS)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    packed = pa.BufferOutputStream()
    with pa.ipc.new_file(packed, _COLUMNS, options=options) as writer:
        writer.write_table(table)
    return packed.getvalue().to_pybytes()


def load_scan(path: str, number: int) -> tuple[str, int, ScanVerdicts]:
    """The table, the version, and the verdicts on its blocks. Raises Problem."""
    if not Path(path).exists():
        raise Problem(status=404, code="not_found", detail="the statement has no scans")
    with pa.OSFile(path, "rb") as file:
        kept = pa.ipc.open_file(file).read_all()
        if number >= kept.num_rows:
            raise Problem(
                status=404, code="not_found", detail="the statement has no such scan", hint=f"It has {kept.num_rows}."
            )
        about = json.loads(kept["about"][number].as_py())
        verdicts, steps = (kept[name][number].values.to_numpy() for name in ("verdicts", "steps"))
        decided = ScanVerdicts(
            skipped=frozenset(about["skipped"]),
            leaves=tuple(about["leaves"]),
            steps=about["steps"],
            verdicts=np.array(verdicts),
            numbers=np.array(steps),
        )
    return about["table"], about["version"], decided
