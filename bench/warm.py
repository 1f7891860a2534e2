"""Is a warm query as fast through SQL as through a scan, and as fast while the registry follows a large commit?

One process and one table of many files, the seeded ones of `bench.common.trips`. `scan`, `plan` and `sql` put the
question `time`, half a block of one file, turn by turn; answers are compared first. CPU is that of the whole process,
the least of all rounds, since other work on the machine can only add to it; calls of Python functions are counted once,
without noise. Then another table takes as many files in one commit, and scans go on while the registry's thread applies
it, against as many before the commit and after it: by wall time, which has the waits for the interpreter but also those
for a busy machine, and by the CPU time of the scanning thread. Registering is measured too, ours and delta-rs's turn by
turn, in CPU seconds and by wall time.

    python -m bench.warm [--files 10000] [--rounds 100] [--commits 3] [--only queries commits imports]

Writes bench/out/warm.json.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from bench.common.questions import is_same, make_questions
from bench.common.timing import save
from bench.common.trips import SCHEMA, write_files
from bench.systems.known import load_system
from bench.systems.ours import Underlay

CASES = ("queries", "commits", "imports")
IMPORTERS = ("underlay", "deltalake")
_CALLS_A_ROUND = 4
_QUIET_SCANS = 300
_LEAST_SCANS = 10


class Seconds(NamedTuple):
    """How long something took."""

    wall: float
    cpu: float


Ways = dict[str, Callable[[], object]]


def measure_queries(ours: Underlay, file_count: int, rounds: int) -> dict[str, Any]:
    """The least CPU seconds and the Python calls of each way, warm."""
    question = make_questions(file_count)["time"]
    answers = [ours.scan(question), ours.sql(question)]
    if question.expected is None or not all(is_same(answer, question.expected) for answer in answers):
        raise AssertionError("another answer")
    ways: Ways = {
        "scan": lambda: ours.scan(question),
        "plan": lambda: ours.table.plan(where=question.where),
        "sql": lambda: ours.sql(question),
    }
    _settle(ours)
    seconds = {name: min(found) for name, found in _cpu_by_turns(ways, rounds).items()}
    return {"cpu_seconds": seconds, "python_calls": {name: _calls(way) for name, way in ways.items()}}


def measure_commits(ours: Underlay, file_count: int, commits: int) -> dict[str, Any]:
    """Seconds of scans while a commit of many files is applied to the registry, and of those before and after it."""
    question = make_questions(file_count)["time"]
    during: list[Seconds] = []
    quiet: list[Seconds] = []
    applied = []
    for number in range(commits):
        table = ours.lake.create_table(f"taxi.more_{number}", SCHEMA, key=["id"], sort_by=["ts"])
        _settle(ours)
        quiet += [_timed(lambda: ours.scan(question)) for _ in range(_QUIET_SCANS)]
        table.register(f"{ours.files}/*.parquet")
        done = threading.Event()
        follower = threading.Thread(target=_watch, args=(ours, done))
        begin = time.perf_counter()
        follower.start()
        scans = len(during) + _LEAST_SCANS
        while not done.is_set() or len(during) < scans:
            during.append(_timed(lambda: ours.scan(question)))
        applied.append(time.perf_counter() - begin)
        follower.join()
        quiet += [_timed(lambda: ours.scan(question)) for _ in range(_QUIET_SCANS)]
    found: dict[str, Any] = {"applied_seconds": applied}
    for at, clock in enumerate(Seconds._fields):
        found[clock] = {"during": _spread([one[at] for one in during]), "quiet": _spread([one[at] for one in quiet])}
    return found


def measure_imports(folder: Path, files: list[Path], rounds: int) -> dict[str, list[Seconds]]:
    """Seconds of registering all files in a new table, turn by turn, each first in every second round."""
    seconds: dict[str, list[Seconds]] = {name: [] for name in IMPORTERS}
    for number in range(rounds):
        for name in IMPORTERS if number % 2 else reversed(IMPORTERS):
            shutil.rmtree(folder / name, ignore_errors=True)
            system = load_system(name)(folder / name)
            system.place(files)
            before, begin = _cpu(), time.perf_counter()
            system.import_files()
            seconds[name].append(Seconds(wall=time.perf_counter() - begin, cpu=_cpu() - before))
    return seconds


def _watch(ours: Underlay, done: threading.Event) -> None:
    """Look, without asking for haste, until the registry has everything."""
    registry = ours.lake.registry
    while registry is not None and not registry.is_idle:
        time.sleep(0.005)
    done.set()


def _settle(ours: Underlay) -> None:
    if ours.lake.registry is not None:
        ours.lake.registry.wait()


def _cpu_by_turns(ways: Ways, rounds: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        for _ in range(20):
            way()
    for _ in range(rounds):
        for name, way in ways.items():
            before = time.process_time()
            for _ in range(_CALLS_A_ROUND):
                way()
            found[name].append((time.process_time() - before) / _CALLS_A_ROUND)
    return found


def _calls(way: Callable[[], object]) -> int:
    """Calls of Python functions in the calling thread, which runs the whole of a way when it is not the main one."""
    count = 0

    def note(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    def run() -> None:
        sys.setprofile(note)
        way()
        sys.setprofile(None)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return count


def _timed(way: Callable[[], object]) -> Seconds:
    """Seconds of one call, CPU those of this thread."""
    before, begin = time.thread_time(), time.perf_counter()
    way()
    return Seconds(wall=time.perf_counter() - begin, cpu=time.thread_time() - before)


def _spread(seconds: list[float]) -> dict[str, float]:
    tenths = statistics.quantiles(seconds, n=10)
    return {"count": len(seconds), "median": statistics.median(seconds), "tenth": tenths[0], "ninetieth": tenths[-1]}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def run(
    folder: Path, source: Path, file_count: int, rounds: int, commits: int, only: Collection[str]
) -> dict[str, Any]:
    """Measure, and print as it goes."""
    files = write_files(source / str(file_count), file_count)
    result: dict[str, Any] = {"files": file_count}
    if {"queries", "commits"} & set(only):
        ours = Underlay(folder / "lake-of-queries")
        ours.place(files)
        ours.import_files()
        if "queries" in only:
            result["queries"] = found = measure_queries(ours, file_count, rounds)
            for name, value in found["cpu_seconds"].items():
                print(f"{name:8}{value * 1000:8.2f} ms CPU {found['python_calls'][name]:8,} Python calls")
            print(f"sql / scan: {found['cpu_seconds']['sql'] / found['cpu_seconds']['scan']:.2f} (target 1.6)")
        if "commits" in only:
            result["commits"] = found = measure_commits(ours, file_count, commits)
            for clock in Seconds._fields:
                for name, spread in found[clock].items():
                    shown = "".join(f"{key:>12} {value * 1000:6.2f}" for key, value in spread.items() if key != "count")
                    print(f"scan, {name:8}{clock:6}{spread['count']:6} times{shown} ms")
                ratio = found[clock]["during"]["median"] / found[clock]["quiet"]["median"]
                print(f"during / quiet, {clock}: {ratio:.2f} (target 1.2)")
        ours.lake.close()
    if "imports" in only:
        result["imports"] = seconds = measure_imports(folder, files, commits)
        for name, values in seconds.items():
            least = [min(clock) for clock in zip(*values, strict=True)]
            middle = [statistics.median(clock) for clock in zip(*values, strict=True)]
            print(
                f"import, {name:12}wall {least[0]:6.2f} s at least, {middle[0]:6.2f} median;"
                f" CPU {least[1]:6.2f}, {middle[1]:6.2f}; of {len(values)}"
            )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--commits", type=int, default=3, help="large commits, and imports of each system")
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--source", type=Path, default=Path(tempfile.gettempdir(), "underlay-bench"))
    chosen = parser.parse_args()
    chosen.source.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=chosen.source) as name:
        result = run(Path(name), chosen.source, chosen.files, chosen.rounds, chosen.commits, chosen.only)
    print(f"written to {save('warm', result)}")


if __name__ == "__main__":
    main()
