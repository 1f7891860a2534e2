"""Declares `append`, `register`, `scan`, `sql` and `plan`; what they do is imported when they run."""

from __future__ import annotations

from typing import Annotated

import typer

from underlay.cli.common.options import (
    AsOf,
    ColumnNames,
    Format,
    Json,
    LakeUrl,
    NoHive,
    Output,
    SourceOptions,
    StoreOptions,
    TableName,
    Tag,
    VersionNumber,
    Where,
)
from underlay.cli.common.text_options import MaxRecordBytes, read_size, with_text_options
from underlay.ingest.rows.reading import Dialect
from underlay.ingest.source.file_format import FileFormat

JsonRows = Annotated[bool, typer.Option("--json", help="The same as --format ndjson. Default: a table.")]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="VALUE",
        help="A value for ?, or NAME=VALUE for $NAME; numbers, true, false, null, and texts, which are cast to what"
        " they are compared with; repeatable. Default: none.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="At most N rows. Default: 50 for table and vertical, else all."),
]


@with_text_options
def append(
    name: TableName,
    files: Annotated[list[str], typer.Argument(metavar="FILE", hidden=True, show_default=False)],
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Rows with this token are added only once, however often the command is repeated. Default: none.",
        ),
    ] = None,
    format: Annotated[
        FileFormat | None,
        typer.Option(
            "--format",
            show_default=False,
            help="The format of the files. Default: by the ending of their names; of stdin, by its first bytes.",
        ),
    ] = None,
    *,
    dialect: Dialect,
    max_record: MaxRecordBytes = None,
    no_hive: NoHive = False,
    source_option: SourceOptions = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Add the rows of files to a table, all of them or none.

    FILE is a path or URL of Parquet, CSV, TSV, JSON lines or Arrow IPC, also compressed (.gz, .zst, .bz2), and may
    hold *, ?, [ab] and **; "-" is stdin. All files make one version. Columns are matched by name. CSV and JSON are read
    as "underlay ingest" reads them, by the types of the table; a row that does not fit is an error that names its line,
    and nothing is added.

    \b
    Examples:
      underlay append taxi.trips january.csv february.csv.gz
      underlay scan old.trips --format arrow | underlay append taxi.trips - --token copy-1
    """
    from underlay.cli.common.lake_choice import split_pairs
    from underlay.cli.common.table_choice import newest_table
    from underlay.cli.rows.data_file import FileReading
    from underlay.cli.rows.write import append_files

    reading = FileReading(kind=format, dialect=dialect, record_bytes=read_size(max_record), hive=not no_hive)
    given = split_pairs(source_option or (), "--source-option")
    append_files(newest_table(lake, option, name), files, reading, given, token=token, json=json)


def register(
    name: TableName,
    patterns: Annotated[list[str], typer.Argument(metavar="PATTERN", hidden=True, show_default=False)],
    ignore_surplus: Annotated[
        bool,
        typer.Option("--ignore-surplus", help="Allow columns that the table does not have. Default: refuse them."),
    ] = False,
    no_hive: NoHive = False,
    skip_known: Annotated[
        bool,
        typer.Option("--skip-known", help="Leave out files that are part of the table. Default: refuse them."),
    ] = False,
    refresh: Annotated[
        bool,
        typer.Option("--refresh", help="Replace known files whose bytes changed. Default: refuse known files."),
    ] = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Add Parquet files to a table without copying them.

    PATTERN is a path, a directory or a URL, and may contain *, ?, [ab] and **. Only footers are read. Folders such as
    year=2024 give the column year its value. The files must not change afterwards, unless they are registered again
    with --refresh.

    questdb:PATH means the Parquet partitions of the QuestDB table in that directory, as QuestDB committed them. Only
    its _txn and the partitions' sidecars are read.

    \b
    Examples:
      underlay register taxi.trips 's3://nyc/yellow_2024-*.parquet' --skip-known
      underlay register market.trades questdb:/var/lib/questdb/db/trades~12
    """
    from underlay.cli.common.table_choice import newest_table
    from underlay.cli.rows.write import register_files

    register_files(
        newest_table(lake, option, name),
        patterns,
        ignore_surplus=ignore_surplus,
        hive=not no_hive,
        skip_known=skip_known,
        refresh=refresh,
        json=json,
    )


