"""`underlay export`: what was exported, what was left out, and why."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import typer

from underlay.cli.common.lake_choice import open_existing_lake
from underlay.cli.common.output import print_json, print_table, say
from underlay.cli.common.table_choice import open_newest
from underlay.errors import InvalidRequest, NotExportable, exit_code
from underlay.interop.export.status import ExportStatus
from underlay.interop.exported.exported_version import Exported

STATUS = "status"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options."""

    kind: str
    format: int | None
    base_url: str | None
    without: str | None
    to: str | None
    dry_run: bool


def run_export(
    url: str | None, options: Sequence[str] | None, name: str | None, given: Given, *, every: bool, json: bool
) -> None:
    """Export a table or all tables, or list what is exported."""
    if (name is None) != every:
        raise InvalidRequest("name a table, or give --all", found=name, hint='Or "underlay export status".')
    lake = open_existing_lake(url, options)
    if name == STATUS:
        _print_status(lake.exports(), json=json)
        return
    without = None if given.without is None else _names(given.without)
    if name is not None:
        found = [
            open_newest(lake, name).export(
                given.kind,
                without=without,
                base_url=given.base_url,
                format=given.format,
                to=given.to,
                dry_run=given.dry_run,
            )
        ]
    else:
        found = lake.export(
            given.kind,
            without=without,
            base_url=given.base_url,
            format=given.format,
            to=given.to,
            dry_run=given.dry_run,
        )
    for one in found:
        if json:
            print_json(_plain(one))
        else:
            _print(one)
    if any(one.refused for one in found):
        raise typer.Exit(exit_code(NotExportable("")))


def _names(text: str) -> list[str]:
    return [name.strip() for line in csv.reader([text], skipinitialspace=True) for name in line if name.strip()]


def _print(found: Exported) -> None:
    for refusal in found.refused:
        say(f"{found.table}: {refusal}")
    if found.refused:
        print(f"{found.table}: cannot be exported as {found.kind}")
        return
    kind = f"{found.kind} {found.format}" if found.format is not None else found.kind
    if found.is_dry_run:
        print(f"{found.table}: version {found.version} would be exported as {kind} to {found.url}")
    elif found.puts:
        print(f"{found.table}: exported version {found.version} as {kind} to {found.url}")
    else:
        print(f"{found.table}: version {found.version} was exported as {kind} before, to {found.url}")
    for column, reason in found.left_out.items():
        print(f"  without {column}: {reason}")
    for note in found.notes:
        say(f"{found.table}: {note}")


def _print_status(found: Iterable[ExportStatus], *, json: bool) -> None:
    rows = list(found)
    if json:
        for one in rows:
            print_json(asdict(one) | {"is_current": one.is_current, "refused": [str(why) for why in one.refused]})
        return
    print_table(
        ["table", "kind", "version", "exported", "format", "after commits", "without", "notes"],
        [
            (
                one.table,
                one.kind,
                one.version,
                one.exported_version,
                one.format,
                "yes" if one.is_automatic else "no",
                ", ".join(one.left_out) or None,
                one.problem or _reasons(one) or None,
            )
            for one in rows
        ],
    )


def _reasons(one: ExportStatus) -> str:
    return "; ".join(f"{why.subject}: {why.reason} ({why.rule})" for why in one.refused)


def _plain(found: Exported) -> dict[str, object]:
    return asdict(found) | {"refused": [asdict(one) for one in found.refused]}
