"""Is a table of many files as fast to import, open, plan, query and append to as its peers'?

Delta Lake (delta-rs), DuckLake and Iceberg (PyIceberg) are measured in the same run, turn by turn, on the seeded
files of `bench.common.trips`: sorted by time, ids spread so that only bloom filters find them. Every answer is compared
before it is timed. Warm: the table is open and its metadata in memory. Cold: a fresh process that has done its imports.
The files are in the page cache in both. Beside our times stand the requests to the store and the bytes they moved.

    python -m bench.tables [--files 10000] [--quick] [--all-peers] [--only import time …]

Writes bench/out/tables.json and prints a table; a ratio is our fastest way by the fastest peer's.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.cold.__main__ import measure_cold
from bench.commits import measure_appends, measure_opens
from bench.common.measured import Measured, Work
from bench.common.questions import digest, make_questions
from bench.common.synthetic import make_synthetic
from bench.common.timing import sample, save
from bench.common.trips import write_files
from bench.queries import measure_imports, measure_plan, measure_question
from bench.systems.ducklake import DuckLake
from bench.systems.known import OURS, SLOW_TO_IMPORT, SYSTEMS
from bench.systems.ours import TABLE, Underlay
from underlay.store import open_store
from underlay.store.testing import CountingStore

CASES = ("import", "time", "point", "sum", "count", "plan", "cold", "growth", "append", "opens")
_LIBRARIES = ("deltalake", "duckdb", "pyiceberg", "pyarrow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured."""

    files: int = 10_000
    grown: tuple[int, int] = (10_000, 100_000)
    commits: tuple[int, int] = (50, 5_000)
    rounds: int = 15
    slow_rounds: int = 3
    appends: int = 30
    appenders: tuple[str, ...] = SYSTEMS

    @staticmethod
    def quick(files: int) -> Size:
        """Some seconds, for CI."""
        return Size(
            files=files,
            grown=(100, 1_000),
            commits=(10, 40),
            rounds=1,
            slow_rounds=1,
            appends=1,
            appenders=tuple(name for name in SYSTEMS if name != SLOW_TO_IMPORT),
        )


def run(size: Size, *, source: Path, all_peers: bool = False, only: Collection[str] = CASES) -> Iterator[Measured]:
    """The chosen cases, as they are done. Files of trips are kept below `source`."""
    names = [name for name in SYSTEMS if all_peers or name != SLOW_TO_IMPORT]
    files = write_files(source / str(size.files), size.files)
    with tempfile.TemporaryDirectory(dir=source) as name:
        folder = Path(name)
        if {"import", "time", "point", "sum", "count", "plan", "cold"} & set(only):
            yield from _of_files(size, folder, names, files, only)
        if "growth" in only:
            yield _growth(size, folder)
        if "append" in only:
            yield measure_appends(folder / "appends", size.appenders, size.appends)
        if "opens" in only:
            yield measure_opens(folder / "opens", *size.commits, size.rounds)


def _of_files(
    size: Size, folder: Path, names: list[str], files: list[Path], only: Collection[str]
) -> Iterator[Measured]:
    rounds = size.slow_rounds if "import" in only else 1
    imported, systems = measure_imports(folder, names, files, rounds)
    if "import" in only:
        yield imported
    for question in make_questions(size.files).values():
        if question.name in only or (question.name == "time" and "plan" in only):
            measured = measure_question(
                systems, folder, question, size.rounds if question.name == "time" else size.slow_rounds
            )
            yield measured
            if question.where and "plan" in only:
                yield measure_plan(folder, question, measured.best_peer, size.rounds)
    lake = systems["ducklake"]
    if isinstance(lake, DuckLake):
        lake.close()
    if "cold" in only:
        yield _cold(size, folder, names)


def _cold(size: Size, folder: Path, names: list[str]) -> Measured:
    found = measure_cold({name: folder / name for name in names}, size.files, size.rounds)
    expected = make_questions(size.files)["time"].expected
    if expected is None or any(one != digest(expected) for one in found["digests"].values()):
        raise AssertionError(f"cold: other answers: {found['digests']}")
    store = CountingStore(open_store(folder / OURS / "lake"))
    Underlay(folder / OURS, store).scan(make_questions(size.files)["time"])
    return Measured(
        case="cold open and time query in a fresh process",
        samples=found["seconds"],
        target=1.0,
        work={OURS: Work.of(store)},
    )


def _growth(size: Size, folder: Path) -> Measured:
    """The plan of half a block by time, warm, over synthetic tables of two sizes."""
    ways: dict[str, Callable[[], object]] = {}
    work = {}
    for count in size.grown:
        path = folder / f"synthetic-{count}"
        make_synthetic(open_store(path), count)
        where = make_questions(count)["time"].where
        store = CountingStore(open_store(path))
        counted = Underlay(path, store).table
        counted.plan(where=where)
        store.reset()
        kept = counted.plan(where=where).kept
        if (kept.files, kept.blocks) != (1, 1):
            raise AssertionError(f"a plan over {count} files keeps {kept}")
        name = f"{OURS} {count}"
        work[name] = Work.of(store)
        table = Underlay(path, open_store(path)).lake.table(TABLE)
        ways[name] = partial(table.plan, where=where)
    samples = sample(ways, rounds=size.rounds)
    small, large = (f"{OURS} {count}" for count in size.grown)
    return Measured(
        case=f"plan of time over {size.grown[1]:,} files × 10 blocks, warm, and over {size.grown[0]:,}",
        samples={large: samples[large]},
        target=3.0,
        against=(f"{size.grown[0]:,} files", samples[small]),
        work=work,
    )


def describe_run(size: Size, measured: list[Measured], skipped: list[str]) -> dict[str, Any]:
    """The result for JSON."""
    return {
        "files": size.files,
        "cpus": os.cpu_count(),
        "versions": {name: version(name) for name in _LIBRARIES},
        "skipped": skipped,
        "cases": [one.to_dict() for one in measured],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--files", type=int, default=0, help="files to import; 10000, with --quick 60")
    parser.add_argument("--quick", action="store_true", help="a few seconds: the counts matter, not the times")
    parser.add_argument("--all-peers", action="store_true", help="import into Iceberg too, some 10 ms a file")
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES, help="some cases")
    parser.add_argument(
        "--source", type=Path, default=Path(tempfile.gettempdir(), "underlay-bench"), help="where files are made"
    )
    chosen = parser.parse_args()
    size = Size.quick(chosen.files or 60) if chosen.quick else Size(files=chosen.files or 10_000)
    skipped = [] if chosen.all_peers else [f"{SLOW_TO_IMPORT}: import and queries, for --all-peers"]
    measured = []
    for one in run(size, source=chosen.source, all_peers=chosen.all_peers, only=chosen.only):
        measured.append(one)
        print("\n".join(one.lines()), flush=True)
    for text in skipped:
        print(f"skipped: {text}")
    print(f"written to {save('tables', describe_run(size, measured, skipped))}")


if __name__ == "__main__":
    main()
