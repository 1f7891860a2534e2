"""What `bench.spark` asks of every system, and what Underlay has to reach."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bench.spark.questions import ROWS, SOME, everything, one_block
from bench.spark.report import PLAIN, Compared, Target
from bench.spark.rows import SCHEMA, Dataset
from bench.spark.systems import SYSTEMS
from bench.spark.worker import Append, Ask, Count, Create, First, Open, OpenPlain, Plan, Remove, Reply
from bench.spark.workers import Workers, take_turns
from bench.systems.known import OURS

_CATALYST = "catalyst"
"""Plain Parquet of one file, in the JVM of Underlay: what planning takes when there is nothing to choose from."""
_PLAN_WARM_UPS = 4
"""Times as many for plans, which are short: the JVM compiles Catalyst for as long as they get faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured."""

    wide: Dataset
    many: Dataset
    planned: Dataset
    one: Dataset
    few_rows: int
    rounds: int
    slow_rounds: int
    """Of cases that take many seconds."""
    warm_ups: int
    """Rounds of warming up, before; half as many of slow cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """The cases, each by its name in `CASES`."""

    size: Size
    workers: Workers

    def scan(self) -> Compared:
        """A full scan with an aggregate of every column."""
        size = self.size.wide
        ways = self._ways(size, lambda _: Ask(dataset=size, sql=everything("")))
        return compare(
            "scan",
            f"aggregates of {len(SCHEMA)} columns of {size.row_count:,} rows in {size.files} files, warm",
            self._slow(ways),
            lambda medians: _of_plain(1.05, medians),
        )

    def files(self) -> Compared:
        """A query that needs one of many files."""
        size = self.size.many
        ways = self._ways(size, lambda number: Ask(dataset=size, sql=one_block(SOME, size, number)))
        return compare(
            "files",
            f"selective query on {size.files:,} files, warm",
            self._quick(ways),
            _of_iceberg,
        )

    def block(self) -> Compared:
        """A query that needs one of many row groups."""
        size = self.size.wide
        sql = everything(" where id between LOW and HIGH")
        ways = self._ways(size, lambda number: Ask(dataset=size, sql=one_block(sql, size, number)))
        return compare(
            "block",
            f"aggregates of rows in one of {size.files * size.blocks} row groups in {size.files} files, warm",
            self._quick(ways),
            _of_iceberg,
        )

    def plan(self) -> Compared:
        """The plan of a query that needs one of very many files."""
        size = self.size.planned
        return self._planned(
            "plan",
            f"selective plan over {size.files:,} files, from SQL to the partitions of its scan, warm",
            lambda dataset, number: one_block(ROWS, dataset, number),
            0.030,
        )

    def handover(self) -> Compared:
        """The plan of a query that needs all of very many files but one, so that no answer can be kept."""
        size = self.size.planned
        return self._planned(
            "handover",
            f"plan that keeps {size.files - 1:,} of {size.files:,} files, from SQL to the partitions of its scan, warm",
            lambda dataset, number: f"select id, fare from {{table}} where id >= {size.rows + number}",
            0.300,
        )

    def small(self) -> Compared:
        """An append of few rows to a table that is appended to again and again."""
        rows = self.size.few_rows
        self.workers.ask_all(Create(name="small"))
        self.workers.ask(OURS, Create(name="small_source"))
        counts: dict[str, int] = {}

        def add(system: str, way: str, _: int) -> Reply:
            name = "small_source" if way == "source" else "small"
            found = self.workers.ask(system, Append(name=name, way=way, rows=rows))
            counts[f"{system} {name}"] = counts.get(f"{system} {name}", 0) + 1
            return found

        replies = self._quick(self._append_ways(add))
        for key, times in counts.items():
            system, name = key.split()
            _check_count(key, self.workers.ask(system, Count(name=name)), times * rows)
        return compare(
            "small",
            f"append of {rows:,} rows of {len(SCHEMA)} columns",
            replies,
            lambda medians: replace(_of_plain(1.0, medians), way=f"{OURS} append"),
        )

    def large(self) -> Compared:
        """An append of many rows, from the files of the wide table, to a new table each time."""
        source = self.size.wide

        def add(system: str, way: str, number: int) -> Reply:
            name = f"large{way}{number + self.size.warm_ups}"
            self.workers.ask(system, Create(name=name))
            found = self.workers.ask(system, Append(name=name, way=way, rows=source))
            _check_count(f"{system} {way}", self.workers.ask(system, Count(name=name)), source.row_count)
            self.workers.ask(system, Remove(name=name))
            return found

        return compare(
            "large",
            f"append of {source.row_count:,} rows of {len(SCHEMA)} columns",
            self._slow(self._append_ways(add)),
            lambda medians: replace(_of_plain(1.05, medians), way=f"{OURS} append"),
        )

    def first(self) -> Compared:
        """The first query of a session, each in a new process, whose JVM runs already."""
        size = self.size.many
        self.workers.ask_all(Open(dataset=size))
        self.workers.close()

        def ask(system: str, number: int) -> Reply:
            with self.workers.new(system) as worker:
                return worker.ask(First(dataset=size, sql=one_block(SOME, size, number)))

        ways = {system: partial(ask, system) for system in self.workers.systems}
        return compare(
            "first",
            f"first selective query of a new session on {size.files:,} files, after the start of the JVM",
            take_turns(ways, warm_ups=0, rounds=self.size.slow_rounds),
            _of_iceberg,
        )

    def _planned(self, case: str, question: str, sql: Callable[[Dataset, int], str], beyond: float) -> Compared:
        size, one = self.size.planned, self.size.one
        ways = dict(self._ways(size, lambda number: Plan(dataset=size, sql=sql(size, number))))
        self.workers.ask(OURS, OpenPlain(dataset=one))
        ways[_CATALYST] = lambda number: self.workers.ask(OURS, Plan(dataset=one, sql=sql(one, number)))
        words = f"{beyond * 1000:g} ms beyond Catalyst's own"
        return compare(
            case,
            question,
            take_turns(ways, warm_ups=_PLAN_WARM_UPS * self.size.warm_ups, rounds=self.size.rounds),
            lambda medians: Target(words=words, limit_seconds=medians[_CATALYST] + beyond),
            is_answered=False,
        )

    def _ways(self, dataset: Dataset, request: Callable[[int], Ask]) -> Mapping[str, Callable[[int], Reply]]:
        """Every system asked for the same."""
        self.workers.ask_all(Open(dataset=dataset))

        def ask(system: str, number: int) -> Reply:
            return self.workers.ask(system, request(number))

        return {system: partial(ask, system) for system in self.workers.systems}

    def _quick(self, ways: Mapping[str, Callable[[int], Reply]]) -> dict[str, list[Reply]]:
        return take_turns(ways, warm_ups=self.size.warm_ups, rounds=self.size.rounds)

    def _slow(self, ways: Mapping[str, Callable[[int], Reply]]) -> dict[str, list[Reply]]:
        return take_turns(ways, warm_ups=self.size.warm_ups // 2, rounds=self.size.slow_rounds)

    def _append_ways(self, add: Callable[[str, str, int], Reply]) -> Mapping[str, Callable[[int], Reply]]:
        return {
            f"{system} {way}".strip(): partial(add, system, way)
            for system in self.workers.systems
            for way in SYSTEMS[system].ways
        }


CASES: dict[str, Callable[[Cases], Compared]] = {
    "scan": Cases.scan,
    "files": Cases.files,
    "block": Cases.block,
    "plan": Cases.plan,
    "handover": Cases.handover,
    "small": Cases.small,
    "large": Cases.large,
    "first": Cases.first,
}
"""The last one ends the living workers."""


def compare(
    case: str,
    question: str,
    replies: Mapping[str, Sequence[Reply]],
    target: Callable[[Mapping[str, float]], Target],
    *,
    is_answered: bool = True,
) -> Compared:
    """What every way took, once the answers are known to be the same. Other facts are those of the last round."""
    if is_answered:
        check_same(replies)
    samples = {way: [reply.seconds for reply in found] for way, found in replies.items()}
    medians = {way: statistics.median(values) for way, values in samples.items()}
    return Compared(
        case=case,
        question=question,
        samples=samples,
        targets=(target(medians),),
        read_bytes={way: found[-1].read_bytes for way, found in replies.items()},
        requests={way: found[-1].requests for way, found in replies.items()},
    )


def check_same(replies: Mapping[str, Sequence[Reply]]) -> None:
    """Refuse to time another answer than that of plain Parquet. Sums of floats depend on their order a little."""
    for way, found in replies.items():
        for number, (one, plain) in enumerate(zip(found, replies[PLAIN], strict=True)):
            pairs = zip(one.values, plain.values, strict=True)
            if not all(math.isclose(value, expected, rel_tol=1e-9) for value, expected in pairs):
                raise AssertionError(f"{way}: another answer in round {number}: {one.values}, not {plain.values}")


def _check_count(name: str, found: Reply, expected: int) -> None:
    if found.values != [float(expected)]:
        raise AssertionError(f"{name}: {found.values} rows, not {expected}")


def _of_plain(ratio: float, medians: Mapping[str, float]) -> Target:
    return Target(words=f"{ratio:g} of plain", limit_seconds=ratio * medians[PLAIN])


def _of_iceberg(medians: Mapping[str, float]) -> Target:
    return Target(words="that of Iceberg", limit_seconds=medians.get("iceberg"))
