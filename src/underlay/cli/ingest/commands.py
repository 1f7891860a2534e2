"""`underlay ingest`: its options, and what they mean. `--help` loads no library that reads data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from underlay.cli.common.options import Json, LakeUrl, NoHive, SourceOptions, StoreOptions, TableName
from underlay.cli.common.text_options import MaxRecordBytes, read_size, with_text_options
from underlay.errors import InvalidRequest
from underlay.ingest.rows.reading import ChangedPolicy, Dialect, NewColumnsPolicy
from underlay.ingest.source.file_format import FileFormat

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)")


@with_text_options
def ingest(
    name: TableName,
    sources: Annotated[list[str] | None, typer.Argument(metavar="SOURCE", hidden=True, show_default=False)] = None,
    format: Annotated[
        FileFormat | None,
        typer.Option("--format", show_default=False, help="The format of the sources. Default: by their endings."),
    ] = None,
    *,
    dialect: Dialect,
    max_record: MaxRecordBytes = None,
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
    no_hive: NoHive = False,
    source_column: Annotated[
        bool,
        typer.Option(
            "--source-column",
            help="Give a table that is created the column _source, so that the rows of a source can be replaced."
            " Default: only with --changed replace.",
        ),
    ] = False,
    max_rejected: Annotated[
        str | None,
        typer.Option(metavar="N|N%", help="Fail when more rows are rejected. Default: no limit."),
    ] = None,
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed",
            help="Retry all sources that failed before. Default: only those that changed, or that failed with other"
            " options.",
        ),
    ] = False,
    again: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="Read this source again and replace its rows; needs the column _source if it has rows; repeatable."
            " Default: known sources are left out.",
        ),
    ] = None,
    no_wait: Annotated[
        bool,
        typer.Option("--no-wait", help="Leave out sources that another run has claimed. Default: wait for them."),
    ] = False,
    source_option: SourceOptions = None,
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

    _refuse_together(
        (in_process and master, "--in-process and --master"),
        (in_process and conf, "--in-process and --conf"),
        (watch and dry_run, "--watch and --dry-run"),
        (interval is not None and not watch, "--interval without --watch"),
        (schema is not None and schema_file is not None, "--schema and --schema-file"),
        (watch and again, "--watch and --again"),
    )
    settings = make_settings(
        sources or (),
        store_options=split_pairs(source_option or (), "--source-option"),
        kind=format,
        dialect=dialect,
        columns=read_columns(schema, schema_file),
        changed=changed,
        new_columns=new_columns,
        hive=not no_hive,
        has_source_column=source_column,
        max_rejected=max_rejected,
        retry_failed=retry_failed,
        again=again or (),
        record_bytes=read_size(max_record),
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
