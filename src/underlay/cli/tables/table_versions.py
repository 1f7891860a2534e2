"""`underlay history`, `tag`, `rollback` and `revisions`: what a table was."""

from __future__ import annotations

from underlay.api.info import Version, describe
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.cli.common.output import need_yes, print_json, print_table, say, show_bytes, show_count
from underlay.cli.common.table_choice import version_missing, with_near_names
from underlay.cli.tables.table_show import show_size, version_json
from underlay.errors import InvalidRequest, TableNotFound, VersionNotFound

_EPOCH = "epoch"
"""Of a stream: a number, and no count."""


def list_history(table: Table, *, limit: int | None, json: bool) -> None:
    """Versions, the newest first, as they are read."""
    if json:
        for version in table.history(limit):
            print_json(version_json(version))
        return
    versions = list(table.history(limit))
    runs = ["run"] if any(one.run is not None for one in versions) else []
    print_table(
        ("version", "committed (UTC)", "operation", "what it did", "rows", "files", *runs),
        [
            (one.version, f"{one.committed:%Y-%m-%d %H:%M:%S}", one.operation, _deeds(one), one.row_count,
             one.file_count, *((one.run or "",) if runs else ()))
            for one in versions
        ],
    )  # fmt: skip


def tag_version(table: Table, tag: str, *, version: int | None, delete: bool, json: bool) -> None:
    """A name for a version, or no longer."""
    if delete and version is not None:
        raise InvalidRequest("--delete takes no version", hint="A tag stands for one version; its name is enough.")
    if delete:
        table.untag(tag)
        if json:
            print_json({"table": table.name, "tag": tag, "version": None})
        else:
            say(f"{table.name}: no tag {tag} any more")
        return
    meant = table.version if version is None else version
    before = table.tags.get(tag)
    _at(table, meant)
    table.tag(tag, meant)
    if json:
        print_json({"table": table.name, "tag": tag, "version": meant})
    else:
        moved = f" (it was version {before})" if before not in (None, meant) else ""
        say(f"{table.name}: {tag} is version {meant}{moved}")


def roll_back(table: Table, version: int, *, yes: bool, json: bool) -> None:
    """A new version with what an older one had; says what that means unless told to do it."""
    now, then = describe(table.snapshot().root), describe(_at(table, version).snapshot().root)
    if not yes:
        if json:
            print_json({"table": table.name, "is_done": False, "from": version_json(now), "to": version_json(then)})
        need_yes(
            f"{table.name}: version {now.version + 1} would have what version {then.version} has: {show_size(then)}"
            f" instead of {show_size(now)}. Versions up to {now.version} stay as they are"
        )
    done = table.rollback(version)
    if json:
        print_json({"table": table.name, "is_done": True, **version_json(done)})
    else:
        say(f"{table.name}: version {done.version} has what version {version} has, {show_size(done)}")


def list_revisions(lake: Lake, name: str, *, json: bool) -> None:
    """The revisions of a table, oldest first."""
    try:
        found = lake.revisions(name)
    except TableNotFound as error:
        raise with_near_names(error, lake, name) from None
    if json:
        for one in found:
            print_json({"id": one.id, "is_active": one.is_active, "created": one.created.isoformat()})
        return
    print_table(
        ("revision", "created (UTC)", "active"),
        [(one.id, f"{one.created:%Y-%m-%d %H:%M:%S}", "yes" if one.is_active else "no") for one in found],
    )


def _at(table: Table, version: int) -> Table:
    try:
        return table.at(version=version)
    except VersionNotFound as error:
        raise version_missing(error, table.name) from None


def _deeds(version: Version) -> str:
    return ", ".join(_deed(name, count) for name, count in version.counts.items() if count or name == _EPOCH)


def _deed(name: str, count: int) -> str:
    if name.endswith("_bytes"):
        return f"{show_bytes(count)} of {name.removesuffix('_bytes')}s"
    if name == "duration_ms":
        return f"{count / 1000:.1f} s"
    if name == _EPOCH:
        return f"epoch {count}"
    noun, separator, rest = name.partition("_")
    return f"{show_count(count, noun.removesuffix('s'))}{' ' if separator else ''}{rest.replace('_', ' ')}"
