"""Is Underlay on Spark as fast as plain Parquet, and as fast as Delta Lake and Iceberg where they are faster?

All systems are measured in one run on a Spark that all support (see `bench.spark.environment`; what is missing is
fetched once, and without a network the peers are left out), each in a JVM of its own with two cores, turn by turn in an
order that rotates. Underlay writes the seeded files; plain Parquet, Delta Lake (CONVERT TO DELTA) and Iceberg
(add_files) take hard links to the very same ones. Every answer is compared with that of plain Parquet. Warm: the table
is known to the session, and some rounds were run before. Conditions differ from round to round, so that no result can
be kept. Beside times stand the bytes that the JVM read, and requests of our driver to the store. Needs Linux.

    python -m bench.spark [--scale tiny|small|full] [--repeat N] [--only scan files … first]

Writes bench/out/spark.json and prints a table; ratios are to plain Parquet.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.common.timing import save
from bench.spark.arguments import open_environment, parse_arguments
from bench.spark.cases import CASES, Cases, Size
from bench.spark.environment import DELTA, ICEBERG, SPARK, Environment
from bench.spark.report import Compared
from bench.spark.rows import Dataset, make_dataset
from bench.spark.systems import PEERS, SYSTEMS
from bench.spark.workers import Workers

SIZES = {
    "tiny": Size(
        wide=Dataset(name="wide", files=4, blocks=2, rows=500),
        many=Dataset(name="many", files=20, blocks=1, rows=50),
        planned=Dataset(name="plan", files=40, blocks=1, rows=20),
        one=Dataset(name="one", files=1, blocks=1, rows=20),
        few_rows=100,
        rounds=1,
        slow_rounds=1,
        warm_ups=0,
    ),
    "small": Size(
        wide=Dataset(name="wide", files=20, blocks=5, rows=10_000),
        many=Dataset(name="many", files=400, blocks=1, rows=500),
        planned=Dataset(name="plan", files=2_000, blocks=1, rows=50),
        one=Dataset(name="one", files=1, blocks=1, rows=50),
        few_rows=1_000,
        rounds=9,
        slow_rounds=3,
        warm_ups=4,
    ),
    "full": Size(
        wide=Dataset(name="wide", files=20, blocks=5, rows=100_000),
        many=Dataset(name="many", files=2_000, blocks=1, rows=5_000),
        planned=Dataset(name="plan", files=10_000, blocks=1, rows=100),
        one=Dataset(name="one", files=1, blocks=1, rows=100),
        few_rows=1_000,
        rounds=15,
        slow_rounds=5,
        warm_ups=5,
    ),
}


def run(size: Size, environment: Environment, *, source: Path, only: Collection[str] = CASES) -> Iterator[Compared]:
    """The chosen cases, as they are done. Datasets and what systems made of them are kept below `source`."""
    systems = tuple(name for name in SYSTEMS if environment.jars or name not in PEERS)
    for dataset in (size.wide, size.many, size.planned, size.one):
        print(f"files of {dataset.folder}", file=sys.stderr, flush=True)
        make_dataset(dataset, source)
    with tempfile.TemporaryDirectory(dir=source, ignore_cleanup_errors=True) as written:
        workers = Workers(systems, environment, source, Path(written))
        try:
            for name, case in CASES.items():
                if name in only:
                    print(f"measuring {name}", file=sys.stderr, flush=True)
                    yield case(Cases(size=size, workers=workers))
        finally:
            workers.close()


def describe_run(
    scale: str, size: Mapping[str, Any], environment: Environment, cases: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The result for JSON."""
    has_own_spark = environment.python_path is not None
    return {
        "scale": scale,
        "size": size,
        "machine": {"cpus": os.cpu_count(), "kind": platform.machine(), "system": platform.platform()},
        "load": os.getloadavg(),
        "versions": {
            "python": platform.python_version(),
            "pyspark": SPARK if has_own_spark else version("pyspark"),
            "underlay": version("underlay"),
            "pyarrow": version("pyarrow"),
            **({"delta": DELTA, "iceberg": ICEBERG} if environment.jars else {}),
        },
        "missing": list(environment.missing),
        "cases": cases,
    }


def main() -> None:
    chosen = parse_arguments(__doc__, scales=SIZES, cases=CASES, folder="spark")
    size = SIZES[chosen.scale]
    if chosen.repeat:
        size = replace(size, rounds=chosen.repeat, slow_rounds=chosen.repeat)
    environment = open_environment(chosen.environment)
    compared = []
    for one in run(size, environment, source=chosen.source, only=chosen.only):
        compared.append(one)
        print("\n".join(one.lines()), flush=True)
    cases = [one.to_dict() for one in compared]
    print(f"written to {save('spark', describe_run(chosen.scale, asdict(size), environment, cases))}")


if __name__ == "__main__":
    main()
