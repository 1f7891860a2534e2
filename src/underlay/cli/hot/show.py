"""`underlay hot show`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from underlay.cli.common.output import print_json, print_table, say
from underlay.cli.hot.choice import txn_folder
from underlay.hot.txn.file import TXN_NAME, read_txn
from underlay.hot.txn.layout import NO_MAXIMUM, NO_MINIMUM

_HEADINGS = ("timestamp", "rows", "name txn", "parquet bytes", "flags")


def show_txn(path: Path, *, json: bool) -> None:
    """The committed state that `_txn` names."""
    folder = txn_folder(path)
    record = read_txn(folder / TXN_NAME)
    if json:
        facts = asdict(record)
        facts["partitions"] = [asdict(one) for one in record.partitions]
        print_json({"file": str(folder / TXN_NAME), "is_ours": record.is_ours, "rows": record.row_count, **facts})
        return
    by = f"Underlay, writer epoch {record.writer_epoch}, {record.sealed_epoch} seals" if record.is_ours else "QuestDB"
    say(f"{folder / TXN_NAME}: version {record.version} by {by}")
    if record.min_timestamp != NO_MINIMUM and record.max_timestamp != NO_MAXIMUM:
        say(f"{record.row_count:,} rows, timestamps {record.min_timestamp} to {record.max_timestamp}")
    flags = (("sealing" if record.is_ours else "read-only", "is_sealing"), ("remote", "is_remote"))
    print_table(
        _HEADINGS,
        [
            (
                one.timestamp,
                one.row_count,
                one.name_txn,
                "native" if one.size_bytes is None else one.size_bytes,
                ", ".join(word for word, name in flags if getattr(one, name)) or None,
            )
            for one in record.partitions
        ],
    )
