"""`underlay append` and `underlay register`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from underlay.api.table import Table
from underlay.cli.data_file import STDIN, read_file
from underlay.cli.file_kind import kind_of
from underlay.cli.output import print_json, progress_bar, say, show_count
from underlay.errors import InvalidRequest, NotFound, UnderlayError
from underlay.schema.conform import conform

Told = Callable[[int, int], None]


def append_files(table: Table, files: Sequence[str], *, token: str | None, nulls: Sequence[str], json: bool) -> None:
    """The rows of all files, in one version."""
    _check_files(files)
    with progress_bar(f"appending to {table.name}") as tell:
        rows = pa.RecordBatchReader.from_batches(table.schema, _rows(table, files, tuple(nulls), tell))
        done = table.append(rows, token=token)
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
        files_written = show_count(done.file_count, "file")
        say(f"{table.name}: version {done.version}, {done.row_count:,} rows added in {files_written}")


def register_files(table: Table, patterns: Sequence[str], *, ignore_surplus: bool, json: bool) -> None:
    """Parquet files as part of the table, where they are."""
    with progress_bar("reading footers") as tell:
        done = table.register(*patterns, ignore_surplus=ignore_surplus, progress=tell)
    if json:
        print_json({"table": table.name, "version": done.version, "rows": done.row_count, "files": done.file_count})
    else:
        files = show_count(done.file_count, "file")
        say(f"{table.name}: version {done.version}, {files} with {done.row_count:,} rows registered")


def _check_files(files: Sequence[str]) -> None:
    """Refuse what will fail before anything is read."""
    if files.count(STDIN) > 1:
        raise InvalidRequest("stdin can be read once", found="- and -")
    for name in files:
        if name != STDIN:
            if not Path(name).expanduser().exists() and "://" not in name:
                raise NotFound("no such file", place=name)
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
                place = "stdin" if name == STDIN else name
                raise error.at(f"{place}, row {rows + 1} and on" if rows else place) from None
            rows += batch.num_rows
            tell(int(sum(sizes[:at]) + sizes[at] * fraction), total)
