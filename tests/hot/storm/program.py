"""Processes of the storms: `python -m tests.hot.storm.program write|read LAKE HOT …`. They check what they read."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

import underlay as ul
from underlay.api.hot_writer import HotTableWriter
from underlay.api.lake import Lake
from underlay.api.table import Table

TABLE = "storm.rows"
_TYPES: dict[str, pa.DataType] = {
    "ts": pa.timestamp("us", "UTC"),
    "batch": pa.int64(),
    "at": pa.int64(),
    "text": pa.string(),
}
SCHEMA = pa.schema(_TYPES)
_BASE = datetime(2026, 11, 19, tzinfo=UTC)


def rows_in(batch: int) -> int:
    """How many rows a batch has."""
    return batch % 7 + 1


def batch_rows(batch: int) -> pa.Table:
    """The rows of a batch: in one of three days, most in order and every fifth batch before others of its day."""
    count = rows_in(batch)
    begin = _BASE + timedelta(days=batch % 3, milliseconds=(batch if batch % 5 else 50_000_000 - batch))
    times = [begin + timedelta(microseconds=at) for at in range(count)]
    columns = {"ts": times, "batch": [batch] * count, "at": list(range(count)), "text": [f"batch {batch}"] * count}
    return pa.table(columns, schema=SCHEMA)


def open_lake(lake: str, hot: str) -> Lake:
    """The lake without a registry."""
    return ul.connect(lake, registry="none", hot=hot)


def committed(table: Table) -> int:
    """How many batches a read finds. Raises AssertionError unless they are all batches up to one, and each is whole."""
    rows = table.scan(columns=["batch", "at"]).to_arrow()
    found: Counter[int] = Counter(rows.column("batch").to_numpy().tolist())
    assert sorted(found) == list(range(len(found))), f"not a prefix: {sorted(set(range(len(found))) ^ set(found))[:10]}"
    wrong = [batch for batch, count in found.items() if count != rows_in(batch)]
    assert not wrong, f"not whole, or doubled: {wrong[:10]}"
    return len(found)


def write(lake: str, hot: str, count: str, interval_ms: str, seal_every: str) -> None:
    """Append batches after those that are there, each acknowledged by its number on a line."""
    opened = open_lake(lake, hot)
    table = opened.table(TABLE)
    with table.hot() as writer:
        first = committed(table)
        print("open", first, flush=True)
        for batch in range(first, first + int(count)):
            writer.append(batch_rows(batch))
            print(batch, flush=True)
            if int(seal_every) and batch % int(seal_every) == int(seal_every) - 1:
                threading.Thread(target=seal, args=(writer,), daemon=True).start()
            time.sleep(float(interval_ms) / 1000)


def seal(writer: HotTableWriter) -> None:
    """Seal all days, while rows for them go on coming."""
    writer.seal(everything=True)
    print("sealed", flush=True)


def read(lake: str, hot: str, stop: str) -> None:
    """Read until the file `stop` exists, and say how often; what is read may only grow."""
    reads = last = 0
    with open_lake(lake, hot) as opened:
        table = opened.table(TABLE)
        print("ready", flush=True)
        while not Path(stop).exists():
            found = committed(table)
            assert found >= last, f"{found} batches after {last}"
            reads, last = reads + 1, found
        last = committed(table)
    print(json.dumps({"reads": reads, "last": last}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(*sys.argv[2:])
    else:
        read(*sys.argv[2:])
