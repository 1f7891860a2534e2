"""What do MERGE, UPDATE and DELETE cost on Spark beside Delta Lake and Iceberg, and the next query of such a table?

Delta Lake has deletion vectors, Iceberg has format 3 with merge-on-read; all have the same seeded rows of 20 columns,
JVMs of their own with two cores, and take turns. After the last round all must have the same rows. Warm: one round is
not counted. The next query is a full aggregate, against the same one before the first change. Needs Linux.

    python -m bench.spark_change [--scale tiny|small|full] [--repeat N] [--only adjacent spread many update delete]

Writes bench/out/spark_change.json and prints a table; ratios are a peer's seconds by ours, of medians.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.changes.spark_worker import Fill, Name, Run, Total
from bench.common.timing import save
from bench.spark.arguments import open_environment, parse_arguments
from bench.spark.environment import Environment
from bench.spark.systems import PEERS
from bench.spark.worker import Request
from bench.spark.workers import Workers
from bench.systems.known import OURS

TABLE = "changed"
MERGE = (
    "merge into {table} as t using updates as s on t.id = s.id "
    "when matched then update set * when not matched then insert *"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Rows and files of the table, rows of a small and of a large change, and counted rounds."""

    rows: int
    files: int
    few: int
    many: int
    rounds: int


SCALES = {
    "tiny": Scale(rows=2_000, files=2, few=20, many=200, rounds=1),
    "small": Scale(rows=1_000_000, files=10, few=1_000, many=100_000, rounds=3),
    "full": Scale(rows=10_000_000, files=20, few=1_000, many=1_000_000, rounds=5),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds of each round by system."""

    case: str
    seconds: dict[str, list[float]]
    load: float

    @property
    def medians(self) -> dict[str, float]:
        """By system."""
        return {system: statistics.median(found) for system, found in self.seconds.items()}

    def lines(self) -> list[str]:
        """A block of a readable table."""
        ours = self.medians[OURS]
        shown = [f"{self.case}   [load {self.load:.1f}]"]
        for system, seconds in self.medians.items():
            ratio = "" if system == OURS else f"   {seconds / ours:.2f} × ours"
            shown.append(f"    {system:12}{seconds * 1000:10.0f} ms   fastest {min(self.seconds[system]):.3f} s{ratio}")
        return shown


def _cases(scale: Scale) -> dict[str, Callable[[int], list[Request]]]:
    """The requests of a round: the last one is timed."""

    def merge(first: int, step: int, count: int) -> list[Request]:
        return [Name(first=first, step=step, count=count), Run(name=TABLE, sql=MERGE)]

    def ids(number: int, of: int) -> str:
        first = scale.rows * (2 * number + 3) // of
        return f"id >= {first} and id < {first + scale.few}"

    def change(text: str) -> list[Request]:
        return [Run(name=TABLE, sql=text)]

    return {
        "adjacent": lambda number: merge(scale.rows * (2 * number + 1) // 64, 1, scale.few),
        "spread": lambda number: merge(number, scale.rows // scale.few, scale.few),
        "many": lambda number: merge(scale.rows // 2 + number, 1, scale.many),
        "update": lambda number: change("update {table} set fare = fare * 1.1 where " + ids(number, 67)),
        "delete": lambda number: change("delete from {table} where " + ids(number, 65)),
    }


CASES = tuple(_cases(SCALES["tiny"]))


def run(scale: Scale, environment: Environment, source: Path, only: Collection[str] = CASES) -> Iterator[Cost]:
    """The chosen cases as they are done, then the aggregate before and after. Raises AssertionError for other rows."""
    systems = (OURS, *(PEERS if environment.jars else ()))
    source.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=source, ignore_cleanup_errors=True) as written:
        workers = Workers(systems, environment, source, Path(written), module="bench.changes.spark_worker")
        try:
            workers.ask_all(Fill(name=TABLE, rows=scale.rows, files=scale.files))
            before = _take_turns(workers, lambda _: [Total(name=TABLE)], scale.rounds, "aggregate before")
            for name, requests in _cases(scale).items():
                if name in only:
                    yield _take_turns(workers, requests, scale.rounds, name)
            yield before
            yield _take_turns(workers, lambda _: [Total(name=TABLE)], scale.rounds, "aggregate after")
            totals = {system: reply.values for system, reply in workers.ask_all(Total(name=TABLE)).items()}
            if len(set(map(tuple, totals.values()))) != 1:
                raise AssertionError(f"other rows: {totals}")
        finally:
            workers.close()


def _take_turns(workers: Workers, requests: Callable[[int], list[Request]], rounds: int, case: str) -> Cost:
    """The seconds of the last request of each round; the first round is not counted."""
    seconds: dict[str, list[float]] = {system: [] for system in workers.systems}
    for number in range(rounds + 1):
        turn = number % len(workers.systems)
        for system in workers.systems[turn:] + workers.systems[:turn]:
            replies = [workers.ask(system, request) for request in requests(number)]
            if replies[-1].refused is not None:
                raise AssertionError(f"{system} refused {case}: {replies[-1].refused}")
            if number:
                seconds[system].append(replies[-1].seconds)
    return Cost(case=case, seconds=seconds, load=os.getloadavg()[0])


def main() -> None:
    chosen = parse_arguments(__doc__, scales=SCALES, cases=CASES, folder="spark_change")
    scale = SCALES[chosen.scale]
    if chosen.repeat:
        scale = Scale(**{**asdict(scale), "rounds": chosen.repeat})
    environment = open_environment(chosen.environment)
    found: list[Cost] = []
    for cost in run(scale, environment, chosen.source, chosen.only):
        found.append(cost)
        print("\n".join(cost.lines()), flush=True)
    result: dict[str, Any] = {
        "scale": asdict(scale),
        "missing": environment.missing,
        "costs": [asdict(c) for c in found],
    }
    print(f"written to {save('spark_change', result)}")


if __name__ == "__main__":
    main()
