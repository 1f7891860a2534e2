"""How long do commands take to start?

CPU seconds of whole processes, user and system, the least of several rounds in which all take turns: what a machine
with other work does to them can only add. Ratios are to Python alone, and to DuckDB in Python, which imports it and
answers `select 1`. Each command's modules are counted too, since those decide.

    python -m bench.startup [--rounds 10]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

from bench.common.timing import save
from underlay import connect

DUCKDB = "import duckdb; duckdb.sql('select 1').fetchall()"
_COUNT_MODULES = """
import sys
sys.argv = ["underlay", *sys.argv[1:]]
from underlay.cli import main
try:
    main.run()
except SystemExit:
    pass
print(len(sys.modules), file=sys.stderr)
"""


def commands(lake: Path) -> dict[str, list[str]]:
    """What is measured, by name: arguments of Python."""
    run = ["-m", "underlay"]
    place = ["--lake", str(lake)]
    return {
        "python": ["-c", "pass"],
        "duckdb": ["-c", DUCKDB],
        "import underlay": ["-c", "import underlay"],
        "underlay --help": [*run, "--help"],
        "underlay sql --help": [*run, "sql", "--help"],
        "underlay tables": [*run, "tables", *place],
        "underlay sql select 1": [*run, "sql", "select 1", *place],
        "underlay sql count": [*run, "sql", "select count(*) from a.b", *place],
        "underlay scan": [*run, "scan", "a.b", *place],
    }


def measure(lake: Path, rounds: int) -> dict[str, float]:
    """The least CPU seconds of each."""
    ways = commands(lake)
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, arguments in ways.items():
            least[name] = min(least[name], _cpu_seconds(arguments))
    return least


def _cpu_seconds(arguments: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    nowhere = subprocess.DEVNULL
    subprocess.run([sys.executable, *arguments], check=True, stdout=nowhere, stderr=nowhere, env=_environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _environment() -> dict[str, str]:
    """With bytecode, which an installed package has too: a checkout has it after the first round."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def module_counts(lake: Path) -> dict[str, int]:
    """How many modules each command has loaded at its end."""
    counts = {}
    for name, arguments in commands(lake).items():
        if arguments[:2] == ["-m", "underlay"]:
            run = [sys.executable, "-c", _COUNT_MODULES, *arguments[2:]]
            ended = subprocess.run(run, check=True, capture_output=True, env=_environment())
            counts[name] = int(ended.stderr.splitlines()[-1])
    return counts


def make_lake(folder: Path) -> Path:
    """A lake of one small table."""
    with connect(folder / "lake") as lake:
        lake.create_table("a.b", "id bigint").append(pa.table({"id": range(10)}))
    return folder / "lake"


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        lake = make_lake(Path(folder))
        seconds, counts = measure(lake, rounds), module_counts(lake)
    print(f"{'':24}{'CPU ms':>8}{'× python':>10}{'× duckdb':>10}{'modules':>9}")
    for name, value in seconds.items():
        ratios = value / seconds["python"], value / seconds["duckdb"]
        print(f"{name:24}{value * 1000:8.0f}{ratios[0]:10.1f}{ratios[1]:10.2f}{counts.get(name, ''):>9}")
    save("startup", {"rounds": rounds, "cpu_seconds": seconds, "modules": counts})


if __name__ == "__main__":
    main()
