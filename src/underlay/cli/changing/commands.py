"""Declares `upsert`, `delete`, `update`, `alter` and `changes`; what they do is imported when they run."""

from __future__ import annotations

from typing import Annotated

import typer

from underlay.cli.common.options import (
    ColumnNames,
    Format,
    Json,
    LakeUrl,
    NoHive,
    Output,
    SourceOptions,
    StoreOptions,
    TableName,
    Where,
)
from underlay.cli.common.text_options import MaxRecordBytes, read_size, with_text_options
from underlay.cli.rows.commands import JsonRows, Limit, Parameters
from underlay.ingest.rows.reading import Dialect
from underlay.ingest.source.file_format import FileFormat

DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Print the rows, blocks and bytes that it would touch, and change nothing. Default: do it."
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="A change with this token is made only once, however often the command is repeated. Default: none.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="The columns that rows are matched by. Default: the key of the table."),
]
KeepAsking = Annotated[
    bool,
    typer.Option("--yes", help="Do not ask before all rows are changed. Default: ask, or refuse without a terminal."),
]
DataFormat = Annotated[
    FileFormat | None,
    typer.Option(
        "--format",
        show_default=False,
        help="The format of the file. Default: by the ending of its name; of stdin, by its first bytes.",
    ),
]


@with_text_options
def upsert(
    name: TableName,
    file: Annotated[str, typer.Argument(metavar="FILE", hidden=True, show_default=False)],
    key: Key = None,
    token: Token = None,
    format: DataFormat = None,
    dry_run: DryRun = False,
    *,
    dialect: Dialect,
    max_record: MaxRecordBytes = None,
    no_hive: NoHive = False,
    source_option: SourceOptions = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Replace rows by their key, and add those that are new.

    FILE is a path, URL or pattern of Parquet, CSV, TSV, JSON lines or Arrow IPC, or - for stdin, and is read as
    "underlay append" reads it. Columns that it lacks stay as they are in rows that are replaced. A key that is null, or
    occurs twice in the file, is an error, and nothing is changed.

    \b
    Examples:
      underlay upsert taxi.trips corrections.csv
      underlay upsert taxi.trips 'fixes/*.parquet' --key trip_id --dry-run
    """
    from underlay.cli.changing.work import upsert_file
    from underlay.cli.common.lake_choice import split_pairs
    from underlay.cli.common.table_choice import newest_table
    from underlay.cli.rows.data_file import FileReading

    reading = FileReading(kind=format, dialect=dialect, record_bytes=read_size(max_record), hive=not no_hive)
    given = split_pairs(source_option or (), "--source-option")
    table = newest_table(lake, option, name)
    upsert_file(table, file, reading, given, key=key, token=token, dry_run=dry_run, json=json)


@with_text_options
def delete(
    name: TableName,
    where: Where = None,
    param: Parameters = None,
    rows: Annotated[
        str | None,
        typer.Option(
            "--rows",
            metavar="FILE",
            help="Delete the rows that have a key of this file, or of stdin (-). Default: none.",
        ),
    ] = None,
    key: Key = None,
    format: DataFormat = None,
    token: Token = None,
    dry_run: DryRun = False,
    yes: KeepAsking = False,
    *,
    dialect: Dialect,
    max_record: MaxRecordBytes = None,
    no_hive: NoHive = False,
    source_option: SourceOptions = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Delete rows of a table, by a condition or by their keys.

    Older versions keep the rows. Without --where and --rows all rows are deleted, which has to be confirmed.

    \b
    Examples:
      underlay delete taxi.trips --where 'fare < $least' --param least=0 --dry-run
      underlay delete taxi.trips --rows cancelled.csv --key trip_id
    """
    from underlay.cli.changing.work import delete_rows
    from underlay.cli.common.lake_choice import split_pairs
    from underlay.cli.common.table_choice import newest_table
    from underlay.cli.rows.data_file import FileReading

    reading = FileReading(kind=format, dialect=dialect, record_bytes=read_size(max_record), hive=not no_hive)
    given = split_pairs(source_option or (), "--source-option")
    table = newest_table(lake, option, name)
    delete_rows(
        table,
        where=where,
        param=param,
        rows=rows,
        reading=reading,
        options=given,
        key=key,
        token=token,
        dry_run=dry_run,
        yes=yes,
        json=json,
    )


def update(
    name: TableName,
    values: Annotated[
        list[str],
        typer.Option("--set", metavar="COLUMN=SQL", help="A column and its new value, an SQL expression; repeatable."),
    ],
    where: Where = None,
    param: Parameters = None,
    token: Token = None,
    dry_run: DryRun = False,
    yes: KeepAsking = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Set columns to new values in the rows that match.

    Values are SQL over the row as it was; text is in quotes. Without --where all rows are updated, which has to be
    confirmed.

    \b
    Examples:
      underlay update taxi.trips --set "fare=fare * 1.1" --where "zone = 'JFK'"
      underlay update taxi.trips --set "zone='JFK'" --where "zone = 'jfk'" --dry-run
    """
    from underlay.cli.changing.work import update_rows
    from underlay.cli.common.table_choice import newest_table

    table = newest_table(lake, option, name)
    update_rows(table, values, where=where, param=param, token=token, dry_run=dry_run, yes=yes, json=json)


def alter(
    name: TableName,
    changes: Annotated[list[str], typer.Argument(metavar="CHANGE", hidden=True, show_default=False)],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be changed, and change nothing. Default: do it.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="Do not ask before columns are dropped. Default: ask, or refuse without a terminal."
        ),
    ] = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Change the columns, layout or checks of a table.

    CHANGE is what follows ALTER TABLE in SQL, in quotes; several are one version. No data file is rewritten.

    \b
    Examples:
      underlay alter taxi.trips "add column tip double default 0" "rename column zone to area"
      underlay alter taxi.trips "add constraint positive check (fare >= 0)" --dry-run
    """
    from underlay.cli.changing.work import alter_table
    from underlay.cli.common.lake_choice import open_existing_lake

    alter_table(open_existing_lake(lake, option), name, changes, dry_run=dry_run, yes=yes, json=json)


def changes(
    name: TableName,
    begin: Annotated[int, typer.Argument(metavar="FROM", hidden=True, show_default=False)],
    end: Annotated[int | None, typer.Argument(metavar="[TO]", hidden=True, show_default=False)] = None,
    columns: ColumnNames = None,
    limit: Limit = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the number of rows only. Default: the rows.")
    ] = False,
    format: Format = None,
    output: Output = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: JsonRows = False,
) -> None:
    """Print the rows that changed between two versions.

    The versions after FROM, up to TO or the newest. Each row has _change (insert or delete), _version and
    _committed_at. An update is a delete and an insert of one version.

    \b
    Examples:
      underlay changes taxi.trips 7
      underlay changes taxi.trips 7 9 --columns trip_id,fare --output changes.parquet
    """
    from underlay.cli.changing.work import print_changes
    from underlay.cli.common.table_choice import newest_table

    table = newest_table(lake, option, name)
    print_changes(
        table, begin, end, columns=columns, limit=limit, dry_run=dry_run, format=format, json=json, output=output
    )
