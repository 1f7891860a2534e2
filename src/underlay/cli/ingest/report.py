"""Reports what `underlay ingest` did, or would do, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from underlay.api.lake import Lake
from underlay.cli.common.output import print_json, print_table, printable, say, show_bytes, show_count
from underlay.errors import UnderlayError
from underlay.ingest.exactly_once.ledger import LedgerEntry
from underlay.ingest.exactly_once.rejected_table import SUFFIX, time_column
from underlay.ingest.rows.reading import NewColumnsPolicy
from underlay.ingest.run.dry_run import DryRun
from underlay.ingest.run.summary import SourceFailure, Summary
from underlay.schema.convert.arrow import from_arrow
from underlay.schema.convert.ddl import format_ddl

_SHOWN_FAILURES = 10
_SHOWN_REASONS = 5
_REASON_CHARACTERS = 300
_JSON_NAMES = {"row_count": "rows", "rejected_count": "rejected", "source_bytes": "bytes"}
_NOT_IN_JSON = ("owner", "asked", "claimed_uris")
_SHOWN_SOURCES = 20
_STATES = ("new", "takeable", "changed", "failed", "claimed", "known")
"""Lists of a ledger, those that need work first."""
_STATE_NAMES = {"takeable": "abandoned by a run that died", "failed": "failed before"}
_FATES: dict[NewColumnsPolicy, str] = {"error": "fail their sources", "ignore": "be left out", "add": "be added"}
_WORKERS = {"local": "in this process", "spark": "on Spark"}
_REJECTED = """
with mine as (select source, line, reason from {table} where {is_mine})
select reason, count(*) as count, min(source) as source, arg_min(line, source) as line,
    (select count(distinct source) from mine) as all_sources,
    (select count(distinct reason) from mine) as all_reasons
