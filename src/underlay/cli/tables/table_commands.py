"""Commands on a table and its versions: `create`, `show`, `history`, `tag` and `rollback`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from underlay.cli.common.options import AsOf, Json, LakeUrl, StoreOptions, TableName, Tag, VersionNumber, Yes
from underlay.cli.common.output import need_yes, print_json, print_table, say, show_bytes, show_count
from underlay.cli.common.text_options import with_text_options
from underlay.errors import InvalidRequest, VersionNotFound
from underlay.ingest.rows.reading import Dialect
from underlay.ingest.source.file_format import FileFormat

if TYPE_CHECKING:
    from underlay.api.opened.info import Version
    from underlay.api.table import Table

_EPOCH = "epoch"
_RESTORED = "version_restored"
_SHOWN_ZEROS = (_EPOCH, _RESTORED)
_OF_CHANGES = frozenset(("rows_matched", "rows_inserted", "rows_updated"))
_SAID_OTHERWISE = frozenset(("rows_matched", "rows_added"))
"""Counts of a change that repeat others: updated or deleted rows; inserted, updated or rewritten rows."""
"""The epoch of a stream is a number, not a count."""


@with_text_options
def create(
    name: TableName,
    schema: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS", help='Columns as SQL, such as "id bigint not null, pickup timestamp". Default: none.'
        ),
    ] = None,
    schema_file: Annotated[
        Path | None,
        typer.Option("--schema-file", metavar="FILE", help="A file with columns as SQL. Default: none."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DATA",
            help="Columns of this Parquet, CSV, JSON or Arrow file, or of stdin (-); its rows are not added."
            " Default: none.",
        ),
    ] = None,
    format: Annotated[
        FileFormat | None,
        typer.Option(
            "--format",
            show_default=False,
            help="The format of --from. Default: by the ending of its name; of stdin, by its first bytes.",
        ),
    ] = None,
    *,
    dialect: Dialect,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of the key, with bloom filters; repeatable. Default: no key."),
    ] = None,
    sort_by: Annotated[
        list[str] | None,
        typer.Option(
            "--sort-by",
            metavar="COLUMN",
            help='Sort the rows of a file by it; "fare desc" for descending; repeatable. Default: unsorted.',
        ),
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            "--partition-by",
            metavar="TRANSFORM",
            help="Split files by zone, month(pickup), bucket(16, id), …; repeatable. Default: no partitions.",
        ),
    ] = None,
    comment: Annotated[str | None, typer.Option(metavar="TEXT", help="A description. Default: none.")] = None,
    property: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="KEY=VALUE",
            help="How files are written: block_rows, block_bytes, file_bytes, codec, bloom; repeatable."
            " Default: 1048576 rows or 128 MiB a block, 512 MiB a file, zstd, bloom filters on the key.",
        ),
    ] = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Create a table without rows.

    The columns come from one of --schema, --schema-file and --from.

    \b
    Examples:
      underlay create taxi.trips --schema "id bigint not null, pickup timestamp, fare double" --key id --sort-by pickup
      underlay create taxi.trips --from trips.csv --partition-by "month(pickup)"
    """
    from underlay.cli.common.lake_choice import open_existing_lake
    from underlay.cli.rows.data_file import FileReading
    from underlay.cli.tables.table_create import create_table

    create_table(
        open_existing_lake(lake, option),
        name,
        schema=schema,
        schema_file=schema_file,
        data=data,
        reading=FileReading(kind=format, dialect=dialect),
        key=key or (),
        sort_by=sort_by or (),
        partition_by=partition_by or (),
        comment=comment,
        properties=property or (),
        json=json,
    )