def unregister(
    name: TableName,
    patterns: Annotated[list[str], typer.Argument(metavar="PATTERN", hidden=True, show_default=False)],
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Remove registered files from a table. The files stay where they are.

    PATTERN is a path, a directory or a URL, and may contain *, ?, [ab] and **. It is matched with the files of the
    table, so it works for files that are gone.

    \b
    Examples:
      underlay unregister taxi.trips data/2024-01.parquet
      underlay unregister taxi.trips 's3://nyc/yellow/2023-*.parquet'
    """
    from underlay.cli.common.table_choice import newest_table
    from underlay.cli.rows.write import unregister_files

    unregister_files(newest_table(lake, option, name), patterns, json=json)


def scan(
    name: TableName,
    columns: ColumnNames = None,
    where: Where = None,
    param: Parameters = None,
    limit: Limit = None,
    count: Annotated[bool, typer.Option("--count", help="Print the number of rows only. Default: the rows.")] = False,
    version: VersionNumber = None,
    as_of: AsOf = None,
    tag: Tag = None,
    format: Format = None,
    output: Output = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: JsonRows = False,
) -> None:
    """Print rows of a table.

    DATASET.TABLE@7 is version 7, and DATASET.TABLE@audit the version tagged audit.

    \b
    Examples:
      underlay scan taxi.trips --columns pickup,fare --where 'zone = $zone and fare > 100' --param zone=JFK
      underlay scan taxi.trips --as-of 2026-01-31 --output trips.parquet
    """
    from underlay.cli.common.table_choice import chosen_table
    from underlay.cli.rows.query import scan_table

    table = chosen_table(lake, option, name, version=version, as_of=as_of, tag=tag)
    scan_table(
        table,
        columns=columns,
        where=where,
        param=param,
        limit=limit,
        format=format,
        json=json,
        output=output,
        count=count,
    )


def sql(
    text: Annotated[str | None, typer.Argument(metavar="[SQL]", hidden=True, show_default=False)] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="Read the SQL from a file; - is stdin. Default: none."),
    ] = None,
    param: Parameters = None,
    limit: Limit = None,
    format: Format = None,
    output: Output = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="Do not ask. Default: on a terminal, ask before deleting all rows or dropping tables."
        ),
    ] = False,
    json: JsonRows = False,
) -> None:
    """Run SQL over the lake's tables, or a shell for it.

    DuckDB runs it. Tables are named dataset.table; for an older version write FROM taxi.trips VERSION AS OF 7, VERSION
    AS OF 'tag' or TIMESTAMP AS OF '2026-01-31'. Several statements, separated by semicolons, run in turn. "-" reads the
    SQL from stdin; without SQL, a shell reads it from the terminal. EXPLAIN shows DuckDB's plan, and for each table
    what is read and what is skipped. INSERT, UPDATE, DELETE, MERGE, TRUNCATE, CREATE, ALTER and DROP change tables, in
    one commit each. On a terminal, a change of all rows and a drop of a table ask first; elsewhere they do not.

    \b
    Examples:
      underlay sql "select zone, avg(fare) from taxi.trips group by zone order by zone"
      underlay sql "select * from taxi.trips where fare > ?" --param 100 --output fares.csv
    """
    from underlay.cli.rows.query import sql_command

    sql_command(
        text=text,
        file=file,
        param=param,
        limit=limit,
        format=format,
        output=output,
        lake=lake,
        option=option,
        yes=yes,
        json=json,
    )


def plan(
    name: TableName,
    where: Where = None,
    param: Parameters = None,
    columns: ColumnNames = None,
    version: VersionNumber = None,
    as_of: AsOf = None,
    tag: Tag = None,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Show what a scan would read, what it would skip, and why.

    The plan is made from metadata alone; no data file is read. Sizes are in bytes.

    \b
    Examples:
      underlay plan taxi.trips --where "zone = 'JFK'"
      underlay plan taxi.trips --where "fare > 100" --columns fare,tip --json
    """
    from underlay.cli.common.table_choice import chosen_table
    from underlay.cli.rows.query import show_plan

    table = chosen_table(lake, option, name, version=version, as_of=as_of, tag=tag)
    show_plan(table, columns=columns, where=where, param=param, json=json)
