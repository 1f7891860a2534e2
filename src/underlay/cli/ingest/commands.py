"""`underlay ingest`: its options, and what they mean. `--help` loads no library that reads data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from underlay.cli.common.options import Json, LakeUrl, NullTexts, StoreOptions, TableName
from underlay.errors import InvalidRequest
from underlay.ingest.rows.reading import ChangedPolicy, Dialect, NewColumnsPolicy
from underlay.ingest.source.file_format import FileFormat

_QUOTE = Dialect().quote
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)")
_TAB = {"\\t": "\t", "tab": "\t"}


def ingest(
    name: TableName,
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE", hidden=True, show_default=False)],
    format: Annotated[
        FileFormat | None,
        typer.Option("--format", show_default=False, help="The format of the sources. Default: by their endings."),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(metavar="CHAR", help="The delimiter of CSV. Default: the one of , ; | and tab that fits."),
    ] = None,
    quote: Annotated[
        str | None, typer.Option(metavar="CHAR", help="The quote of CSV; '' for none. Default: \".")
    ] = None,
    no_header: Annotated[
        bool,
        typer.Option(
            "--no-header",
            help="CSV without a header: its columns are those of the table, in order. Default: it has one.",
        ),
    ] = False,
    null: NullTexts = None,
    schema: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Columns of a table that is created. Default: inferred from the sources."),
    ] = None,
    schema_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with that text. Default: none.")
    ] = None,
    changed: Annotated[
        ChangedPolicy,
        typer.Option(
            show_default=False,
            help="When a source changed since it was ingested: fail, keep its rows, or replace them. Default: error.",
        ),
    ] = "error",
    new_columns: Annotated[
        NewColumnsPolicy,
        typer.Option(
            show_default=False,
            help="When a source has columns that the table lacks: fail the source, leave them out, or add them."
            " Default: error.",
        ),
    ] = "error",
    no_hive: Annotated[
        bool,
        typer.Option("--no-hive", help="Leave folders such as year=2024 alone. Default: they give columns."),
    ] = False,
    source_column: Annotated[
        bool,
        typer.Option(
            "--source-column",
            help="A table that is created gets the column _source, by which rows can be replaced. Default: only with"
            " --changed replace.",
        ),
    ] = False,
    max_rejected: Annotated[
        str | None,
        typer.Option(metavar="N|N%", help="Fail when more rows are rejected. Default: no limit."),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Retry sources that failed before. Default: leave them out.")
    ] = False,
    no_wait: Annotated[
        bool,
        typer.Option("--no-wait", help="Leave out sources that another run has claimed. Default: wait for them."),
    ] = False,
    source_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="An option of the store of the sources; repeatable. Default: those of the lake, for the same scheme.",
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Read on Spark: spark://host:7077, local[*]. Default: local[*] above 256 MiB."
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="A setting of Spark, which then reads the sources; repeatable. Default: none."
        ),
    ] = None,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Never use Spark. Default: use it for large input.")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Keep running and ingest new sources as they arrive, until Ctrl-C. Default: once."
        ),
    ] = False,
    interval: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="How often --watch looks for sources: 500ms, 5s, 2m. Default: 5s."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; show what would be done. Default: do it.")
    ] = False,
    lake: LakeUrl = None,
    option: StoreOptions = None,
    json: Json = False,
) -> None:
    """Bring files into a table, each exactly once.

    Repeat it as you like; many may run at once. SOURCE is a path or URL of CSV, TSV, JSON lines, Parquet or Arrow, also
    compressed (.gz, .zst, .bz2), and may hold *, ?, [ab] and **; a folder ends with /. A missing table is created. Rows
    that do not fit go to DATASET.TABLE_rejected with their reasons. The exit code is 4 if a source could not be read.

    \b
    Examples:
      underlay ingest taxi.trips 'data/2024-*.csv.gz'
      underlay ingest taxi.trips s3://nyc/yellow/ --watch --interval 30s
    """
    from underlay.cli.common.lake_choice import split_pairs
    from underlay.cli.common.schema_file import read_columns
    from underlay.cli.ingest.run import SparkChoice, run_ingest
    from underlay.ingest.run.watch import INTERVAL_SECONDS
    from underlay.ingest.work.settings import make_settings

    is_csv = delimiter is not None or quote is not None or no_header or bool(null)
    _refuse_together(
        (in_process and master, "--in-process and --master"),
        (in_process and conf, "--in-process and --conf"),
        (watch and dry_run, "--watch and --dry-run"),
        (interval is not None and not watch, "--interval without --watch"),
        (schema is not None and schema_file is not None, "--schema and --schema-file"),
        (is_csv and format not in (None, FileFormat.CSV, FileFormat.TSV), f"options of CSV and --format {format}"),
        (format is FileFormat.TSV and delimiter is not None, "--delimiter and --format tsv"),
    )
    settings = make_settings(
        sources,
        store_options=split_pairs(source_option or (), "--source-option"),
        kind=format,
        dialect=Dialect(
            delimiter=None if delimiter is None else _TAB.get(delimiter, delimiter),
            quote=_QUOTE if quote is None else quote or None,
            has_header=not no_header,
            nulls=tuple(null or ()),
        ),
        columns=read_columns(schema, schema_file),
        changed=changed,
        new_columns=new_columns,
        hive=not no_hive,
        has_source_column=source_column,
        max_rejected=max_rejected,
        retry_failed=retry_failed,
        waits=not no_wait,
    )
    spark = SparkChoice(master=master, conf=split_pairs(conf or (), "--conf"), is_refused=in_process)
    seconds = INTERVAL_SECONDS if interval is None else _read_interval(interval)
    run_ingest(
        name,
        settings,
        spark,
        watch_seconds=seconds if watch else None,
        dry_run=dry_run,
        lake=lake,
        options=option,
        json=json,
    )


def _refuse_together(*rules: tuple[object, str]) -> None:
    for is_broken, words in rules:
        if is_broken:
            raise InvalidRequest("these options contradict each other", found=words, hint="Leave one of them out.")


def _read_interval(text: str) -> float:
    """Seconds of `500ms`, `5s`, `5`, `2m`, `1h`. Raises InvalidRequest."""
    found = _TIME.fullmatch(text.strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found is not None else 0.0
    if seconds <= 0:
        raise InvalidRequest("not an interval", found=text, expected="such as 500ms, 5s or 2m")
    return seconds
