"""How fast are imports and warm queries, end to end through each system's own calls?"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from bench.common.measured import Measured, Work
from bench.common.questions import Answer, Question, is_same
from bench.common.timing import sample
from bench.systems.known import OURS, load_system
from bench.systems.ours import Underlay
from bench.systems.system import System
from underlay.store import open_store
from underlay.store.testing import CountingStore

TIME_TARGET = 0.25
PLAN_TARGET = 0.1
SLOW_SECONDS = 10.0
"""A way that takes longer for its first two answers is not timed again."""


def measure_imports(
    folder: Path, names: Sequence[str], files: Sequence[Path], rounds: int
) -> tuple[Measured, dict[str, System]]:
    """Import of all files into a new table, turn by turn; the tables of the last round are returned."""
    seconds: dict[str, list[float]] = {name: [] for name in names}
    systems: dict[str, System] = {}
    for _ in range(rounds):
        for name in names:
            shutil.rmtree(folder / name, ignore_errors=True)
            systems[name] = system = load_system(name)(folder / name)
            system.place(files)
            begin = time.perf_counter()
            system.import_files()
            seconds[name].append(time.perf_counter() - begin)
    measured = Measured(
        case=f"import of {len(files):,} files in place, warm page cache",
        samples=seconds,
        target=1.0,
        work={OURS: _count_import(folder / "counted", files)},
    )
    return measured, systems


def measure_question(systems: Mapping[str, System], folder: Path, question: Question, rounds: int) -> Measured:
    """One question by every way of every system, warm. All answers are the same, and those the generator knows."""
    ways = {
        f"{name} {way}": partial(ask, question)
        for name, system in systems.items()
        for way, ask in system.ways().items()
    }
    answers: dict[str, Answer] = {}
    first: dict[str, float] = {}
    for name, ask in ways.items():
        begin = time.perf_counter()
        answers[name] = ask()
        first[name] = time.perf_counter() - begin
    check_same(answers, question)
    later = {name: [_seconds(ways[name])] for name, seconds in first.items() if seconds > SLOW_SECONDS}
    slow = {name: seconds for name, seconds in later.items() if seconds[0] > SLOW_SECONDS}
    work = {}
    store = CountingStore(open_store(folder / OURS / "lake"))
    for way, put in Underlay(folder / OURS, store).ways().items():
        put(question)
        store.reset()
        put(question)
        work[f"{OURS} {way}"] = Work.of(store)
    return Measured(
        case=f"{question.name}: {question.sql('trips')}, warm",
        samples=slow | sample({name: ask for name, ask in ways.items() if name not in slow}, rounds=rounds),
        target=TIME_TARGET if question.name in ("time", "point") else None,
        work=work,
        notes=tuple(f"{name}: the first answer took {first[name]:.1f} s" for name in later),
    )


def measure_plan(folder: Path, question: Question, peer: tuple[str, Sequence[float]], rounds: int) -> Measured:
    """Our plan of a question with the check of the head, warm, against the best peer's whole query."""
    table = Underlay(folder / OURS).table
    store = CountingStore(open_store(folder / OURS / "lake"))
    counted = Underlay(folder / OURS, store).table
    counted.plan(where=question.where)
    store.reset()
    kept = counted.plan(where=question.where).kept
    name = f"{OURS} plan"
    return Measured(
        case=f"plan of {question.name} alone, warm, against the best peer's query",
        samples=sample({name: lambda: table.plan(where=question.where)}, rounds=rounds),
        target=PLAN_TARGET,
        against=peer,
        work={name: Work.of(store)},
        notes=(f"keeps {kept.blocks:,} blocks of {kept.files:,} files",),
    )


def check_same(answers: Mapping[str, Answer], question: Question) -> None:
    """Refuse to time wrong answers."""
    expected = question.expected if question.expected is not None else next(iter(answers.values()))
    wrong = [name for name, answer in answers.items() if not is_same(answer, expected)]
    if wrong:
        raise AssertionError(f"{question.name}: other answers from {', '.join(wrong)}")


def _seconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _count_import(folder: Path, files: Sequence[Path]) -> Work:
    store = CountingStore(open_store(folder / "lake"))
    system = Underlay(folder, store)
    system.place(files)
    system.create()
    store.reset()
    system.register()
    return Work.of(store)
