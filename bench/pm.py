"""How much cheaper is a sidecar than the footer it stands for?

Questions, each against pyarrow in the same run, files in the page cache (warm):

1. open + checksum + min/max of one column as arrays, against parsing the footer and asking its statistics objects,
   for 1,000 row groups × 50 columns and for 10 × 20: from bytes in memory, and from a file in the page cache, where
   copying the sidecar's bytes is the larger part;
2. the size of the sidecar against the footer, bloom filters apart;
3. what appending one row group writes, by the number of row groups that are there;
4. pruning all row groups by one predicate.

    python -m bench.pm [--small]

Every answer is checked before it is timed. Writes bench/out/pm.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.common.timing import compare, save
from underlay.parquet.footer.tail import MAGIC, load_footer, seal
from underlay.pm.convert.build import from_parquet
from underlay.pm.file import create_sidecar, read_sidecar
from underlay.pm.format.blocks import block_value
from underlay.pm.format.encode import append
from underlay.pm.format.sidecar import decode
from underlay.pm.format.statistics import FixedBounds, fixed_bounds
from underlay.pm.prune.prune import prune
from underlay.prune import And, Compare, Op

SEED = 20_261_115
ROWS_PER_GROUP = 10
COLUMN = 3


def write_parquet(folder: Path, row_groups: int, columns: int) -> Path:
    """A seeded file of 64-bit integers, doubles, timestamps and short texts; column 3 is sorted."""
    rng = np.random.default_rng(SEED)
    rows = row_groups * ROWS_PER_GROUP
    makers = (
        lambda: pa.array(rng.integers(0, 1 << 40, rows)),
        lambda: pa.array(rng.random(rows)),
        lambda: pa.array(rng.integers(0, 1 << 50, rows), pa.timestamp("us")),
        lambda: pa.array([f"w{i}" for i in rng.integers(0, 99, rows)]),
    )
    data: dict[str, Any] = {f"c{i}": makers[i % 4]() for i in range(columns)}
    data[f"c{COLUMN}"] = pa.array(np.arange(rows))
    path = folder / f"{row_groups}x{columns}.parquet"
    pq.write_table(pa.table(data), path, row_group_size=ROWS_PER_GROUP)
    return path


def ask_pyarrow(source: Path | pa.Buffer) -> list[tuple[Any, Any]]:
    metadata = pq.read_metadata(pa.BufferReader(source) if isinstance(source, pa.Buffer) else source)
    statistics = (metadata.row_group(i).column(COLUMN).statistics for i in range(metadata.num_row_groups))
    return [(found.min, found.max) for found in statistics if found is not None]


def ask_sidecar(source: Path | bytes) -> FixedBounds:
    sidecar = decode(source) if isinstance(source, bytes) else read_sidecar(source)
    return fixed_bounds(sidecar, COLUMN, "<i8")


def measure_open(folder: Path, row_groups: int, columns: int, rounds: int) -> dict[str, Any]:
    """Open, checksum and bounds of one column: from bytes in memory, and from a file in the page cache."""
    parquet = write_parquet(folder, row_groups, columns)
    path = parquet.with_suffix(".pm")
    data = from_parquet(parquet)
    create_sidecar(path, data)
    loaded = load_footer(parquet)
    footer = pa.py_buffer(MAGIC + seal(loaded.raw))
    found = ask_sidecar(path)
    expected = ask_pyarrow(parquet)
    assert list(zip(found.minimum.tolist(), found.maximum.tolist(), strict=True)) == expected
    where = And((Compare((f"c{COLUMN}",), Op.GE, row_groups * ROWS_PER_GROUP - 15),))
    sidecar = read_sidecar(path)
    kept = int(prune(sidecar, where).kept.sum())
    seconds = compare(
        {
            "sidecar_in_memory": lambda: ask_sidecar(data),
            "pyarrow_in_memory": lambda: ask_pyarrow(footer),
            "sidecar_from_file": lambda: ask_sidecar(path),
            "pyarrow_from_file": lambda: ask_pyarrow(parquet),
            "prune": lambda: prune(sidecar, where),
        },
        rounds=rounds,
    )
    return {
        "row_groups": row_groups,
        "columns": columns,
        "times_faster_in_memory": seconds["pyarrow_in_memory"] / seconds["sidecar_in_memory"],
        "times_faster_from_file": seconds["pyarrow_from_file"] / seconds["sidecar_from_file"],
        **{f"{name}_us": value * 1e6 for name, value in seconds.items()},
        "row_groups_kept": kept,
        "sidecar_bytes": len(data),
        "footer_bytes": loaded.tail.footer_length,
    }


def measure_append(folder: Path, row_groups: int, columns: int) -> dict[str, Any]:
    """Bytes of one more row group: the block, four bytes per row group, and a constant."""
    sidecar = decode(from_parquet(write_parquet(folder, row_groups, columns)))
    block = block_value(sidecar, row_groups - 1)
    blocks = [*range(row_groups), block]
    tail = append(sidecar, blocks, sidecar.version_fields())
    seconds = compare({"append": lambda: append(sidecar, blocks, sidecar.version_fields())}, rounds=5)
    return {
        "row_groups": row_groups,
        "sidecar_bytes": sidecar.size,
        "block_bytes": 8 + 64 * columns + len(block.out_of_line),
        "written_bytes": len(tail.data),
        "append_us": seconds["append"] * 1e6,
    }


def run(*, small: bool) -> dict[str, Any]:
    shapes = [(100, 10), (10, 20)] if small else [(1000, 50), (10, 20)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return {
            "open": [measure_open(folder, groups, columns, 3 if small else 15) for groups, columns in shapes],
            "append": [measure_append(folder, groups, 20) for groups in ((10, 100) if small else (10, 100, 1000))],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--small", action="store_true", help="a few seconds, for CI: the counts matter, not the times")
    result = run(small=parser.parse_args().small)
    path = save("pm", result)
    print(json.dumps(result, indent=2))
    print(f"written to {path}")


if __name__ == "__main__":
    main()
