"""How much does it cost to make few files of many, against peers that encode every row again?

Two tables: `--files` files whose one block is full, which a compaction copies byte for byte; and `--small` files of 100
rows, which everybody has to encode. Each compacts the same rows, on this machine's disk, with files of zstd, after it
has compacted a few others, so that its code is loaded. Said are seconds of processor time, of all threads, and of the
wall, the megabytes by which the process grew at its peak, and files before and after. The result is checked: the rows
are the same by count and sums, the statistics of copied blocks are those of before, and a verification finds nothing;
of up to 100 files it reads all rows, and each block's filter finds its least key.

    python -m bench.care --files 1000 --rows 20000 --small 10000
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import deltalake
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.systems.ducklake import find_extension
from underlay.api.lake import connect
from underlay.api.table import Table
from underlay.index.entry import FileEntry, Flag

_SMALL_ROWS = 100
Cost = dict[str, object]


def parts(file_count: int, row_count: int) -> Iterator[pa.Table]:
    """The rows of each file."""
    random = np.random.default_rng(7)
    words = pa.array([f"zone {number}" for number in range(265)])
    for number in range(file_count):
        ids = np.arange(number * row_count, (number + 1) * row_count)
        yield pa.table(
            {
                "id": pa.array(ids),
                "zone": words.take(pa.array(random.integers(0, 265, row_count), pa.int64())),
                "note": pa.array([f"{one:016x}" for one in random.integers(0, 2**60, row_count).tolist()]),
                "cents": pa.array(random.integers(0, 1_000_000, row_count)),
                "fare": pa.array(random.integers(0, 10_000, row_count) / 100),
            }
        )


def timed(work: Callable[[], object]) -> Cost:
    """Seconds of the processor, of all threads, and of the wall; and by how much memory grew at its peak."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is now what is resident
    before = _peak_kilobytes()
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {
        "cpu s": round(time.process_time() - cpu, 3),
        "wall s": round(time.perf_counter() - wall, 3),
        "peak MB": round((_peak_kilobytes() - before) / 1000),
    }


