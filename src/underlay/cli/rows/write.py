"""`underlay append` and `underlay register`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from underlay.api.table import Table
from underlay.cli.common.output import print_json, progress_bar, say, show_count
from underlay.cli.rows.data_file import STDIN, read_file
from underlay.errors import InvalidRequest, UnderlayError
from underlay.ingest.source.file_format import existing_file, kind_of
from underlay.schema.cast.conform import conform

_ROW = re.compile(r" in row (\d+)$")

Told = Callable[[int, int], None]


def append_files(table: Table, files: Sequence[str], *, token: str | None, nulls: Sequence[str], json: bool) -> None:
    """The rows of all files, in one version."""
    _check_files(files)
    with progress_bar(f"appending to {table.name}") as tell:
        reader = pa.RecordBatchReader.from_batches(table.schema, _rows(table, files, tuple(nulls), tell))
        done = table.append(reader, token=token)
    if json:
        print_json(
            {
                "table": table.name,
                "version": done.version,
                "rows": done.row_count,
                "files": done.file_count,
                "is_repeat": done.is_repeat,
            }
        )
    elif done.is_repeat:
        say(f"{table.name}: nothing added; version {done.version} has the rows of this token already")
    elif not done.row_count:
        say(f"{table.name}: no rows, so still version {done.version}")
    else:
        rows, written = show_count(done.row_count, "row"), show_count(done.file_count, "file")
        say(f"{table.name}: version {done.version}, {rows} added in {written}")


def register_files(table: Table, patterns: Sequence[str], *, ignore_surplus: bool, json: bool) -> None:
    """Parquet files as part of the table, where they are."""
    with progress_bar("reading footers") as tell:
        done = table.register(*patterns, ignore_surplus=ignore_surplus, progress=tell)
    if json:
        print_json({"table": table.name, "version": done.version, "rows": done.row_count, "files": done.file_count})
    else:
        rows, files = show_count(done.row_count, "row"), show_count(done.file_count, "file")
        say(f"{table.name}: version {done.version}, {files} with {rows} registered")


def _check_files(files: Sequence[str]) -> None:
    """Refuse what will fail before anything is read."""
    if files.count(STDIN) > 1:
        raise InvalidRequest("stdin can be read once", found="- and -")
    for name in files:
        if name != STDIN:
            existing_file(name)
            kind_of(name)


def _rows(table: Table, files: Sequence[str], nulls: tuple[str, ...], tell: Told) -> Iterator[pa.RecordBatch]:
    """The rows of one file after another, each with the table's own columns."""
    columns = table.snapshot().schema
    types = {field.name: field.type for field in table.schema}
    sizes = [0 if name == STDIN else Path(name).expanduser().stat().st_size for name in files]
    total = max(sum(sizes), 1)
    for at, name in enumerate(files):
        rows = 0
        for batch, fraction in read_file(name, types, nulls):
            try:
                yield from conform(batch, columns).to_batches()
            except UnderlayError as error:
                raise _located(error, "stdin" if name == STDIN else name, rows) from None
            rows += batch.num_rows
            tell(int(sum(sizes[:at]) + sizes[at] * fraction), total)


def _located(error: UnderlayError, name: str, rows_before: int) -> UnderlayError:
    """The error with the file, and with its row counted from the file's beginning and from 1, as people do."""
    error.problem = _ROW.sub(lambda row: f" in data row {rows_before + int(row[1]) + 1}", error.problem)
    return error.at(name)
