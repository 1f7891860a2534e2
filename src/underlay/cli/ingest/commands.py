"""`underlay ingest`. Only the declaration: `--help` loads no library that reads data."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from underlay.cli.common.options import Json, LakeUrl, NullTexts, StoreOptions, TableName


class FormatOption(StrEnum):
    """What sources hold."""

    CSV = "csv"
    TSV = "tsv"
    JSON = "json"
    PARQUET = "parquet"


class Changed(StrEnum):
    """What becomes of a source whose content is another one than was ingested."""

    ERROR = "error"
    SKIP = "skip"
    REPLACE = "replace"


class NewColumnsOption(StrEnum):
    """What becomes of columns that the table does not have."""

    ERROR = "error"
    IGNORE = "ignore"
    ADD = "add"


def ingest(
    name: TableName,
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE", hidden=True, show_default=False)],
    format: Annotated[
        FormatOption | None,
        typer.Option("--format", show_default=False, help="What the sources hold. Default: what their names end with."),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(metavar="CHAR", help="What separates fields of CSV. Default: the one of , ; | and tab that fits."),
    ] = None,
    quote: Annotated[
        str | None, typer.Option(metavar="CHAR", help="What quotes fields of CSV; '' for nothing. Default: \".")
    ] = None,
    no_header: Annotated[
        bool,
        typer.Option(
            "--no-header", help="CSV has no header: its columns are the table's, in order. Default: it has one."
        ),
    ] = False,
    null: NullTexts = None,
    schema: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Columns of a table that is made. Default: as the sources have them."),
    ] = None,
    schema_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with such text. Default: none.")
    ] = None,
    changed: Annotated[
        Changed,
        typer.Option(
            show_default=False,
            help="When a source has other content than was ingested: refuse, leave its rows, or put the new rows in"
            " their place. Default: error.",
        ),
    ] = Changed.ERROR,
    new_columns: Annotated[
        NewColumnsOption,
        typer.Option(
            show_default=False,
            help="When a source has columns that the table lacks: the source fails, they are left out, or they are"
            " added. Default: error.",
        ),
    ] = NewColumnsOption.ERROR,
    source_column: Annotated[
        bool,
        typer.Option(
            "--source-column",
            help="A table that is made gets the column _source, by which rows can be replaced. Default: with"
            " --changed replace only.",
        ),
    ] = False,
    max_rejected: Annotated[
        str | None,
        typer.Option(metavar="N|N%", help="Fail when more rows than that are rejected. Default: however many."),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try sources again that failed before. Default: no.")
    ] = False,
    no_wait: Annotated[
        bool,
        typer.Option("--no-wait", help="Leave sources alone that another run is at work on. Default: wait for them."),
    ] = False,
    source_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="An option of the sources' store; repeatable. Default: the lake's, when both have the same scheme.",
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Work on Spark: spark://host:7077, local[*]. Default: above 256 MiB, local."),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="A setting of Spark, which then does the work; repeatable. Default: none."
        ),
    ] = None,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Never work on Spark. Default: for much input.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on, and take new sources as they come, until Ctrl-C. Default: once.")
    ] = False,
    interval: Annotated[
        str | None, typer.Option(metavar="TIME", help="How often to look with --watch: 500ms, 5s, 2m. Default: 5s.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, and show what would be done. Default: do it.")
    ] = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Bring files into a table, each exactly once.

    However often this is repeated, and by however many at once. SOURCE is a path or URL of CSV, TSV, JSON lines or
    Parquet, also compressed (.gz, .zst, .bz2), and may hold *, ?, [ab] and **; a folder ends with /. The table is made
    when there is none. Rows that do not fit go to DATASET.TABLE_rejected with their reasons. A source that could not be
    read makes the exit code 4.

    \b
    Examples:
      underlay ingest taxi.trips 'data/2024-*.csv.gz'
      underlay ingest taxi.trips s3://nyc/yellow/ --watch --interval 30s
    """
    from underlay.cli.ingest.choice import Given, choose
    from underlay.cli.ingest.run import run_ingest

    given = Given(
        sources=sources,
        format=format and format.value,
        delimiter=delimiter,
        quote=quote,
        no_header=no_header,
        nulls=null or (),
        schema=schema,
        schema_file=schema_file,
        changed=changed.value,
        new_columns=new_columns.value,
        source_column=source_column,
        max_rejected=max_rejected,
        retry_failed=retry_failed,
        no_wait=no_wait,
        source_options=source_option or (),
        master=master,
        conf=conf or (),
        in_process=in_process,
        watch=watch,
        interval=interval,
        dry_run=dry_run,
    )
    run_ingest(name, choose(given), lake=lake, options=option, json=json)
