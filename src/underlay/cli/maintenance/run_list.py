"""The runs of `underlay jobs`: what ended, and what watches."""

from __future__ import annotations

from collections.abc import Sequence

from underlay.api.run_info import RunInfo
from underlay.cli.common.output import print_table, printable, show_bytes

_TIME = "%Y-%m-%d %H:%M:%S"
_STATES = {"nothing": "nothing to do"}
_REASON_CHARACTERS = 200


def print_runs(runs: Sequence[RunInfo]) -> None:
    """A table, in the order in which they are given."""
    print_table(
        ("table", "run", "state", "started (UTC)", "sources", "rows", "rejected", "bytes", "seconds", "version",
         "owner", "reason"),
        [
            (run.table, run.run, _STATES.get(run.state, run.state), _show_started(run), f"{run.sources:,}",
             f"{run.row_count:,}", f"{run.rejected_count:,}", show_bytes(run.source_bytes), f"{run.seconds:.1f}",
             _show_versions(run), run.owner, _show_reason(run))
            for run in runs
        ],
    )  # fmt: skip


def run_json(run: RunInfo) -> dict[str, object]:
    """A run for programs."""
    return {
        "kind": "run",
        "table": run.table,
        "run": run.run,
        "owner": run.owner,
        "operation": run.operation,
        "state": run.state,
        "started": None if run.started is None else run.started.isoformat(),
        "ended": run.ended.isoformat(),
        "seconds": run.seconds,
        "asked": run.asked,
        "workers": run.workers,
        "sources": run.sources,
        "known": run.known,
        "skipped": run.skipped,
        "failed": run.failed,
        "claimed": run.claimed,
        "replaced": run.replaced,
        "rows": run.row_count,
        "rejected": run.rejected_count,
        "bytes": run.source_bytes,
        "versions": run.versions,
        "version_count": run.version_count,
        "reason": run.reason,
        "problem": run.problem,
    }


def _show_started(run: RunInfo) -> str:
    return "?" if run.started is None else f"{run.started:{_TIME}}"


def _show_versions(run: RunInfo) -> str | None:
    """The version, or the first and the last of several."""
    if not run.versions:
        return None
    return str(run.versions[0]) if len(run.versions) == 1 else f"{run.versions[0]}–{run.versions[-1]}"


def _show_reason(run: RunInfo) -> str:
    text = printable(run.reason or run.problem or "")
    return text if len(text) <= _REASON_CHARACTERS else f"{text[: _REASON_CHARACTERS - 1]}…"
