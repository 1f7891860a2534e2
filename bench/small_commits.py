"""What do many small commits cost: making them, their history, and reading all rows of all their files?

Every system appends 20 rows so many times through one table that stays open, then a new object of its own opens the
table, lists all versions, and reads all rows. Delta Lake (delta-rs) and DuckLake take turns with Underlay, a hundredth
of the appends at a time. DuckLake's inlining is off: it is measured with files, as the others are. Underlay and
DuckLake keep their metadata databases; Underlay syncs each commit to the disk, delta-rs does not. Wall and CPU seconds
are of this process, whose threads do all the work. The rows and the number of versions are checked.

    python -m bench.small_commits [--appends 10000] [--rounds 3] [--only underlay deltalake]

Writes bench/out/small_commits.json and prints a table; a ratio is ours by the system's.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from bench.common.timing import save
from bench.systems.ducklake import find_extension
from underlay.api.lake import connect
from underlay.cache.settings import memory_cache

T = TypeVar("T")

ROWS = 20
"""Rows of one append: more than DuckLake puts into its catalog by default."""
OURS = "underlay"
_TYPES: dict[str, pa.DataType] = {"id": pa.int64(), "name": pa.string(), "value": pa.float64()}
SCHEMA = pa.schema(_TYPES)
_TURNS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one system took for all appends, and in its fastest round for what follows them."""

    case: str
    system: str
    wall_seconds: float
    cpu_seconds: float
    load: float


class Small(Protocol):
    """A table of a system. A second object opens what the first one made."""

    name: ClassVar[str]

    def __init__(self, folder: Path) -> None: ...

    def create(self) -> None:
        """A table without rows."""

    def append(self, rows: pa.Table) -> None:
        """Add rows and commit."""

    def versions(self) -> int:
        """How many versions that added rows the history lists: of each its number, time and operation."""

    def total(self) -> tuple[int, int]:
        """How many rows a scan of all columns brings, and the sum of their ids."""

    def close(self) -> None:
        """Wait for what goes on beside commits, and let another object open it."""


class Underlay:
    """Through the methods of a table."""

    name: ClassVar[str] = OURS

    def __init__(self, folder: Path) -> None:
        memory_cache().start_afresh()
        self._lake = connect(folder / "lake")

    def create(self) -> None:
        """See Small."""
        self._lake.create_table("bench.rows", SCHEMA)

    def append(self, rows: pa.Table) -> None:
        """See Small."""
        self._lake.table("bench.rows").append(rows)

    def versions(self) -> int:
        """See Small."""
        found = [(one.version, one.committed, one.operation) for one in self._lake.table("bench.rows").history()]
        return sum(operation == "append" for _, _, operation in found)

    def total(self) -> tuple[int, int]:
        """See Small."""
        return _total(self._lake.table("bench.rows").scan().to_arrow())

    def close(self) -> None:
        """See Small."""
        self._lake.close()


class Delta:
    """Delta Lake by delta-rs, which keeps its table open and up to date."""

    name: ClassVar[str] = "deltalake"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "rows"
        self._table = DeltaTable(str(self._path)) if self._path.exists() else None

    def create(self) -> None:
        """See Small."""
        self._table = DeltaTable.create(str(self._path), SCHEMA)

    @property
    def table(self) -> DeltaTable:
        """The table that was made or found."""
        assert self._table is not None
        return self._table

    def append(self, rows: pa.Table) -> None:
        """See Small."""
        write_deltalake(self.table, rows, mode="append")

    def versions(self) -> int:
        """See Small."""
        return sum(one["operation"] == "WRITE" for one in self.table.history())

    def total(self) -> tuple[int, int]:
        """See Small."""
        return _total(pa.table(QueryBuilder().register("rows", self.table).execute("select * from rows").read_all()))

    def close(self) -> None:
        """See Small."""


class DuckLake:
    """DuckLake, its catalog in a DuckDB file."""

    name: ClassVar[str] = "ducklake"

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._connection = duckdb.connect()
        self._connection.execute(f"load '{find_extension('ducklake')}'")
        self._connection.execute(f"attach 'ducklake:{folder}/rows.ducklake' as lake (data_path '{folder}/data')")

    def create(self) -> None:
        """See Small."""
        self._connection.register("empty", SCHEMA.empty_table())
        self._connection.execute("create table lake.rows as from empty")
        self._connection.execute("call lake.set_option('data_inlining_row_limit', 0)")

    def append(self, rows: pa.Table) -> None:
        """See Small."""
        self._connection.register("new_rows", rows)
        self._connection.execute("insert into lake.rows from new_rows")

    def versions(self) -> int:
        """See Small."""
        query = "select snapshot_id, snapshot_time, changes from ducklake_snapshots('lake')"
        return sum("inserted" in str(changes) for _, _, changes in self._connection.execute(query).fetchall())

    def total(self) -> tuple[int, int]:
        """See Small."""
        return _total(self._connection.execute("from lake.rows").to_arrow_table())

    def close(self) -> None:
        """See Small."""
        self._connection.close()