def show(
    name: TableName,
    version: VersionNumber = None,
    as_of: AsOf = None,
    tag: Tag = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Show a table: columns, layout, size, tags.

    DATASET.TABLE@7 is version 7, and DATASET.TABLE@audit the version tagged audit.

    \b
    Examples:
      underlay show taxi.trips
      underlay show taxi.trips@7 --json
    """
    from underlay.cli.common.table_choice import chosen_table
    from underlay.cli.tables.description import show_table

    show_table(chosen_table(lake, option, name, version=version, as_of=as_of, tag=tag), json=json)


def history(
    name: TableName,
    limit: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, show_default=False, help="The newest N versions only; 0 for all. Default: 100."
        ),
    ] = 100,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """List the versions of a table, newest first.

    For each version: commit time (UTC), what it did, and the rows and files of the table after it.

    \b
    Examples:
      underlay history taxi.trips
      underlay history taxi.trips --limit 5 --json
    """
    from underlay.cli.common.table_choice import chosen_table
    from underlay.cli.tables.description import version_json

    found = chosen_table(lake, option, name).history(limit or None)
    if json:
        for one in found:
            print_json(version_json(one))
        return
    versions = list(found)
    runs = ["run"] if any(one.run is not None for one in versions) else []
    print_table(
        ("version", "committed (UTC)", "operation", "what it did", "rows", "files", *runs),
        [
            (one.version, f"{one.committed:%Y-%m-%d %H:%M:%S}", one.operation, _deeds(one), one.row_count,
             one.file_count, *((one.run or "",) if runs else ()))
            for one in versions
        ],
    )  # fmt: skip
    if versions[-1].version:
        say(f"{versions[-1].version:,} older versions are not shown. Show all with --limit 0.")


def tag(
    name: TableName,
    tag: Annotated[str, typer.Argument(metavar="NAME", hidden=True, show_default=False)],
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", help="The version to tag. Default: the newest.")
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Remove the tag. Default: set it.")] = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Tag a version of a table, or remove a tag.

    A tag that exists moves to the given version.

    \b
    Examples:
      underlay tag taxi.trips audit --version 7
      underlay tag taxi.trips audit --delete
    """
    from underlay.cli.common.table_choice import newest_table

    table = newest_table(lake, option, name)
    if delete and version is not None:
        raise InvalidRequest("--delete takes no version", hint="A tag names one version, so its name is enough.")
    if delete:
        table.untag(tag)
        if json:
            print_json({"table": table.name, "tag": tag, "version": None})
        else:
            say(f"{table.name}: tag {tag} removed")
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


def rollback(
    name: TableName,
    version: Annotated[int | None, typer.Argument(metavar="[VERSION]", hidden=True, show_default=False)] = None,
    tag: Annotated[
        str | None, typer.Option("--tag", metavar="NAME", help="The version with this tag. Default: VERSION.")
    ] = None,
    yes: Yes = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Restore an older version, as a new version.

    Give VERSION or --tag. Without --yes this only prints what would change, and ends with exit code 2. No version is
    lost.

    \b
    Examples:
      underlay rollback taxi.trips 5
      underlay rollback taxi.trips --tag audit --yes
    """
    from underlay.cli.common.table_choice import newest_table
    from underlay.cli.tables.description import newest_of, show_size, version_json

    if (version is None) == (tag is None):
        raise InvalidRequest("give a version or a tag", hint=f'"underlay history {name}" lists the versions.')
    table = newest_table(lake, option, name)
    now, then = newest_of(table), newest_of(_at(table, _tagged(table, tag) if version is None else version))
    if not yes:
        if json:
            print_json({"table": table.name, "is_done": False, "from": version_json(now), "to": version_json(then)})
        need_yes(
            f"{table.name}: version {now.version + 1} would restore version {then.version}: {show_size(then)} instead"
            f" of {show_size(now)}. Versions up to {now.version} stay as they are"
        )
    done = table.rollback(then.version)
    if json:
        print_json({"table": table.name, "is_done": True, **version_json(done)})
    else:
        say(f"{table.name}: version {done.version} restores version {then.version}, {show_size(done)}")


def _at(table: Table, version: int) -> Table:
    from underlay.cli.common.table_choice import version_missing

    try:
        return table.at(version=version)
    except VersionNotFound as error:
        raise version_missing(error, table.name) from None


def _tagged(table: Table, tag: str | None) -> int:
    """The version with this tag. Raises NotFound, and InvalidRequest for a tag of another revision."""
    version = table.at(tag=tag).version
    if tag is None or table.tags.get(tag) != version:
        raise InvalidRequest("the tag names a version of another revision", place=table.name, found=tag)
    return version


def _deeds(version: Version) -> str:
    counts = {name: count for name, count in version.counts.items() if count or name in _SHOWN_ZEROS}
    if not _OF_CHANGES.isdisjoint(counts):  # the changed rows, then the files rewritten for them
        names = [name for name in counts if name not in _SAID_OTHERWISE]
        counts = {name: counts[name] for name in sorted(names, key=lambda name: name.startswith("files_"))}
    return ", ".join(_deed(name, count) for name, count in counts.items())


def _deed(name: str, count: int) -> str:
    if name.endswith("_bytes"):
        return f"{show_bytes(count)} of {name.removesuffix('_bytes')}s"
    if name == "duration_ms":
        return f"{count / 1000:.1f} s"
    if name == _EPOCH:
        return f"epoch {count}"
    if name == _RESTORED:
        return f"version {count} restored"
    noun, separator, rest = name.partition("_")
    return f"{show_count(count, noun.removesuffix('s'))}{' ' if separator else ''}{rest.replace('_', ' ')}"