def _peak_kilobytes() -> int:
    (line,) = (one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmHWM:"))
    return int(line.split()[1])


def sums(rows: pa.Table) -> tuple[object, ...]:
    """What must be the same before and after."""
    found = [rows.num_rows, *(pc.sum(rows[name]).as_py() for name in ("id", "cents"))]
    return (*found, round(float(pc.sum(rows["fare"]).as_py()), 2), pc.count_distinct(rows["note"]).as_py())


def blocks_of(table: Table) -> dict[bytes, tuple[object, ...]]:
    """Of each block, by the bytes of its least id, what the index knows of its columns but for where they lie."""
    found: dict[bytes, tuple[object, ...]] = {}
    for entry in table.snapshot().files():
        for block in range(len(entry.block_rows) // 8):
            known = _block(entry, block)
            found[str(known[0]).encode()] = known
    return found


def _block(entry: FileEntry, block: int) -> tuple[object, ...]:
    at = slice(8 * block, 8 * block + 8)
    return tuple(
        (one.low[at], one.high[at], one.null_counts[at], one.flags[block], one.sizes[at], one.codecs[block])
        for one in entry.columns
        if len(one.low) == len(entry.block_rows)
    )


def check_filters(table: Table) -> int:
    """Look a key up in every block by its filter; how many blocks have one. Raises when a key is not found."""
    count = 0
    for entry in table.snapshot().files():
        (key,) = (one for one in entry.columns if one.flags[0] & Flag.HAS_BLOOM)
        for low in np.frombuffer(key.low, "<i8").tolist():
            plan = table.plan(where=f"id = {low}")
            if plan.kept.blocks != 1:
                raise AssertionError(f"id {low} is looked for in {plan.kept.blocks} blocks")
            count += 1
    return count


def ours(folder: Path, file_count: int, row_count: int, *, is_full: bool) -> Cost:
    """Underlay: blocks are full when each file is one block of as many rows as a block may have."""
    lake = connect(folder / "ours", registry="none")
    properties = {"block_rows": row_count} if is_full else {}
    table = lake.create_table("a.b", next(parts(1, 1)).schema, key=["id"], properties=properties)
    for rows in parts(file_count, row_count):
        table.append(rows)
    before, known = sums(table.to_arrow()), blocks_of(table)
    cost = timed(lambda: table.compact())
    done = next(table.history()).counts
    if sums(table.to_arrow()) != before:
        raise AssertionError("rows differ")
    after = table.snapshot().root.file_count
    if is_full:
        if blocks_of(table) != known:
            raise AssertionError("statistics of copied blocks differ")
        sample = check_filters(table) if file_count <= 100 else None
        report = lake.verify(deep=file_count <= 100, registry=False).tables[0].revisions[0]
        if report.findings:
            raise AssertionError(str(report.findings))
        cost |= {"blocks whose filters were asked": sample}
    lake.close()
    return cost | {"files": file_count, "files after": after, "removed": done.get("files_removed")}


def delta(folder: Path, file_count: int, row_count: int) -> Cost:
    """delta-rs: optimize.compact, which decodes and encodes."""
    path = str(folder / "delta")
    for number, rows in enumerate(parts(file_count, row_count)):
        deltalake.write_deltalake(path, rows, mode="append" if number else "error")
    table = deltalake.DeltaTable(path)
    before = sums(pa.table(table.to_pyarrow_table()))
    cost = timed(table.optimize.compact)
    if sums(pa.table(table.to_pyarrow_table())) != before:
        raise AssertionError("rows differ")
    return cost | {"files": file_count, "files after": len(table.file_uris())}


def ducklake(folder: Path, file_count: int, row_count: int) -> Cost:
    """DuckLake: ducklake_merge_adjacent_files, which decodes and encodes."""
    connection = duckdb.connect()
    connection.execute(f"load '{find_extension('ducklake')}'")
    connection.execute(f"attach 'ducklake:{folder}/care.ducklake' as lake (data_path '{folder}/ducklake')")
    connection.execute("call lake.set_option('parquet_compression', 'zstd')")
    connection.execute("call lake.set_option('data_inlining_row_limit', '0')")
    for number, rows in enumerate(parts(file_count, row_count)):
        connection.register("rows", rows)
        verb = "insert into lake.main.rows" if number else "create table lake.main.rows as"
        connection.execute(f"{verb} select * from rows")
    query = "select * from lake.main.rows"
    before = sums(connection.execute(query).to_arrow_table())
    cost = timed(lambda: connection.execute("call ducklake_merge_adjacent_files('lake')").fetchall())
    if sums(connection.execute(query).to_arrow_table()) != before:
        raise AssertionError("rows differ")
    count = connection.execute("select count(*) from ducklake_list_files('lake', 'rows')").fetchone()
    connection.close()
    return cost | {"files": file_count, "files after": None if count is None else count[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=20_000, help="rows of a full file")
    parser.add_argument("--small", type=int, default=10_000, help="files of 100 rows")
    parser.add_argument("--out", type=Path, default=Path("bench/out/care.json"))
    given = parser.parse_args()
    found: dict[str, object] = {"arguments": {name: str(value) for name, value in vars(given).items()}}
    found["load at the beginning"] = os.getloadavg()
    for name, file_count, row_count in (
        ("full blocks", given.files, given.rows),
        ("small files", given.small, _SMALL_ROWS),
    ):
        costs: dict[str, Cost] = {}
        systems: dict[str, Callable[[Path, int, int], Cost]] = {
            "underlay": partial(ours, is_full=name == "full blocks"),
            "delta-rs": delta,
            "ducklake": ducklake,
        }
        for system, measure in systems.items():
            with tempfile.TemporaryDirectory(prefix="underlay-bench-") as folder:
                measure(Path(folder), 3, 10)
            with tempfile.TemporaryDirectory(prefix="underlay-bench-") as folder:
                costs[system] = measure(Path(folder), file_count, row_count)
        found[name] = costs
        print(name, json.dumps(costs, indent=1))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
