"""The cases: each measures some systems, checks their rows, and returns figures."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow as pa

from bench.hot.committing import BULK, ROWS, Committing, UnderlayHot, make_rows

_CLIENTS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number."""

    case: str
    system: str
    what: str
    value: float


def commit_figures(folder: Path, kinds: Sequence[type[Committing]], commits: int) -> list[Figure]:
    """Small commits, and when a reader sees them."""
    systems = [kind(folder / kind.name) for kind in kinds]
    committed: dict[str, list[float]] = {one.name: [] for one in systems}
    visible: dict[str, list[float]] = {one.name: [] for one in systems}
    for number in range(commits):
        rows = make_rows(number * ROWS, ROWS)
        for one in systems:
            begin = time.perf_counter()
            one.append(rows)
            durable = time.perf_counter()
            count = one.count()
            seen = time.perf_counter()
            assert count == (number + 1) * ROWS, f"{one.name}: {count} rows after {number + 1} commits"
            committed[one.name].append(durable - begin)
            visible[one.name].append(seen - begin)
    found = []
    for one in systems:
        one.close()
        times = committed[one.name]
        found.append(Figure(case="commit", system=one.name, what="commits/s", value=len(times) / sum(times)))
        found += _milliseconds("commit", one.name, times)
        found += _milliseconds("visible", one.name, visible[one.name])
    return found


def client_figures(folder: Path, kinds: Sequence[type[Committing]], commits: int) -> list[Figure]:
    """Small commits of many threads, each with rows of its own."""
    found = []
    for kind in kinds:
        one = kind(folder / kind.name)
        turns = nullcontext() if kind is UnderlayHot else Lock()

        def commit(number: int, one: Committing = one, turns: AbstractContextManager[object] = turns) -> None:
            rows = make_rows(number * ROWS, ROWS)
            with turns:
                one.append(rows)

        total = commits * _CLIENTS if kind is UnderlayHot else commits
        begin = time.perf_counter()
        with ThreadPoolExecutor(_CLIENTS) as pool:
            list(pool.map(commit, range(total)))
        spent = time.perf_counter() - begin
        assert one.count() == total * ROWS, one.name
        one.close()
        found.append(Figure(case="clients", system=one.name, what="commits/s", value=total / spent))
    return found


def _milliseconds(case: str, system: str, seconds: Sequence[float]) -> list[Figure]:
    return [
        Figure(case=case, system=system, what=what, value=1000 * float(np.quantile(seconds, at)))
        for what, at in (("p50 ms", 0.5), ("p99 ms", 0.99))
    ]


def bulk_figures(folder: Path, kinds: Sequence[type[Committing]], count: int) -> list[Figure]:
    """Large appends."""
    systems = [kind(folder / kind.name) for kind in kinds]
    seconds: dict[str, float] = dict.fromkeys((one.name for one in systems), 0.0)
    for first in range(0, count, BULK):
        rows = make_rows(first, min(BULK, count - first))
        for one in systems:
            begin = time.perf_counter()
            one.append(rows)
            seconds[one.name] += time.perf_counter() - begin
    for one in systems:
        assert one.count() == count, one.name
        one.close()
    return [Figure(case="bulk", system=name, what="rows/s", value=count / spent) for name, spent in seconds.items()]


def read_figures(folder: Path, count: int, rounds: int = 5) -> list[Figure]:
    """The same rows hot and sealed, of which copies lie side by side."""
    hot, sealed = UnderlayHot(folder / "hot"), UnderlayHot(folder / "sealed")
    for first in range(0, count, BULK):
        for one in (hot, sealed):
            one.append(make_rows(first, min(BULK, count - first)))
    sealed.writer.seal(everything=True)
    ways: dict[str, Callable[[], int]] = {
        "hot": lambda: hot.reader.to_arrow().num_rows,
        "sealed": lambda: sealed.reader.to_arrow().num_rows,
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, read in ways.items():
            begin = time.perf_counter()
            assert read() == count
            seconds[name].append(time.perf_counter() - begin)
    hot.close()
    sealed.close()
    median = {name: statistics.median(values) for name, values in seconds.items()}
    found = [Figure(case="read", system="underlay", what=f"{name} s", value=value) for name, value in median.items()]
    return [*found, Figure(case="read", system="underlay", what="hot / sealed", value=median["hot"] / median["sealed"])]


_READER = """
import sys, time
import pyarrow.compute as pc
import underlay as ul
table = ul.connect(sys.argv[1], registry="none", hot=sys.argv[2]).table("bench.rows")
last = -1
print("ready", flush=True)
while last < int(sys.argv[3]) - 1:
    rows = table.scan(columns=["id", "fare"], where=f"id > {last}").to_arrow()
    now = time.time()
    for id, sent in zip(rows.column("id").to_pylist(), rows.column("fare").to_pylist()):
        print(now - sent, flush=False)
        last = max(last, id)
sys.stdout.flush()
"""


def fresh_figures(folder: Path, seconds: float, rate: int = 100) -> list[Figure]:
    """One row a commit, 100 a second; a reader in another process asks for what is new, again and again."""
    one = UnderlayHot(folder)
    total = int(seconds * rate)
    command = [sys.executable, "-c", _READER, str(folder / "lake"), str(folder / "hot"), str(total)]
    one.append(make_rows(0, 1).set_column(3, "fare", pa.array([time.time()])))
    late = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        begin = time.perf_counter()
        for number in range(1, total):
            due = begin + number / rate
            time.sleep(max(0.0, due - time.perf_counter()))
            late += time.perf_counter() - due > 1 / rate
            one.append(make_rows(number, 1).set_column(3, "fare", pa.array([time.time()])))
        spent = time.perf_counter() - begin
        lags = [float(line) for line in reader.stdout][1:]
    one.close()
    assert len(lags) == total - 1
    return [
        Figure(case="fresh", system="underlay", what="commits/s", value=(total - 1) / spent),
        Figure(case="fresh", system="underlay", what="late commits", value=late),
        *_milliseconds("fresh", "underlay", lags),
    ]


def flat_figures(folder: Path, commits: int) -> list[Figure]:
    """Many commits of one partition."""
    one = UnderlayHot(folder)
    times = []
    for number in range(commits):
        rows = make_rows(number, 1)
        begin = time.perf_counter()
        one.append(rows)
        times.append(time.perf_counter() - begin)
    part = min(1000, commits // 4)
    begin = time.perf_counter()
    assert one.count() == commits
    counted = time.perf_counter() - begin
    size = sum(path.stat().st_size for path in folder.joinpath("hot").rglob("*") if path.is_file())
    one.close()
    first, last = statistics.median(times[:part]), statistics.median(times[-part:])
    return [
        Figure(case="flat", system="underlay", what=f"first {part} p50 ms", value=1000 * first),
        Figure(case="flat", system="underlay", what=f"last {part} p50 ms", value=1000 * last),
        Figure(case="flat", system="underlay", what="last / first", value=last / first),
        Figure(case="flat", system="underlay", what="count at the end s", value=counted),
        Figure(case="flat", system="underlay", what="bytes", value=size),
    ]
