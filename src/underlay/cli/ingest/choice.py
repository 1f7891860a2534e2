"""What the options of `underlay ingest` mean; those that contradict each other are refused before anything happens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from underlay.cli.common.lake_choice import split_pairs
from underlay.cli.common.schema_file import read_columns
from underlay.errors import InvalidRequest
from underlay.ingest.exactly_once.ledger import Policy
from underlay.ingest.rows.reading import Dialect
from underlay.ingest.run.watch import INTERVAL_SECONDS
from underlay.ingest.work.options import Options, read_options
from underlay.ingest.work.settings import NewColumnsPolicy

LOCAL = "local[*]"
"""Spark on this machine."""
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)")
_TAB = {"\\t": "\t", "tab": "\t"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options as they were typed."""

    sources: Sequence[str]
    format: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    no_header: bool = False
    nulls: Sequence[str] = ()
    schema: str | None = None
    schema_file: Path | None = None
    changed: Policy = "error"
    new_columns: NewColumnsPolicy = "error"
    source_column: bool = False
    max_rejected: str | None = None
    retry_failed: bool = False
    no_wait: bool = False
    source_options: Sequence[str] = ()
    master: str | None = None
    conf: Sequence[str] = ()
    in_process: bool = False
    watch: bool = False
    interval: str | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is to be done, and by whom: on Spark when there is a master."""

    sources: Sequence[str]
    options: Options
    master: str | None
    conf: Mapping[str, str]
    in_process: bool
    watch: bool
    interval_seconds: float
    dry_run: bool


def choose(given: Given) -> Choice:
    """Raises InvalidRequest."""
    _check(given)
    conf = split_pairs(given.conf, "--conf")
    options = Options(
        store_options=split_pairs(given.source_options, "--source-option"),
        kind=given.format,
        dialect=_dialect(given),
        columns=read_columns(given.schema, given.schema_file),
        changed=given.changed,
        new_columns=given.new_columns,
        has_source_column=given.source_column,
        max_rejected=given.max_rejected,
        retry_failed=given.retry_failed,
        waits=not given.no_wait,
    )
    read_options(given.sources, **options)
    return Choice(
        sources=given.sources,
        options=options,
        master=given.master or (LOCAL if conf else None),
        conf=conf,
        in_process=given.in_process,
        watch=given.watch,
        interval_seconds=INTERVAL_SECONDS if given.interval is None else read_interval(given.interval),
        dry_run=given.dry_run,
    )


def read_interval(text: str) -> float:
    """Seconds of `500ms`, `5s`, `5`, `2m`, `1h`. Raises InvalidRequest."""
    found = _TIME.fullmatch(text.strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found is not None else 0.0
    if seconds <= 0:
        raise InvalidRequest("not a time between two looks", found=text, expected="such as 500ms, 5s or 2m")
    return seconds


def _check(given: Given) -> None:
    is_csv_told = given.delimiter is not None or given.quote is not None or given.no_header or bool(given.nulls)
    for is_wrong, words in (
        (given.in_process and given.master, "--in-process and --master"),
        (given.in_process and given.conf, "--in-process and --conf"),
        (given.watch and given.dry_run, "--watch and --dry-run"),
        (given.interval is not None and not given.watch, "--interval without --watch"),
        (given.schema is not None and given.schema_file is not None, "--schema and --schema-file"),
        (is_csv_told and given.format in ("json", "parquet"), f"options of CSV and --format {given.format}"),
        (given.format == "tsv" and given.delimiter is not None, "--delimiter and --format tsv"),
    ):
        if is_wrong:
            raise InvalidRequest("these options do not go together", found=words, hint="Leave one of them out.")


def _dialect(given: Given) -> Dialect:
    delimiter = None if given.delimiter is None else _TAB.get(given.delimiter, given.delimiter)
    quote = Dialect().quote if given.quote is None else given.quote or None
    return Dialect(delimiter=delimiter, quote=quote, has_header=not given.no_header, nulls=tuple(given.nulls))
