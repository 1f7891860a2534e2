"""`underlay expire`, `sweep` and `vacuum`: what they deleted, or would delete."""

from __future__ import annotations

from dataclasses import asdict

from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.cli.care.compaction_reports import show_compacted
from underlay.cli.common.output import print_json, progress_bar, say, show_bytes, show_count
from underlay.maintain.care.vacuum import Vacuumed
from underlay.maintain.expire.expire import Expired
from underlay.maintain.sweep.swept import Swept

_EXAMPLES = 3
_DO_IT = "Nothing was changed. Repeat the command with --yes to do it."


def expire_versions(table: Table, older_than: str | None, keep: int | None, *, yes: bool, json: bool) -> None:
    """Expire versions, and say which."""
    with progress_bar("replacing roots") as tell:
        found = table.expire(older_than, keep, dry_run=not yes, progress=tell)
    if json:
        print_json(asdict(found))
        return
    print(show_expired(found))
    if not yes:
        say(_DO_IT)


def sweep_objects(lake: Lake, grace: str, *, yes: bool, json: bool) -> None:
    """Delete unreferenced objects, and say which."""
    with progress_bar("sweeping") as tell:
        found = lake.sweep(grace, dry_run=not yes, progress=tell)
    if json:
        print_json(swept_json(found))
        return
    print(show_swept(found))
    if not yes:
        say(_DO_IT)


def vacuum_table(table: Table, older_than: str | None, keep: int | None, grace: str, *, yes: bool, json: bool) -> None:
    """Compact, expire and sweep one table, and say what was done."""
    with progress_bar("looking after") as tell:
        found = table.vacuum(older_than, keep, grace, dry_run=not yes, progress=tell)
    _print_vacuumed(found, yes=yes, json=json)


def vacuum_lake(lake: Lake, older_than: str | None, keep: int | None, grace: str, *, yes: bool, json: bool) -> None:
    """The same for all tables of a lake."""
    with progress_bar("looking after") as tell:
        found = lake.vacuum(older_than, keep, grace, dry_run=not yes, progress=tell)
    _print_vacuumed(found, yes=yes, json=json)


def _print_vacuumed(found: Vacuumed, *, yes: bool, json: bool) -> None:
    if json:
        print_json(
            {
                "is_dry_run": found.is_dry_run,
                "compacted": [asdict(one) for one in found.compacted],
                "expired": [asdict(one) for one in found.expired],
                "swept": swept_json(found.swept),
            }
        )
        return
    for compacted, expired in zip(found.compacted, found.expired, strict=True):
        print(show_compacted(compacted))
        print(show_expired(expired))
    print(show_swept(found.swept))
    if not yes:
        say(_DO_IT)


def swept_json(found: Swept) -> dict[str, object]:
    """A sweep as JSON."""
    folders = [asdict(one) | {"horizon": one.horizon.isoformat()} for one in found.folders]
    return asdict(found) | {"folders": folders}


def show_swept(found: Swept) -> str:
    """What a sweep deleted, in words."""
    verb = "would be deleted" if found.is_dry_run else "deleted"
    lines = [
        f"{show_count(found.object_count, 'object')} of {found.listed_count:,} {verb}, {show_bytes(found.size_bytes)}"
    ]
    for one in found.folders:
        kinds = ", ".join(show_count(count, kind) for kind, count in one.kinds.items())
        lines.append(f"  {one.table or one.folder} ({one.reason}): {kinds}, {show_bytes(one.size_bytes)}")
        lines += [f"    {key}" for key in one.examples[:_EXAMPLES]]
    return "\n".join(lines)


def show_expired(found: Expired) -> str:
    """What an expiry did, in words."""
    verb = "would expire" if found.is_dry_run else "expired"
    lines = [f"{found.table}: {show_count(found.version_count, 'version')} {verb}; {_left(found)}"]
    if found.examples:
        more = "" if found.version_count <= len(found.examples) else " …"
        lines.append(f"  {', '.join(map(str, found.examples))}{more}")
    lines += [f"  tag {tag} keeps version {version}" for tag, version in found.tags.items()]
    for reader, version in found.leases.items():
        kept = "all versions, since it cannot be read" if version is None else f"version {version}"
        lines.append(f"  lease {reader} keeps {kept}")
    lines += [f"  export {name} keeps version {version}" for name, version in found.exports.items()]
    if found.tombstone_count:
        lines.append(f"  {show_count(found.tombstone_count, 'root')} replaced, {show_bytes(found.size_bytes)}")
    if found.waiting_count:
        lines.append(f"  {show_count(found.waiting_count, 'root')} wait until their readers must be done")
    if found.record_count:
        lines.append(f"  {show_count(found.record_count, 'record')} of runs")
    if found.jobs:
        lines.append(f"  jobs that ended: {', '.join(found.jobs)}")
    return "\n".join(lines)


def show_health(table: Table, *, json: bool) -> None:
    """The health of a table: one line for each finding, with the command that fixes it."""
    found = table.health()
    if json:
        print_json(asdict(found))
        return
    print(
        f"{found.table}, version {found.version}: {show_count(found.file_count, 'file')}, "
        f"{show_bytes(found.data_bytes)}, {show_count(found.row_count, 'row')}, "
        f"{show_count(found.version_count, 'version')}"
    )
    for one in found.findings:
        gains = [f"frees about {show_bytes(one.saved_bytes)}"] if one.saved_bytes else []
        gains += [f"a full scan opens {one.saved_requests:,} fewer files"] if one.saved_requests else []
        print(f"  {one.kind}: {one.text}{''.join(f'; {gain}' for gain in gains)}: {one.command}")
    if found.is_healthy:
        print("  nothing to do")


def _left(found: Expired) -> str:
    also = f"{', '.join(map(str, found.also_left))} and " if found.also_left else ""
    return f"{also}{found.oldest_left} and later are kept"
