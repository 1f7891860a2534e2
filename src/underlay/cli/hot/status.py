"""`underlay hot status`."""

from __future__ import annotations

from collections.abc import Sequence

from underlay.cli.common.output import print_json, print_table, say
from underlay.cli.hot.choice import open_hot_lake, pinned_tables
from underlay.errors import NotFound
from underlay.hot.files.version import DATA_NAME
from underlay.hot.read.entries import load_hot_footer
from underlay.hot.read.snapshot import PinnedHot
from underlay.hot.txn.partition_names import show_timestamp
from underlay.hot.txn.record import TxnPartition
from underlay.hot.writer.lock import is_locked
from underlay.pm.file import read_sidecar

_HEADINGS = ("table", "partition", "rows", "blocks", "size", "dead", "newest", "state")


def show_status(
    lake: str | None, options: Sequence[str] | None, hot: str | None, name: str | None, *, json: bool
) -> None:
    """Each hot partition on a line."""
    opened, reader = open_hot_lake(lake, options, hot)
    rows = []
    for table, pinned in pinned_tables(opened, reader, name):
        writer = is_locked(pinned.folder)
        facts = [_facts(pinned, partition) for partition in pinned.record.partitions]
        if json:
            print_json(
                {
                    "table": table,
                    "directory": str(pinned.folder),
                    "version": pinned.record.version,
                    "rows": pinned.record.row_count,
                    "seals": pinned.record.sealed_epoch,
                    "writer": writer,
                    "partitions": facts,
                }
            )
            continue
        rows += [(table, *(one[key] for key in _HEADINGS[1:])) for one in facts]
        say(
            f"{table}: version {pinned.record.version}, {pinned.record.row_count:,} hot rows in {pinned.folder}; "
            f"{'a writer is at work' if writer else 'no writer'}"
        )
    if json:
        return
    if rows:
        print_table(_HEADINGS, rows)
    else:
        say(f"no hot rows in {reader.root}")


def _facts(pinned: PinnedHot, partition: TxnPartition) -> dict[str, object]:
    directory = pinned.directory(partition)
    size = partition.size_bytes or 0
    facts: dict[str, object] = {
        "partition": directory.name,
        "rows": partition.row_count,
        "size": size,
        "newest": show_timestamp(pinned.record.max_timestamp, pinned.identity.unit),
        "state": "sealing" if partition.is_sealing else "open",
        "blocks": None,
        "dead": None,
    }
    if partition is not pinned.record.partitions[-1]:
        facts["newest"] = None
    try:
        facts["blocks"] = load_hot_footer(directory / DATA_NAME, size).row_group_count
        facts["dead"] = read_sidecar(directory / "_pm", parquet_size=size).footer.unused_bytes
    except NotFound:
        facts["state"] = "replaced meanwhile"
    return facts
