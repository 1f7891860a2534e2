"""Exports that die, race and cost little."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

import underlay as ul
from tests.gate import IS_ALL, some
from tests.interop.engines import ask_delta, ask_duckdb
from underlay import Lake
from underlay.api.table import Table
from underlay.errors import UnderlayError
from underlay.store import open_store
from underlay.store.testing import CountingStore, Crashed, Fault, FaultyStore, StoreMethod, at
from underlay.store.testing.wrapper import Request, StoreWrapper

T = TypeVar("T")
QUERY = "select count(*), sum(n) from t"
WRITES = (StoreMethod.CREATE, StoreMethod.PUT)


def make(lake: Lake) -> Table:
    """A table whose newest version differs from the exported one by an append and a deletion."""
    table = lake.create_table("d.t", "n int")
    table.append([{"n": n} for n in range(10)])
    table.delete("n = 3")
    table.export()
    table.append([{"n": n} for n in range(10, 20)])
    table.delete("n = 4")
    return table


ASK = {"iceberg": ask_duckdb, "delta": ask_delta}
FAULTS = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_RESPONSE, Fault.OWN_REFUSAL)


def url_of(path: Path, kind: str) -> str:
    return f"file://{path}/_iceberg/d/t" if kind == "iceberg" else f"{path}/d/t"


@pytest.mark.parametrize(("kind", "fault"), some([(kind, fault) for kind in ASK for fault in FAULTS], 3))
def test_readers_see_one_version_or_the_next_whatever_happens_to_the_exporter(tmp_path: Path, kind: str, fault: Fault):
    path = tmp_path / "lake"
    with ul.connect(path, registry="none") as lake:
        table = make(lake)
        table.export(kind)
        table.append([{"n": 100}])
    old, new = [(18, sum(range(20)) - 7)], [(19, sum(range(20)) - 7 + 100)]
    url = url_of(path, kind)
    saved = {one: one.read_bytes() for one in path.rglob("*") if one.is_file()}
    for number in range(FAULTS.index(fault), 60, 1 if IS_ALL else 4):
        store = FaultyStore(open_store(path), at(number, fault))
        with suppress(Crashed, UnderlayError), ul.connect(store, registry="none") as dying:
            dying.table("d.t").export(kind)
        assert ASK[kind](url, QUERY) in (old, new), number
        with ul.connect(path, registry="none") as lake:
            lake.table("d.t").export(kind)
        assert ASK[kind](url, QUERY) == new, number
        if store.fault_count == 0:
            return
        for one in path.rglob("*"):
            if one.is_file() and one not in saved:
                one.unlink()
        for one, data in saved.items():
            one.write_bytes(data)
    pytest.fail("the export makes more requests than were tried")


class Racing(StoreWrapper):
    """Lets another exporter finish just before an export is published."""

    def __init__(self, inner: ul.store.Store, act: Callable[[], object]) -> None:  # type: ignore[name-defined]
        super().__init__(inner)
        self.act: Callable[[], object] | None = act

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        return call()

    def create(self, key: str, data: bytes) -> object:  # type: ignore[override]
        if self.act is not None and ("metadata.json" in key or "_delta_log" in key):
            act, self.act = self.act, None
            act()
        return self.inner.create(key, data)


@pytest.mark.parametrize("kind", ASK)
def test_of_two_exporters_that_race_the_newer_version_stays(tmp_path: Path, kind: str):
    path = tmp_path / "lake"
    with ul.connect(path, registry="none") as other:
        make(other)

        def overtake() -> None:
            table = other.table("d.t")
            table.append([{"n": 1000}])
            table.export(kind)

        with ul.connect(Racing(open_store(path), overtake), registry="none") as lake:
            lake.table("d.t").export(kind)
        found = ASK[kind](url_of(path, kind), QUERY)
        assert found == [(19, sum(range(20)) - 7 + 1000)]


@pytest.mark.parametrize(("kind", "most"), [("iceberg", 4), ("delta", 1)])
def test_an_append_costs_as_many_puts_however_many_files_there_are(tmp_path: Path, kind: str, most: int):
    costs = []
    for count in (1, 60):
        store = CountingStore(open_store(tmp_path / f"lake {count}"))
        with ul.connect(store, registry="none") as lake:
            table = lake.create_table("d.t", "n int, p int", partition_by=["p"])
            for begin in range(0, count, 100):
                some = range(begin, min(begin + 100, count))
                table.append(pa.table({"n": some, "p": some}))
            table.append([{"n": 0, "p": 0}])
            table.export(kind)
            table.append([{"n": 1, "p": 1}])
            store.reset()
            exported = table.export(kind)
            assert exported.puts == store.request_count(*WRITES)
            costs.append((exported.puts, store.request_count(StoreMethod.GET, StoreMethod.HEAD)))
    assert costs[0][0] == costs[1][0] <= most
    assert costs[1][1] <= costs[0][1] + 2


def steps(table: Table, chance: random.Random) -> Iterator[str]:
    """Random changes of a table."""
    next_id = 0
    for _ in range(60 if IS_ALL else 12):
        verb = chance.choice(["append", "append", "delete", "upsert", "update", "compact", "evolve", "rollback"])
        match verb:
            case "append":
                table.append([{"n": n, "s": f"text {n}"} for n in range(next_id, next_id + 5)])
                next_id += 5
            case "delete":
                table.delete(f"n = {chance.randrange(next_id + 1)}")
            case "upsert":
                table.upsert([{"n": chance.randrange(next_id + 1), "s": "upserted"}])
            case "update":
                table.update({"s": "'updated'"}, where=f"n = {chance.randrange(next_id + 1)}")
            case "compact":
                table.compact()
            case "evolve":
                with table.evolve() as change:
                    change.add_column(f"c{table.version}", "int")
            case "rollback" if table.version > 3:
                table.rollback(version=table.version - 2)
        yield verb


@pytest.mark.parametrize("seed", range(3 if IS_ALL else 1))
def test_after_every_step_of_change_the_export_has_the_rows_of_the_table(tmp_path: Path, seed: int):
    with ul.connect(tmp_path / "lake", registry="none") as lake:
        table = lake.create_table("d.t", "n int, s string", key=["n"])
        for verb in steps(table, random.Random(seed)):
            wanted = sorted((row["n"], row["s"]) for row in table.to_arrow().select(["n", "s"]).to_pylist())
            found = ask_duckdb(table.export().metadata_url or "", "select n, s from t")
            assert sorted(found) == wanted, verb
            if not table.export("delta", dry_run=True).refused:
                table.export("delta")
                assert sorted(ask_delta(str(tmp_path / "lake/d/t"), "select n, s from t")) == wanted, verb
