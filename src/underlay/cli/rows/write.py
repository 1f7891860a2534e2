"""`underlay append`, `underlay register` and `underlay unregister`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from underlay.api.table import Table
from underlay.cli.common.output import print_json, progress_bar, say, show_count
from underlay.cli.rows.data_file import DataFile, FileReading, find_data, read_data
from underlay.ingest.source.find import source_options

_SHOWN = 5

Told = Callable[[int, int], None]


def append_files(
    table: Table,
    names: Sequence[str],
    reading: FileReading,
    options: Mapping[str, str],
    *,
    token: str | None,
    json: bool,
) -> None:
    """Append the rows of all files in one version, or none of them. `options` are those of the files' store."""
    stores = table.stores
    files = find_data(names, reading, source_options(names, options, stores.lake.url, stores.options))
    with progress_bar(f"appending to {table.name}") as tell:
        reader = pa.RecordBatchReader.from_batches(table.schema, _rows(table, files, tell))
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


def register_files(
    table: Table,
    patterns: Sequence[str],
    *,
    ignore_surplus: bool,
    hive: bool,
    skip_known: bool,
    refresh: bool,
    json: bool,
) -> None:
    """Register Parquet files with the table, without copying them."""
    with progress_bar("reading footers") as tell:
        done = table.register(
            *patterns,
            ignore_surplus=ignore_surplus,
            hive=hive,
            skip_known=skip_known,
            refresh=refresh,
            progress=tell,
        )
    if json:
        counts = {"table": table.name, "version": done.version, "rows": done.row_count, "files": done.file_count}
        more: dict[str, object] = {}
        if skip_known or refresh:
            more |= {"known": done.known_count, "replaced": done.replaced_count}
        if done.native_partitions:
            more["native_partitions"] = list(done.native_partitions)
        print_json(counts | more)
        return
    rows, files = show_count(done.row_count, "row"), show_count(done.file_count, "file")
    known = f"; {show_count(done.known_count, 'file')} known already" if done.known_count else ""
    replaced = f", {done.replaced_count} of them replaced" if done.replaced_count else ""
    if done.file_count:
        say(f"{table.name}: version {done.version}, {files} with {rows} registered{replaced}{known}")
    else:
        say(f"{table.name}: nothing to register, so still version {done.version}{known}")
    if done.native_partitions:
        left_out = show_count(len(done.native_partitions), "native partition")
        say(
            f"{left_out} left out ({', '.join(done.native_partitions[:_SHOWN])}): only QuestDB can read them. Convert "
            "them there with ALTER TABLE … CONVERT PARTITION TO PARQUET, and register again with --skip-known."
        )


def unregister_files(table: Table, patterns: Sequence[str], *, json: bool) -> None:
    """Remove registered files from the table."""
    done = table.unregister(*patterns)
    if json:
        print_json({"table": table.name, "version": done.version, "rows": done.row_count, "files": done.file_count})
    else:
        rows, files = show_count(done.row_count, "row"), show_count(done.file_count, "file")
        say(f"{table.name}: version {done.version}, {files} with {rows} unregistered")


def _rows(table: Table, files: Sequence[DataFile], tell: Told) -> Iterator[pa.RecordBatch]:
    """The rows of all files in turn, with the table's columns."""
    schema = table.snapshot().schema
    total = max(sum(data.size_bytes for data in files), 1)
    before = 0
    for data in files:
        for rows, read_bytes in read_data(data, schema):
            yield from rows.to_batches()
            tell(min(before + read_bytes, total), total)
        before += data.size_bytes
