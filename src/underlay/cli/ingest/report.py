"""What `underlay ingest` says when it is done, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from underlay.api.lake import Lake
from underlay.cli.common.output import print_json, printable, say, show_bytes, show_count
from underlay.errors import UnderlayError
from underlay.ingest.exactly_once.rejected_table import SUFFIX
from underlay.ingest.run.summary import SourceFailure, Summary

_SHOWN_FAILURES = 10
_SHOWN_REASONS = 5
_REASON_CHARACTERS = 300
_WORKERS = {"local": "in this process", "spark": "on Spark"}
_REJECTED = """
with mine as (select source, line, reason from {table} where {is_mine})
select reason, count(*) as count, min(source) as source, arg_min(line, source) as line,
    (select count(distinct source) from mine) as all_sources
from mine group by reason order by count desc, reason limit {most}
"""


def report(lake: Lake, summary: Summary, *, workers: str, json: bool, watched: bool = False) -> None:
    """All of it: what one ingest did, or all looks of a watch."""
    if json:
        event = {"event": "end"} if watched else {}
        print_json({**event, **summary_json(summary, workers=workers)})
        return
    say(_watched(summary) if watched else _headline(summary, workers))
    for line in _details(summary):
        say(f"  {line}")
    for line in rejected_lines(lake, summary, watched=watched):
        say(f"  {line}")
    for line in failure_lines(summary.failures):
        say(f"  {line}")


def summary_json(summary: Summary, *, workers: str) -> dict[str, object]:
    """A summary for programs."""
    return {
        "table": summary.table,
        "run": summary.run,
        "started_us": summary.started_us,
        "seconds": round(summary.seconds, 3),
        "workers": workers or None,
        "sources": summary.sources,
        "ingested": summary.ingested,
        "replaced": summary.replaced,
        "known": summary.known,
        "skipped": summary.skipped,
        "failed": summary.failed,
        "failed_before": summary.failed_before,
        "claimed": summary.claimed,
        "rows": summary.row_count,
        "rejected": summary.rejected_count,
        "bytes": summary.source_bytes,
        "versions": summary.versions,
        "added_columns": summary.added_columns,
        "is_created": summary.is_created,
        "failures": [{"source": one.uri, "reason": one.reason} for one in summary.failures],
    }


def failure_lines(failures: Sequence[SourceFailure]) -> list[str]:
    """The first sources that failed, with their reasons."""
    lines = [f"failed: {one.uri}: {_cut(one.reason)}" for one in failures[:_SHOWN_FAILURES]]
    more = len(failures) - _SHOWN_FAILURES
    if more > 0:
        lines.append(f"and {show_count(more, 'more source')}, with their reasons in --json")
    return lines


def rejected_lines(lake: Lake, summary: Summary, *, watched: bool = False) -> list[str]:
    """How many rows were rejected, why, and how to look at them: by their run, or for the runs of a watch by time."""
    if not summary.rejected_count or summary.run is None:
        return []
    since = datetime.fromtimestamp(summary.started_us // 1_000_000, UTC).isoformat()
    is_mine = f"at >= '{since}'" if watched else f"run = '{summary.run}'"
    dataset, _, table = f"{summary.table}{SUFFIX}".partition(".")
    query = _REJECTED.format(table=f'"{dataset}"."{table}"', is_mine=is_mine, most=_SHOWN_REASONS)
    try:
        reasons = lake.sql(query).to_arrow().to_pylist()
    except UnderlayError:  # the work is done, and whoever looks at them learns what is wrong
        reasons = []
    of = f" of {show_count(reasons[0]['all_sources'], 'source')}" if reasons else ""
    lines = [f"rejected: {show_count(summary.rejected_count, 'row')}{of}"]
    for one in reasons:
        where = f"{one['source']}, line {one['line']}" if one["line"] is not None else one["source"]
        lines.append(f"  {one['count']:,} × {_cut(one['reason'])} (first in {where})")
    lines.append(f'  see them: underlay sql "select * from {summary.table}{SUFFIX} where {is_mine}"')
    return lines


def _watched(summary: Summary) -> str:
    done = f"{show_count(summary.ingested, 'source')} ingested, {show_count(summary.row_count, 'row')}"
    version = f", version {summary.versions[-1]}" if summary.versions else ""
    return f"{summary.table}: watched for {summary.seconds:.0f} s{version}, {done}"


def _headline(summary: Summary, workers: str) -> str:
    name, count = summary.table, show_count(summary.sources, "source")
    if not summary.ingested and not summary.failed:
        rest = _rest(summary)
        if summary.known == summary.sources:
            return f"{name}: {count}, all known; nothing to do"
        return f"{name}: {count}; nothing to do: {', '.join(rest) or 'none is there'}"
    rate = summary.source_bytes / summary.seconds if summary.seconds else 0.0
    by = f", {_WORKERS[workers]}" if workers in _WORKERS else ""
    version = f"version {summary.versions[-1]}" if summary.versions else "no version"
    made = "a new table, " if summary.is_created else ""
    done = f"{show_count(summary.ingested, 'source')} ingested, {show_count(summary.row_count, 'row')}"
    work = f"{show_bytes(summary.source_bytes)} in {summary.seconds:.1f} s, {show_bytes(int(rate))}/s{by}"
    return f"{name}: {made}{version}, {done} ({work})"


def _details(summary: Summary) -> list[str]:
    if not summary.ingested and not summary.failed:
        return []
    rest = _rest(summary)
    lines = [f"of {show_count(summary.sources, 'source')}: {', '.join(rest)}"] if rest else []
    if summary.added_columns:
        lines.append(f"columns added: {', '.join(map(printable, summary.added_columns))}")
    return lines


def _rest(summary: Summary) -> list[str]:
    """What became of the sources that were not simply ingested."""
    words = (
        (summary.replaced, "replaced"),
        (summary.known, "known already"),
        (summary.skipped, "changed and skipped"),
        (summary.claimed, "left to another run"),
        (summary.failed, "failed"),
        (summary.failed_before, "failed before (--retry-failed tries again)"),
    )
    return [f"{number:,} {word}" for number, word in words if number]


def _cut(text: str) -> str:
    plain = printable(text)
    return plain if len(plain) <= _REASON_CHARACTERS else f"{plain[: _REASON_CHARACTERS - 1]}…"