from mine group by reason order by count desc, reason limit {most}
"""


def report(lake: Lake, summary: Summary, *, json: bool, watched: bool = False) -> None:
    """The whole report of one ingest, or of all runs of a watch."""
    if json:
        event = {"event": "end"} if watched else {}
        print_json({**event, **_summary_json(summary)})
        return
    say(_watched(summary) if watched else _headline(summary))
    for line in _details(summary):
        say(f"  {line}")
    for line in rejected_lines(lake, summary, watched=watched):
        say(f"  {line}")
    for line in failure_lines(summary.failures):
        say(f"  {line}")


def report_look(summary: Summary, *, json: bool) -> None:
    """What one look of a watch did, in a line."""
    if json:
        print_json({"event": "look", **_summary_json(summary)})
        return
    counts = (
        (summary.ingested, "ingested"),
        (summary.known, "known"),
        (summary.skipped, "changed and skipped"),
        (summary.changed, "changed"),
        (summary.failed + summary.failed_before, "failed"),
    )
    words = ", ".join(f"{number:,} {word}" for number, word in counts if number)
    rows = f", {show_count(summary.row_count, 'row')}" if summary.ingested else ""
    rejected = f", {summary.rejected_count:,} rejected" if summary.rejected_count else ""
    version = f", version {summary.versions[-1]}" if summary.versions else ""
    now = f"{datetime.now(UTC):%H:%M:%S}"
    say(f"{now} {summary.table}: {show_count(summary.sources, 'source')}: {words}{rows}{rejected}{version}")
    for line in failure_lines(summary.failures):
        say(f"  {line}")


def _summary_json(summary: Summary) -> dict[str, Any]:
    """The fields of a summary that programs may need."""
    found = {
        _JSON_NAMES.get(one.name, one.name): getattr(summary, one.name)
        for one in fields(summary)
        if one.name not in _NOT_IN_JSON
    }
    found["seconds"] = round(summary.seconds, 3)
    found["workers"] = summary.workers or None
    found["failures"] = [{"source": one.uri, "reason": one.reason} for one in summary.failures]
    return found


def failure_lines(failures: Sequence[SourceFailure]) -> list[str]:
    """The first sources that failed, with their reasons."""
    lines = [f"failed: {one.uri}: {_cut(one.reason)}" for one in failures[:_SHOWN_FAILURES]]
    more = len(failures) - _SHOWN_FAILURES
    if more > 0:
        lines.append(f"and {show_count(more, 'more source')}; --json lists all with their reasons")
    return lines


def rejected_lines(lake: Lake, summary: Summary, *, watched: bool = False) -> list[str]:
    """How many rows were rejected, why, and how to look at them: by their run, or for the runs of a watch by time."""
    if not summary.rejected_count or summary.run is None:
        return []
    since = datetime.fromtimestamp(summary.started_us // 1_000_000, UTC).isoformat()
    dataset, _, table = f"{summary.table}{SUFFIX}".partition(".")
    is_mine = f"run = '{summary.run}'"
    if watched:
        is_mine = f"\"{time_column(lake.table(f'{dataset}.{table}').snapshot().schema)}\" >= '{since}'"
    query = _REJECTED.format(table=f'"{dataset}"."{table}"', is_mine=is_mine, most=_SHOWN_REASONS)
    try:
        reasons = lake.sql(query).to_arrow().to_pylist()
    except UnderlayError:  # the ingest is done; the query shown below will report the problem
        reasons = []
    of = f" of {show_count(reasons[0]['all_sources'], 'source')}" if reasons else ""
    lines = [f"rejected: {show_count(summary.rejected_count, 'row')}{of}"]
    for one in reasons:
        where = f"{one['source']}, line {one['line']}" if one["line"] is not None else one["source"]
        lines.append(f"  {one['count']:,} × {_cut(one['reason'])} (first in {where})")
    if reasons and (more := reasons[0]["all_reasons"] - len(reasons)) > 0:
        lines.append(f"  and {show_count(more, 'more reason')}")
    lines.append(f'  see them: underlay sql "select * from {summary.table}{SUFFIX} where {is_mine}"')
    return lines


def _watched(summary: Summary) -> str:
    done = f"{show_count(summary.ingested, 'source')} ingested, {show_count(summary.row_count, 'row')}"
    version = f", version {summary.versions[-1]}" if summary.versions else ""
    return f"{summary.table}: watched for {summary.seconds:.0f} s{version}, {done}"


def _headline(summary: Summary) -> str:
    name, count = summary.table, show_count(summary.sources, "source")
    if not summary.ingested and not summary.failed:
        rest = _rest(summary)
        if summary.known == summary.sources:
            return f"{name}: {count}, all known; nothing to do"
        return f"{name}: {count}; nothing to do: {', '.join(rest) or 'none is there'}"
    rate = summary.source_bytes / summary.seconds if summary.seconds else 0.0
    by = f", {_WORKERS[summary.workers]}" if summary.workers in _WORKERS else ""
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
    """What happened to the sources that were not simply ingested."""
    words = (
        (summary.replaced, "replaced"),
        (summary.known, "known already"),
        (summary.skipped, "changed and skipped"),
        (summary.changed, "changed since they were ingested"),
        (summary.claimed, "left to another run"),
        (summary.failed, "failed"),
        (summary.failed_before, "failed before (--retry-failed retries them)"),
    )
    return [f"{number:,} {word}" for number, word in words if number]


def _cut(text: str) -> str:
    plain = printable(text)
    return plain if len(plain) <= _REASON_CHARACTERS else f"{plain[: _REASON_CHARACTERS - 1]}…"


def show_dry_run(plan: DryRun, new_columns: NewColumnsPolicy, *, json: bool) -> None:
    """The first sources and counts of all, columns that would be created, and sources that would fail."""
    if json:
        print_json(_dry_run_json(plan))
        return
    wanted = {entry.found.uri for entry in plan.wanted}
    rows = [
        (
            "ingest" if entry.found.uri in wanted else "leave",
            _STATE_NAMES.get(state, state),
            show_bytes(entry.found.size_bytes),
            entry.found.uri,
        )
        for state, entry in _entries(plan)
    ]
    if rows:
        print_table(("what", "why", "bytes", "source"), rows[:_SHOWN_SOURCES])
    counts = ", ".join(f"{count:,} {_STATE_NAMES.get(kind, kind)}" for kind, count in _counts(plan).items() if count)
    say(f"{plan.table}: {show_count(len(rows), 'source')}: {counts or 'none'}")
    say(f"would ingest {show_count(len(plan.wanted), 'source')}, {show_bytes(plan.size_bytes)}; nothing was changed")
    if plan.columns is not None:
        say("the table would be created:\n  " + format_ddl(from_arrow(plan.columns)).replace("\n", "\n  "))
    if len(plan.new_columns):
        names = ", ".join(f"{field.name} {field.type}" for field in plan.new_columns)
        say(f"new columns would {_FATES[new_columns]}: {names}")
    for line in failure_lines(plan.problems):
        say(f"would have {line}")


def _entries(plan: DryRun) -> Iterator[tuple[str, LedgerEntry]]:
    for kind in _STATES:
        entries: tuple[LedgerEntry, ...] = getattr(plan.ledger, kind)
        yield from ((kind, entry) for entry in entries)


def _counts(plan: DryRun) -> dict[str, int]:
    return {kind: len(getattr(plan.ledger, kind)) for kind in _STATES}


def _dry_run_json(plan: DryRun) -> dict[str, object]:
    wanted = {entry.found.uri for entry in plan.wanted}
    return {
        "table": plan.table,
        "is_created": plan.is_created,
        "counts": _counts(plan),
        "ingest": len(plan.wanted),
        "bytes": plan.size_bytes,
        "columns": None if plan.columns is None else _columns_json(plan.columns),
        "new_columns": _columns_json(plan.new_columns),
        "problems": [{"source": one.uri, "reason": one.reason} for one in plan.problems],
        "sources": [
            {
                "source": entry.found.uri,
                "bytes": entry.found.size_bytes,
                "state": kind,
                "ingest": entry.found.uri in wanted,
            }
            for kind, entry in _entries(plan)
        ],
    }


def _columns_json(columns: pa.Schema) -> list[dict[str, str]]:
    return [{"name": field.name, "type": str(field.type)} for field in columns]
