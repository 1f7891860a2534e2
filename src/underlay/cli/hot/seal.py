"""`underlay hot seal` and `compact`."""

from __future__ import annotations

from collections.abc import Sequence

from underlay.cli.common.output import print_json, show_count
from underlay.cli.common.table_choice import open_newest
from underlay.cli.hot.choice import open_hot_lake
from underlay.errors import InvalidRequest, NotFound
from underlay.hot.read.snapshot import HotReader


def seal_table(
    lake: str | None,
    options: Sequence[str] | None,
    hot: str | None,
    name: str,
    before: str | None,
    *,
    everything: bool,
    json: bool,
) -> None:
    """Seal, and say what was."""
    if before is not None and everything:
        raise InvalidRequest("--before and --all contradict each other")
    opened, reader = open_hot_lake(lake, options, hot)
    table = open_newest(opened, name)
    _need_partitions(reader, table.writable().head().revision.table_folder, name)
    with table.hot() as writer:
        done = writer.seal(before, everything=everything)
    if json:
        print_json(
            {"table": name, "version": done.version, "partitions": list(done.partitions), "rows": done.row_count}
        )
    elif done.version is None:
        print(f"{name}: no hot partition has ended by then")
    else:
        print(
            f"{name}: sealed {', '.join(done.partitions)}: {done.row_count:,} rows in "
            f"{show_count(done.file_count, 'file')}, version {done.version}"
        )


def compact_table(lake: str | None, options: Sequence[str] | None, hot: str | None, name: str, *, json: bool) -> None:
    """Compact, and say what was."""
    opened, reader = open_hot_lake(lake, options, hot)
    table = open_newest(opened, name)
    _need_partitions(reader, table.writable().head().revision.table_folder, name)
    with table.hot() as writer:
        before = sum(one.size_bytes or 0 for one in writer.writer.state.partitions)
        version = writer.compact()
        after = sum(one.size_bytes or 0 for one in writer.writer.state.partitions)
    if json:
        print_json({"table": name, "version": version, "bytes_before": before, "bytes_after": after})
    else:
        print(f"{name}: {before:,} bytes of hot partitions became {after:,}")


def _need_partitions(reader: HotReader, table_folder: str, name: str) -> None:
    """A command makes no hot table: that is for who appends to it."""
    if reader.pin(table_folder) is None:
        raise NotFound(f"{name} has no hot partitions here", place=str(reader.folder(table_folder)))
