"""Prints the report of `underlay verify`: a line for each sound table, and what a damaged one has lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import typer

from underlay.cli.common.lake_choice import LakeChoice, connect_chosen
from underlay.cli.common.output import print_json, printable, progress_bar, say, show_count
from underlay.errors import UnderlayError
from underlay.index.keys import CATALOG
from underlay.maintain.verify.finding import (
    CatalogReport,
    Counts,
    Report,
    RevisionReport,
    Severity,
    TableReport,
    VerifyFinding,
    show_versions,
)
from underlay.maintain.verify_lake import RegistryCheck, verify
from underlay.scan.read.file_stores import FileStores
from underlay.store import open_store
from underlay.table.catalog.lake import LakeCatalog

_SHOWN = 10
_NAMES = {
    Severity.LOST: "LOST",
    Severity.ANSWERS: "WRONG",
    Severity.OLDER: "older",
    Severity.DERIVED: "REBUILD",
    Severity.NOTE: "note",
}


def verify_lake(
    choice: LakeChoice,
    names: Sequence[str] | None,
    *,
    deep: bool,
    repair: bool,
    registry: bool,
    json: bool,
) -> None:
    """Verify the tables, print the report, and end with exit code 1 when something is wrong."""
    store = open_store(choice.url, choice.options or None)
    stores = FileStores(store, choice.options or None)
    check = _registry_check(choice) if registry else None
    with progress_bar("verifying") as tell:
        report = verify(
            LakeCatalog(store), stores, names or None, deep=deep, repair=repair, progress=tell, registry=check
        )
    if json:
        print_json(as_json(report))
    else:
        for line in report_lines(report):
            print(line)
        say(_summary(report))
    if not report.is_sound:
        raise typer.Exit(1)


def _registry_check(choice: LakeChoice) -> RegistryCheck | None:
    """The check of the registry; None for a lake without one."""
    found = connect_chosen(choice).registry
    if found is None:
        return None
    from underlay.api.verify import VerifiedRegistry  # loads SQLAlchemy
    from underlay.cli.registry.difference import compare_shown

    return VerifiedRegistry(found, compare=compare_shown, skip=_say_skipped)


def _say_skipped(error: UnderlayError) -> None:
    say(f"note: the registry was not compared with the store: {error}")


def as_json(report: Report) -> dict[str, object]:
    """The report, with `ok`, and for each revision the versions that cannot be read, derived from it."""
    found: dict[str, object] = msgspec.to_builtins(report)
    tables = [
        {
            "name": table.name,
            "ok": table.is_sound,
            "revisions": [
                {**msgspec.to_builtins(revision), "unreadable": msgspec.to_builtins(revision.unreadable)}
                for revision in table.revisions
            ],
        }
        for table in report.tables
    ]
    return {"ok": report.is_sound, **found, "tables": tables}


def report_lines(report: Report) -> Iterator[str]:
    """The report for people."""
    yield from _catalog_lines(report.catalog)
    for table in report.tables:
        yield from _table_lines(table, is_deep=report.is_deep)
    if report.registry:
        is_repaired = all(finding.is_repaired for finding in report.registry)
        yield f"registry: {'restored from the store' if is_repaired else 'not used, or must be rebuilt'}"
        yield from _finding_lines(report.registry)


def _catalog_lines(catalog: CatalogReport) -> Iterator[str]:
    if not catalog.findings:
        return
    if catalog.newest_intact is None:
        yield "catalog: no entry can be read, so it is not known which tables there are"
    elif catalog.newest_intact != catalog.newest:
        yield (
            f"catalog: the newest entry, {catalog.newest}, cannot be read; tables are checked as entry"
            f" {catalog.newest_intact} has them"
        )
    else:
        yield f"catalog: {show_count(catalog.entry_count, 'entry').replace('entrys', 'entries')}"
    yield from _finding_lines(catalog.findings)


def _table_lines(table: TableReport, *, is_deep: bool) -> Iterator[str]:
    for revision in table.revisions:
        name = table.name if revision.is_active else f"{table.name}, closed revision {revision.id}"
        yield f"{name}: {show_counts(revision.counts)}: {_verdict(revision, is_deep=is_deep)}"
        yield from _finding_lines(revision.findings)
        if revision.is_active and not revision.is_head_intact and revision.newest_intact is not None:
            yield from _way_out(table.name, revision.newest_intact)


def _way_out(name: str, version: int) -> Iterator[str]:
    """What to do with a table whose newest root is lost: every commit, even a rollback, would have to follow that
    root.
    """
    yield f"  The newest root is lost, so nothing can be committed, not even a rollback. Version {version} can be read:"
    yield f"    underlay scan {name} --version {version}"
    yield "  To write again, restore the root from a copy; or make a new table from that version:"
    yield f"    underlay scan {name} --version {version} --format arrow > rows.arrow"
    yield f'    underlay create {name}_new --from rows.arrow    # and what "underlay show {name}@{version}" has'
    yield f"    underlay append {name}_new rows.arrow"


def show_counts(counts: Counts) -> str:
    """`42 versions, 12 segments, 310 files, 310 sidecars`."""
    parts = [
        (counts.versions, "version"),
        (counts.segments, "segment"),
        (counts.pages, "source page"),
        (counts.files, "file"),
        (counts.sidecars, "sidecar"),
    ]
    shown = [show_count(count, noun) for count, noun in parts if count or noun in ("version", "file")]
    return ", ".join(shown)


def _verdict(revision: RevisionReport, *, is_deep: bool) -> str:
    found = {finding.severity for finding in revision.findings if finding.is_open}
    if Severity.LOST in found or (not found and revision.unreadable):
        if revision.newest_intact is None:
            return "something is lost, and no version is intact"
        if _is_newest_intact(revision):
            return f"the newest version is intact; {show_versions(revision.unreadable)} cannot be read"
        return (
            f"something is lost; the newest intact version is {revision.newest_intact}"
            f" (of {revision.newest_version}); {show_versions(revision.unreadable)} cannot be read"
        )
    if Severity.ANSWERS in found:
        return "all there, but something is inconsistent"
    if Severity.DERIVED in found:
        return "nothing is lost; something must be rebuilt"
    if any(finding.is_repaired for finding in revision.findings):
        return "all there, after a repair"
    return "all there, every row compared" if is_deep else "all there"


def _is_newest_intact(revision: RevisionReport) -> bool:
    return revision.newest_intact == revision.newest_version


def _finding_lines(findings: Sequence[VerifyFinding]) -> Iterator[str]:
    """The gravest findings first, a few of each severity."""
    for severity in Severity:
        alike = [finding for finding in findings if finding.severity is severity]
        for finding in alike[:_SHOWN]:
            word = "rebuilt" if finding.is_repaired else _NAMES[severity]
            needed = f" ({show_versions(finding.versions)})" if finding.versions else ""
            yield f"  {word:<8}{printable(finding.place)}{needed}"
            yield f"          {printable(finding.problem)}"
        for hint in dict.fromkeys(finding.hint for finding in alike if finding.hint and not finding.is_repaired):
            yield f"          → {hint}"
        if len(alike) > _SHOWN:
            yield f"          … and {len(alike) - _SHOWN:,} more; --json lists all of them"


def _summary(report: Report) -> str:
    sound = sum(table.is_sound for table in report.tables)
    tables = show_count(len(report.tables), "table")
    if report.is_sound:
        has_losses = any(finding.is_loss for finding in report.findings)
        return f"{tables}: nothing is wrong{' with the newest versions' if has_losses else ''}"
    if any(revision.unreadable for table in report.tables for revision in table.revisions):
        advice = 'Read an intact version with "underlay scan NAME --version N"'
        if any(table.active.is_head_intact and not _is_newest_intact(table.active) for table in report.tables):
            advice = f'{advice}; "underlay rollback" makes it the newest'
        advice += "."
    elif any(finding.place.startswith(f"{CATALOG}/") and finding.is_open for finding in report.findings):
        advice = "Tables are read through the newest intact entry."
    else:
        advice = 'Run "underlay verify --repair" to rebuild what is derived.'
    return f"{sound} of {tables} sound. {advice}"