SYSTEMS: tuple[type[Small], ...] = (Underlay, Delta, DuckLake)
NAMES = [system.name for system in SYSTEMS]


def run(folder: Path, appends: int, rounds: int, names: Collection[str]) -> list[Cost]:
    """All costs. Raises AssertionError when a system has other rows, or lists another number of versions."""
    kinds = [kind for kind in SYSTEMS if kind.name in names]
    costs = _append(folder, appends, kinds)
    expected = appends * ROWS, sum(range(appends * ROWS))
    asked: dict[str, tuple[Callable[[Small], object], object]] = {
        "open and history": (lambda system: system.versions(), appends),
        "open and full scan": (lambda system: system.total(), expected),
    }
    for case, (ask, right) in asked.items():
        found: dict[str, list[Cost]] = {kind.name: [] for kind in kinds}
        for _ in range(rounds):
            for kind in kinds:
                answer, cost = _timed(case, kind.name, partial(_opened, kind, folder, ask))
                assert answer == right, f"{kind.name}, {case}: {answer} instead of {right}"
                found[kind.name].append(cost)
        costs += [min(one, key=lambda cost: cost.cpu_seconds) for one in found.values()]
    return costs


def _append(folder: Path, appends: int, kinds: Sequence[type[Small]]) -> list[Cost]:
    """Append turn by turn."""
    systems = [kind(folder / kind.name) for kind in kinds]
    spent: dict[str, list[Cost]] = {system.name: [] for system in systems}
    for system in systems:
        system.create()
    for first in range(0, appends, max(1, appends // _TURNS)):
        numbers = range(first, min(appends, first + max(1, appends // _TURNS)))
        for system in systems:
            _, cost = _timed("appends", system.name, partial(_add, system, numbers))
            spent[system.name].append(cost)
    for system in systems:
        _, cost = _timed("appends", system.name, system.close)
        spent[system.name].append(cost)
    return [
        Cost(
            case="appends",
            system=name,
            wall_seconds=sum(one.wall_seconds for one in found),
            cpu_seconds=sum(one.cpu_seconds for one in found),
            load=max(one.load for one in found),
        )
        for name, found in spent.items()
    ]


def _add(system: Small, numbers: Iterable[int]) -> None:
    for number in numbers:
        system.append(rows_of(number))


def rows_of(number: int) -> pa.Table:
    """The rows of one append."""
    ids = list(range(number * ROWS, (number + 1) * ROWS))
    return pa.table([ids, [f"name {one % 100}" for one in ids], [one / 7 for one in ids]], schema=SCHEMA)


def _opened(kind: type[Small], folder: Path, ask: Callable[[Small], object]) -> object:
    """What a new object answers."""
    system = kind(folder / kind.name)
    answer = ask(system)
    system.close()
    return answer


def _timed(case: str, system: str, work: Callable[[], T]) -> tuple[T, Cost]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    return found, Cost(
        case=case,
        system=system,
        wall_seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - cpu,
        load=os.getloadavg()[0],
    )


def _total(rows: pa.Table) -> tuple[int, int]:
    return rows.num_rows, pc.sum(rows["id"]).as_py()


def ratios(costs: Sequence[Cost]) -> dict[str, dict[str, dict[str, float]]]:
    """By case and peer: our wall and CPU seconds by the peer's."""
    ours = {cost.case: cost for cost in costs if cost.system == OURS}
    found: dict[str, dict[str, dict[str, float]]] = {case: {} for case in ours}
    for cost in costs:
        if cost.system != OURS:
            mine = ours[cost.case]
            found[cost.case][cost.system] = {
                "wall": mine.wall_seconds / cost.wall_seconds,
                "cpu": mine.cpu_seconds / cost.cpu_seconds,
            }
    return found


def main() -> None:
    """Print the costs, and write them where the others are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--appends", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="underlay-bench-") as folder:
        costs = run(Path(folder), chosen.appends, chosen.rounds, {OURS, *chosen.only})
    by_peer = ratios(costs)
    for cost in costs:
        ratio = by_peer[cost.case].get(cost.system)
        shown = "" if ratio is None else f"   ours by it: wall {ratio['wall']:.2f}, CPU {ratio['cpu']:.2f}"
        print(f"{cost.case:20}{cost.system:12}{cost.wall_seconds:9.2f} s{cost.cpu_seconds:9.2f} s CPU{shown}")
    found = {"appends": chosen.appends, "rows": ROWS, "costs": [asdict(cost) for cost in costs], "ratios": by_peer}
    print(save("small_commits", found))


if __name__ == "__main__":
    main()
