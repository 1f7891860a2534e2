"""`underlay import` and `sync`: what they did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from underlay.api.table import Table
from underlay.cli.care.compaction_reports import import_into_table
from underlay.cli.common.lake_choice import open_lake
from underlay.cli.common.output import print_json, progress_bar, say, show_count
from underlay.cli.common.table_choice import newest_table
from underlay.errors import InvalidRequest
from underlay.interop.open_source import is_source


def import_files_or_table(
    url: str | None, option: Sequence[str] | None, name: str, given: Sequence[str], *, dry_run: bool, json: bool
) -> None:
    """A table from another system if a source is given, else registered files."""
    sources = [text for text in given if is_source(text)]
    if not sources:
        import_into_table(newest_table(url, option, name), given, dry_run=dry_run, json=json)
        return
    if len(given) > 1:
        raise InvalidRequest("a table is imported from one source alone", found=" ".join(given))
    if dry_run:
        raise InvalidRequest("--dry-run is for registered files", hint="An import that is refused changes nothing.")
    with progress_bar("importing") as tell:
        table = open_lake(url, option).import_table(name, sources[0], progress=tell)
    root = table.read_head().root
    if json:
        facts = {"table": name, "version": root.version, "source": sources[0]}
        print_json({**facts, "files": root.file_count, "rows": root.row_count})
    else:
        files, rows = show_count(root.file_count, "file"), show_count(root.row_count, "row")
        say(f"{name}: version {root.version}, {files} and {rows} of {sources[0]}")


def sync_table(table: Table, *, json: bool) -> None:
    """Bring a table up to date, and say what is new."""
    with progress_bar("reading") as tell:
        done = table.sync(progress=tell)
    if json:
        print_json({"table": table.name, **asdict(done)})
    elif not done.is_new:
        say(f"{table.name}: version {done.version} has everything of {done.source}")
    else:
        files = f"{show_count(done.files_added, 'file')} added and {done.files_removed:,} removed"
        rows = f"{show_count(done.rows_added, 'row')} added and {done.rows_deleted:,} deleted"
        say(f"{table.name}: version {done.version}, {files}, {rows}, from {done.source}")
