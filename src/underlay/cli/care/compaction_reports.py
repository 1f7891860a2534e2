"""`underlay compact`: what it did, or would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from underlay.api.table import Table
from underlay.cli.common.output import print_json, progress_bar, say, show_bytes, show_count
from underlay.maintain.compact.compact import Compacted

_DO_IT = "Nothing was changed. Repeat the command without --dry-run to do it."


def compact_table(table: Table, where: str | None, order: str | None, *, dry_run: bool, json: bool) -> None:
    """Compact, and report what happened to the files."""
    with progress_bar("compacting") as tell:
        found = table.compact(where, dry_run=dry_run, order=order, progress=tell)
    if json:
        print_json(asdict(found))
        return
    print(show_compacted(found))
    if dry_run:
        say(_DO_IT)


def import_into_table(table: Table, files: Sequence[str], *, dry_run: bool, json: bool) -> None:
    """Import registered files, and report what happened to them."""
    with progress_bar("importing") as tell:
        found = table.import_files(*files, dry_run=dry_run, progress=tell)
    if json:
        print_json(asdict(found))
        return
    print(show_compacted(found, "import"))
    if dry_run:
        say(_DO_IT)


def show_compacted(found: Compacted, verb: str = "compact") -> str:
    """What a compaction or an import did, in words."""
    if not found.files_before and not found.given_up and not found.failed:
        return f"{found.table}: nothing to {verb}"
    files = show_count(found.files_before, "file")
    if found.is_dry_run:
        why = ", ".join(f"{reason}: {count:,}" for reason, count in found.reasons.items())
        lines = [f"{found.table}: {files} would be {verb}ed, {show_bytes(found.bytes_before)} ({why})"]
    else:
        after = f"{found.files_after:,}, {show_bytes(found.bytes_before)} to {show_bytes(found.bytes_after)}"
        lines = [f"{found.table}: version {found.version}, {files} became {after}"]
    lines.append(
        f"  {show_count(found.blocks_copied, 'block')} copied ({show_bytes(found.bytes_copied)}), "
        f"{found.blocks_encoded:,} encoded again ({show_bytes(found.bytes_encoded)})"
    )
    if found.rows_dropped:
        lines.append(f"  {show_count(found.rows_dropped, 'deleted row')} dropped from files")
    if found.given_up:
        lines.append(f"  {show_count(found.given_up, 'file')} skipped, since other commits changed them meanwhile")
    lines += [f"  {name} cannot be read and is left as it is: {reason}" for name, reason in found.failed.items()]
    return "\n".join(lines)
