"""How fast do rows become durable and visible, one small commit after the other, and does it stay so?

Every system commits the same rows of 5 columns, and a second reader object of its own must see each commit. The
durability is the same: where a system does not sync what it wrote, its new files and their folders are synced here, as
part of the commit. Systems take turns, so that a busy machine is unfair to all. Cases:

| case | what |
|---|---|
| commit | 20 rows; milliseconds until they are durable (median, 99th percentile), and commits a second |
| clients | commits a second of 32 threads. Underlay commits those that wait together; the others take turns |
| visible | the same, and until the second reader has counted the rows |
| bulk | 100,000 rows at a time: rows a second. `duckdb` is COPY to a new Parquet file, with a sync |
| read | all rows of a day: hot, against the same rows sealed, in turns |
| fresh | a writer at 100 commits/s, and readers' lag behind it in a second process |
| flat | the first 1,000 commits of a partition against the last 1,000, and live and dead bytes |

    python -m bench.hot [--commits 300] [--bulk-rows 1000000] [--flat 100000] [--only underlay deltalake]

Writes bench/out/hot.json and prints a table. The rows are checked.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path

from bench.common.timing import save
from bench.hot.cases import (
    Figure,
    bulk_figures,
    client_figures,
    commit_figures,
    flat_figures,
    fresh_figures,
    read_figures,
)
from bench.hot.committing import NAMES, SYSTEMS, UnderlayHot


def run(
    folder: Path, *, commits: int, bulk_rows: int, flat: int, fresh_seconds: float, names: Collection[str]
) -> list[Figure]:
    """All figures. Raises AssertionError when a system has other rows."""
    kinds = [kind for kind in SYSTEMS if kind.name in names]
    found = commit_figures(folder / "small", kinds, commits)
    found += client_figures(folder / "clients", kinds, commits)
    found += bulk_figures(folder / "bulk", kinds, bulk_rows)
    if UnderlayHot in kinds:
        found += read_figures(folder / "read", bulk_rows)
        found += fresh_figures(folder / "fresh", fresh_seconds)
        if flat:
            found += flat_figures(folder / "flat", flat)
    return found


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=300)
    parser.add_argument("--bulk-rows", type=int, default=1_000_000)
    parser.add_argument("--flat", type=int, default=100_000)
    parser.add_argument("--fresh-seconds", type=float, default=20.0)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-hot-") as folder:
        found = run(
            Path(folder),
            commits=given.commits,
            bulk_rows=given.bulk_rows,
            flat=given.flat,
            fresh_seconds=given.fresh_seconds,
            names=given.only,
        )
    for one in found:
        print(f"{one.case:8} {one.system:10} {one.what:22} {one.value:16,.2f}")
    print(save("hot", {"load": os.getloadavg()[0], "figures": [asdict(one) for one in found]}))


if __name__ == "__main__":
    main()
