"""`underlay pm prune`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from underlay.cli.common.output import end_with, print_json, print_table, show_bytes, show_count, try_each
from underlay.cli.pm.choice import column_indices, open_version, split_names
from underlay.errors import UnderlayError
from underlay.parquet.footer.tail import load_footer
from underlay.pm.format.sidecar import Sidecar
from underlay.pm.prune.prune import chunk_ranges, prune
from underlay.prune import And, Cause, Verdict
from underlay.prune.parse.sql import parse_where
from underlay.values.ranges import ByteRange


class PrunedFile(NamedTuple):
    """The part of one file that a filter keeps."""

    file: Path
    verdict: Verdict
    row_counts: list[int]
    ranges: list[ByteRange]
    total_bytes: int

    @property
    def kept(self) -> list[int]:
        """The row groups that the filter keeps."""
        return np.flatnonzero(self.verdict.kept).tolist()

    @property
    def bytes_to_read(self) -> int:
        """The bytes of the chosen columns in them."""
        return sum(r.size_bytes for r in self.ranges)


def prune_sidecars(
    files: list[Path], where: str, *, columns: str | None, parquet: Path | None, version_size: int | None, json: bool
) -> None:
    """Show which row groups are kept, which are dropped and why, and the bytes left to read; for several files also a
    total.
    """
    predicate = parse_where(where)
    schema = load_footer(parquet).footer.schema if parquet else None
    names = split_names(columns)
    plans: list[PrunedFile] = []

    def prune_one(file: Path) -> None:
        sidecar = open_version(file, version_size)
        try:
            plan = _plan(file, sidecar, prune(sidecar, predicate, schema), names)
        except UnderlayError as error:
            raise error.at(str(file)) from None
        plans.append(plan)
        if json:
            print_json(_as_json(plan))
        else:
            _print_plan(plan, predicate)

    failure = try_each(files, prune_one, "pruning")
    if len(files) > 1 and not json:
        _print_total(plans)
    end_with(failure)


def _plan(file: Path, sidecar: Sidecar, verdict: Verdict, names: list[str] | None) -> PrunedFile:
    wanted = None if names is None else column_indices(sidecar, names)
    return PrunedFile(
        file,
        verdict,
        sidecar.num_rows.tolist(),
        chunk_ranges(sidecar, np.flatnonzero(verdict.kept).tolist(), wanted),
        sum(r.size_bytes for r in chunk_ranges(sidecar, range(sidecar.row_group_count), wanted)),
    )


def _as_json(plan: PrunedFile) -> dict[str, object]:
    verdict = plan.verdict
    return {
        "file": str(plan.file),
        "row_groups": len(plan.row_counts),
        "kept": plan.kept,
        "dropped": [
            {"row_group": i, "cause": Cause(int(verdict.causes[i])).name.lower(), "reason": verdict.reason(i)}
            for i in np.flatnonzero(~verdict.kept).tolist()
        ],
        "bytes": plan.bytes_to_read,
        "total_bytes": plan.total_bytes,
        "ranges": [list(r) for r in plan.ranges],
    }


def _print_plan(plan: PrunedFile, where: And) -> None:
    print(f"{plan.file}: {where}")
    rows = [
        (i, plan.row_counts[i], "keep" if is_kept else "drop", "" if is_kept else plan.verdict.reason(i))
        for i, is_kept in enumerate(plan.verdict.kept.tolist())
    ]
    print_table(("row group", "rows", "verdict", "why"), rows)
    print(
        f"{len(plan.kept)} of {show_count(len(plan.row_counts), 'row group')} may match:"
        f" {show_bytes(plan.bytes_to_read)} of {show_bytes(plan.total_bytes)} to read"
        f" in {show_count(len(plan.ranges), 'range')}"
    )
    print()


def _print_total(plans: list[PrunedFile]) -> None:
    kept, all_groups = sum(len(plan.kept) for plan in plans), sum(len(plan.row_counts) for plan in plans)
    to_read, total = sum(plan.bytes_to_read for plan in plans), sum(plan.total_bytes for plan in plans)
    print(
        f"total: {kept} of {show_count(all_groups, 'row group')} in {show_count(len(plans), 'file')} may match:"
        f" {show_bytes(to_read)} of {show_bytes(total)} to read"
    )
