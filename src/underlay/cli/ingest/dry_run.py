"""`underlay ingest --dry-run`: what would be done with each source."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from underlay.cli.common.output import print_json, print_table, say, show_bytes, show_count
from underlay.cli.ingest.choice import Choice
from underlay.cli.ingest.report import failure_lines
from underlay.ingest.exactly_once.ledger import LedgerEntry
from underlay.ingest.run.dry_run import DryRun
from underlay.schema.convert.arrow import from_arrow
from underlay.schema.convert.ddl import format_ddl

_SHOWN = 20
_KINDS = ("new", "takeable", "changed", "failed", "claimed", "known")
"""Lists of a ledger, those first of which something is to be done."""
_NAMES = {"takeable": "left by a run that died", "failed": "failed before"}


def show_dry_run(plan: DryRun, choice: Choice, *, json: bool) -> None:
    """The first sources and counts of all, columns that would be made, and sources that would fail."""
    if json:
        print_json(_as_json(plan))
        return
    wanted = {entry.found.uri for entry in plan.wanted}
    rows = [
        ("ingest" if entry.found.uri in wanted else "leave", _NAMES.get(kind, kind), show_bytes(entry.found.size_bytes),
         entry.found.uri)
        for kind, entry in _entries(plan)
    ]  # fmt: skip
    if rows:
        print_table(("what", "why", "bytes", "source"), rows[:_SHOWN])
    counts = ", ".join(f"{count:,} {_NAMES.get(kind, kind)}" for kind, count in _counts(plan).items() if count)
    say(f"{plan.table}: {show_count(len(rows), 'source')}: {counts or 'none'}")
    say(f"would ingest {show_count(len(plan.wanted), 'source')}, {show_bytes(plan.size_bytes)}; nothing was changed")
    if plan.columns is not None:
        say("the table would be made:\n  " + format_ddl(from_arrow(plan.columns)).replace("\n", "\n  "))
    if len(plan.new_columns):
        fates = {"error": "fail their sources", "ignore": "be left out", "add": "be added"}
        names = ", ".join(f"{field.name} {field.type}" for field in plan.new_columns)
        say(f"new columns would {fates[choice.options['new_columns']]}: {names}")
    for line in failure_lines(plan.problems):
        say(f"would have {line}")


def _entries(plan: DryRun) -> Iterator[tuple[str, LedgerEntry]]:
    for kind in _KINDS:
        entries: tuple[LedgerEntry, ...] = getattr(plan.ledger, kind)
        yield from ((kind, entry) for entry in entries)


def _counts(plan: DryRun) -> dict[str, int]:
    return {kind: len(getattr(plan.ledger, kind)) for kind in _KINDS}


def _as_json(plan: DryRun) -> dict[str, object]:
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
