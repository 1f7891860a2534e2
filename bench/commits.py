"""What do commits cost: 1,000 rows appended by each system, and opening a table after few and after many commits?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from bench.common.measured import Measured, Work
from bench.common.questions import Question, moment
from bench.common.timing import sample
from bench.common.trips import trips
from bench.systems.known import OURS, load_system
from bench.systems.ours import TABLE, Underlay
from bench.systems.system import System
from underlay.api.lake import Lake, connect
from underlay.api.plan import Plan
from underlay.cache.settings import memory_cache
from underlay.store import open_store
from underlay.store.store import Store
from underlay.store.testing import CountingStore
from underlay.table.versions.environment import Surroundings, wait_for_background

APPENDED_ROWS = 1000
_COUNTED = 5
"""Appends of which the one with the fewest puts in sequence counts."""
_COUNT = Question(name="count", select="count(*)")


def measure_appends(folder: Path, names: Sequence[str], rounds: int) -> Measured:
    """1,000 rows appended to a small table of each system; all rows are there afterwards."""
    store = CountingStore(open_store(folder / OURS / "lake"))
    systems: dict[str, System] = {name: load_system(name)(folder / name) for name in names}
    rows = trips(0, APPENDED_ROWS)
    calls = dict.fromkeys(systems, 0)

    def append(name: str) -> None:
        calls[name] += 1
        systems[name].append(rows)

    for system in systems.values():
        system.create()
    samples = sample({name: partial(append, name) for name in systems}, rounds=rounds)
    table = Lake(store, surroundings=Surroundings(in_background=_leave_out)).table(TABLE)
    work = min((_counted(store, partial(table.append, rows)) for _ in range(_COUNTED)), key=_puts_in_sequence)
    calls[OURS] += _COUNTED
    for name, system in systems.items():
        found = next(iter(system.ways().values()))(_COUNT)
        if found != calls[name] * APPENDED_ROWS:
            raise AssertionError(f"{name}: {found} rows after {calls[name]} appends of {APPENDED_ROWS}")
    return Measured(
        case=f"append of {APPENDED_ROWS:,} rows",
        samples=samples,
        target=1.0,
        work={OURS: work},
        notes=(f"ours waits for {work.writes_in_sequence} puts in sequence and syncs each to the disk",),
    )


def measure_opens(folder: Path, few: int, many: int, rounds: int) -> Measured:
    """A fresh lake object and a selective plan, after few and after many commits of one row."""
    stores = {count: _committed(folder / str(count), count) for count in (few, many)}
    work = {}
    for count, path in stores.items():
        store = CountingStore(open_store(path))
        plan = _open_and_plan(store, count)
        if plan.kept.rows != 1 or plan.total.rows != count:
            raise AssertionError(f"after {count} commits: {plan.kept} of {plan.total}")
        work[f"{OURS} {count}"] = Work.of(store)
    samples = sample(
        {f"{OURS} {count}": partial(_reopen, path, count) for count, path in stores.items()},
        rounds=rounds,
    )
    return Measured(
        case=f"open and plan after {many:,} commits, and after {few}",
        samples={f"{OURS} {many}": samples[f"{OURS} {many}"]},
        target=2.0,
        against=(f"{few} commits", samples[f"{OURS} {few}"]),
        work=work,
        notes=tuple(f"{name.split()[1]} commits: {found.requests} requests" for name, found in work.items()),
    )


def _counted(store: CountingStore, call: Callable[[], object]) -> Work:
    store.reset()
    call()
    return Work.of(store)


def _puts_in_sequence(work: Work) -> int:
    """On a busy machine two puts side by side may happen to come one after the other."""
    return work.writes_in_sequence


def _committed(folder: Path, count: int) -> Path:
    """A table with so many commits of one row each."""
    system = Underlay(folder)
    system.create()
    rows: pa.Table = trips(0, count)
    for number in range(count):
        system.append(rows.slice(number, 1))
    wait_for_background()  # the hint of the head is put beside the commits
    return folder / "lake"


def _leave_out(work: Callable[[], None]) -> None:
    """The hint of the head, which no commit waits for, does not count."""


def _reopen(path: Path, count: int) -> Plan:
    return _open_and_plan(open_store(path), count)


def _open_and_plan(store: Store, count: int) -> Plan:
    """As a new process would: nothing of the lake is in memory."""
    memory_cache().start_afresh()
    return connect(store).table(TABLE).plan(where=f"ts = '{moment(count // 2).isoformat()}'")
