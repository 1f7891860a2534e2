"""Is a micro-batch of few rows written as fast as by Spark's own Parquet sink, and by Delta Lake and Iceberg?

The same files of 1,000 rows, one a batch, are streamed into a new table by each sink, round by round; each system has a
JVM of its own with two cores, in which plain Parquet takes turns with it: ratios are to plain Parquet in the same JVM.
A batch is timed by Spark, from its trigger to its end, offsets and commit log included. Warm: the first batches of
each query are left out. Rows are counted and summed after every query.

    python -m bench.stream [--batches N] [--rounds N] [--rows N] [--environment FOLDER]

With the folder of `bench.spark` all are measured on its Spark, else plain Parquet and Underlay on the installed one.
Writes bench/out/stream.json and prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bench.common.timing import save
from bench.spark.environment import Environment, make_environment
from bench.spark.systems import PEERS
from bench.stream.worker import WARM_UPS, Reply

_ROOT = Path(__file__).parents[2]
PLAIN = "plain"


def make_files(folder: Path, count: int, rows: int) -> None:
    """The files of a stream; row n is the same in every run."""
    folder.mkdir(parents=True)
    for file in range(count):
        numbers = range(file * rows, file * rows + rows)
        lines = (json.dumps({"id": n, "name": f"trip {n}", "fare": n % 997 / 4}) for n in numbers)
        (folder / f"{file:05}.json").write_text("\n".join(lines) + "\n")


def run(environment: Environment, *, batches: int, rounds: int, rows: int) -> Iterator[tuple[str, Reply]]:
    """What each system took, one after the other."""
    path = [str(found) for found in (environment.python_path, _ROOT) if found is not None]
    with tempfile.TemporaryDirectory(prefix="underlay-stream-", ignore_cleanup_errors=True) as folder:
        files = Path(folder, "files")
        make_files(files, batches + WARM_UPS, rows)
        for system in ("underlay", *(PEERS if environment.jars else ())):
            print(f"measuring {system}", file=sys.stderr, flush=True)
            made = Path(folder, system)
            made.mkdir()
            command = [sys.executable, "-W", "ignore", "-m", "bench.stream.worker", system, "--files", str(files)]
            places = ["--folder", str(made), "--rounds", str(rounds), "--jars", *map(str, environment.jars)]
            ran = subprocess.run(
                [*command, *places],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
                stdout=subprocess.PIPE,
                check=True,
            )
            yield system, msgspec.json.decode(ran.stdout.splitlines()[-1], type=Reply)


def describe(system: str, reply: Reply) -> dict[str, Any]:
    """Medians, and ratios to plain Parquet in the same JVM."""
    medians = {name: statistics.median(values) for name, values in reply.batch_ms.items()}
    return {
        "system": system,
        "batches": {name: len(values) for name, values in reply.batch_ms.items()},
        "median_ms": medians,
        "ratio": {name: round(value / medians[PLAIN], 3) for name, value in medians.items()},
        "load": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--batches", type=int, default=20, help="counted batches of a query; %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="queries of each sink; %(default)s")
    parser.add_argument("--rows", type=int, default=1_000, help="rows of a batch; %(default)s")
    parser.add_argument("--environment", type=Path, help="folder of Spark and jars, as bench.spark makes one")
    chosen = parser.parse_args()
    nothing = Environment(python_path=None, jars=())
    environment = nothing if chosen.environment is None else make_environment(chosen.environment)
    found = []
    for system, reply in run(environment, batches=chosen.batches, rounds=chosen.rounds, rows=chosen.rows):
        found.append(describe(system, reply))
        for name, ratio in found[-1]["ratio"].items():
            print(f"{name:24} {found[-1]['median_ms'][name]:8.0f} ms  {ratio:6.2f}", flush=True)
    print(f"written to {save('stream', {'rows': chosen.rows, 'systems': found})}")


if __name__ == "__main__":
    main()
