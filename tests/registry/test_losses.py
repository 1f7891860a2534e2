"""A registry that is deleted, cut short, brought back from a copy or swapped, at any moment of a workload with several
writers: no answer is wrong meanwhile, and afterwards it is as if nothing had happened."""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import TypeVar

import pytest
from psycopg import sql

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, ids, rows
from tests.gate import some
from tests.registry.far import far_store, registry_of
from underlay.errors import Malformed, RegistryRefused, Unavailable
from underlay.registry.registry import Registry

T = TypeVar("T")
Harm = Callable[[], None]


class Writers:
    """Two threads that append, each with a lake object of its own; what they were told is in the table is `told`."""

    def __init__(self, store, url: str, count: int) -> None:
        self.told: set[int] = set()
        self.errors: list[BaseException] = []
        self._goes_on = Event()
        self._threads = [Thread(target=self._run, args=(store, url, number, count)) for number in range(2)]
        for thread in self._threads:
            thread.start()

    def _run(self, store, url: str, number: int, count: int) -> None:
        try:
            for one in range(count):
                if one % 5 == 0:
                    lake = underlay.connect(store, registry=url)
                    table = lake.table(NAME)
                row = 1000 * (number + 1) + one
                table.append(rows([row]))
                self.told.add(row)
        except BaseException as error:
            self.errors.append(error)
            raise

    @property
    def are_done(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()
        assert not self.errors


class SqliteHarms:
    """What may happen to a file."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.path = folder / "registry.sqlite"
        self.url = f"sqlite:///{self.path}"
        self._copy = folder / "copy.sqlite"
        self._chance = chance
        self._other = folder / "other.sqlite"
        self._make_other()
        self.all: list[Harm] = [self.delete, self.cut, self.empty, self.copy, self.bring_back, self.swap, self.scribble]

    def _make_other(self) -> None:
        lake = underlay.connect(far_store(), registry=f"sqlite:///{self._other}")
        lake.create_table(NAME, SCHEMA).append(rows([5]))
        registry_of(lake).wait(120)
        registry_of(lake).close()

    def delete(self) -> None:
        self.path.unlink(missing_ok=True)

    def cut(self) -> None:
        with suppress(FileNotFoundError):
            data = self.path.read_bytes()
            self.path.write_bytes(data[: self._chance.randrange(len(data) + 1)])

    def empty(self) -> None:
        with suppress(FileNotFoundError):
            self.path.write_bytes(b"")

    def scribble(self) -> None:
        with suppress(FileNotFoundError):
            data = bytearray(self.path.read_bytes())
            for _ in range(min(len(data), 50)):
                data[self._chance.randrange(len(data))] ^= 0xFF
            self.path.write_bytes(data)

    def copy(self) -> None:
        with suppress(FileNotFoundError):
            shutil.copy(self.path, self._copy)

    def bring_back(self) -> None:
        if self._copy.exists():
            self._replace(self._copy)

    def swap(self) -> None:
        self._replace(self._other)

    def _replace(self, source: Path) -> None:
        new = self.path.with_suffix(".new")
        shutil.copy(source, new)
        new.replace(self.path)


class PostgresHarms:
    """What may happen to a database."""

    def __init__(self, server, chance: random.Random) -> None:
        self.url = server.create_database()
        self._server = server
        self._name = self.url.rpartition("/")[2]
        self._chance = chance
        self.all: list[Harm] = [self.drop_all, self.drop_one, self.forget, self.claim, self.disconnect]

    def _run(self, text: str) -> None:
        self._server.execute(sql.SQL("SET lock_timeout = '60s'; " + text), self._name)  # type: ignore[operator]

    def drop_all(self) -> None:
        self._run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")

    @staticmethod
    def empty(server, url: str) -> None:
        server.execute(sql.SQL("DROP SCHEMA public CASCADE; CREATE SCHEMA public"), url.rpartition("/")[2])

    def drop_one(self) -> None:
        self._run(f"DROP TABLE IF EXISTS {self._chance.choice(['versions', 'lake', 'file_metadata', 'segments'])}")

    def forget(self) -> None:
        """An older copy: as if nothing had been applied but the catalog."""
        self._tolerant(
            "DELETE FROM versions; DELETE FROM file_metadata; DELETE FROM segments; "
            "UPDATE revisions SET head = -1, head_id = NULL, row_count = 0, file_count = 0, data_bytes = 0"
        )

    def claim(self) -> None:
        """Another lake's, or ahead of the store."""
        self._tolerant("UPDATE lake SET commit_id = 'of another'; UPDATE revisions SET head = head + 3, head_id = 'x'")

    def disconnect(self) -> None:
        self._server.drop_connections()

    def _tolerant(self, text: str) -> None:
        from psycopg.errors import UndefinedTable

        with suppress(UndefinedTable):
            self._run(text)


def run_workload(store, url: str, harms: list[Harm], chance: random.Random) -> None:
    """Writers write, somebody does harm, readers read; then everything is whole again."""
    lake = underlay.connect(store, registry=url)
    lake.create_table(NAME, SCHEMA)
    writers = Writers(store, url, 15)
    newest = 0
    while not writers.are_done:
        chance.choice(harms)()
        told = set(writers.told)
        reader = underlay.connect(store, registry=url) if chance.random() < 0.7 else lake
        table = reader.table(NAME)
        found = set(ids(table))
        assert told <= found, "an acknowledged append is missing"
        assert table.version >= newest, "time went backward"
        newest = table.version
    writers.join()
    assert set(ids(underlay.connect(store, registry=url).table(NAME))) == writers.told
    after = underlay.connect(store, registry=url)
    assert set(ids(after.table(NAME))) == writers.told
    registry = registry_of(after)
    if not registry.wait(120) or not is_whole(registry):
        patiently(registry.restore)
    assert patiently(registry.differences) == []
    registry.close()


def is_whole(registry: Registry) -> bool:
    try:
        return not patiently(registry.differences)
    except Malformed:
        return False  # damaged where nothing that was applied since looked


def patiently(work: Callable[[], T]) -> T:
    """What comes of it, once the lakes that were made on the way leave the database alone."""
    until = time.monotonic() + 240
    while time.monotonic() < until:
        with suppress(Unavailable):
            return work()
        time.sleep(0.2)
    return work()


@pytest.mark.parametrize("seed", some(range(4), 2))
def test_a_sqlite_registry_may_be_lost_at_any_moment(tmp_path, seed, caplog):
    chance = random.Random(seed)
    harms = SqliteHarms(tmp_path, chance)
    run_workload(far_store(), harms.url, harms.all, chance)


@pytest.mark.parametrize("seed", some(range(3), 2))
def test_a_postgresql_registry_may_be_lost_at_any_moment(postgres, seed, caplog):
    chance = random.Random(seed)
    harms = PostgresHarms(postgres, chance)
    run_workload(far_store(), harms.url, harms.all, chance)


@pytest.fixture
def filled(registry_url):
    """A lake of five versions, and its registry's URL."""
    store = far_store()
    lake = underlay.connect(store, registry=registry_url)
    table = lake.create_table(NAME, SCHEMA)
    for number in range(4):
        table.append(rows([number]))
    assert registry_of(lake).wait(120)
    registry_of(lake).close()
    return store, registry_url


def test_a_registry_of_another_lake_is_refused_with_what_to_do(filled, caplog):
    _, url = filled
    other = far_store()
    lake = underlay.connect(other, registry=url)
    lake.create_table(NAME, SCHEMA).append(rows([7]))
    assert not registry_of(lake).wait(120)
    assert "underlay registry restore" in caplog.text
    assert ids(underlay.connect(other, registry=url).table(NAME)) == [7]
    with pytest.raises(RegistryRefused, match="restore"):
        registry_of(lake).follow()


def test_a_registry_ahead_of_its_store_is_refused_and_rebuilt(filled, caplog):
    store, url = filled
    keys = sorted(found.key for found in store.list_objects("") if found.key.endswith(".root"))
    store.delete(keys[-2:])
    lake = underlay.connect(store, registry=url)
    assert ids(lake.table(NAME)) == [0, 1], "the store is what counts"
    assert "which the store does not have" in caplog.text
    registry = registry_of(lake)
    assert (
        registry.status().problem is not None
        or registry.status().tables[0].applied > registry.status().tables[0].newest
    )
    registry.restore()
    assert registry.differences() == []
    assert ids(underlay.connect(store, registry=url).table(NAME)) == [0, 1]


def test_another_history_after_an_older_copy_is_recognised(filled, caplog):
    store, url = filled
    keys = sorted(found.key for found in store.list_objects("") if found.key.endswith(".root"))
    store.delete(keys[-2:])
    table = underlay.connect(store, registry="none").table(NAME)
    for number in range(10, 14):
        table.append(rows([number]))
    lake = underlay.connect(store, registry=url)
    assert ids(lake.table(NAME)) == [0, 1, 10, 11, 12, 13]
    assert "which the store does not have" in caplog.text
    with pytest.raises(RegistryRefused):
        registry_of(lake).follow()


def test_what_was_dropped_while_the_registry_was_away_is_followed_to_its_end(filled):
    store, url = filled
    other = underlay.connect(store, registry="none")
    table = other.table(NAME)
    table.append(rows([50]))
    other.drop_table(NAME)
    other.create_table(NAME, SCHEMA).append(rows([51]))
    registry = registry_of(underlay.connect(store, registry=url))
    assert registry.follow() == 4, "an append, the end of the table, and the two versions of the new one"
    assert registry.differences() == []


def test_a_process_whose_registry_is_emptied_fills_it_again(registry_url, tmp_path, postgres):
    store = far_store()
    lake = underlay.connect(store, registry=registry_url)
    table = lake.create_table(NAME, SCHEMA)
    table.append(rows([1]))
    assert registry_of(lake).wait(120)
    if registry_url.startswith("sqlite"):
        Path(registry_url.removeprefix("sqlite:///")).unlink()
    else:
        PostgresHarms.empty(postgres, registry_url)
    table.append(rows([2]))
    assert registry_of(lake).wait(120)
    assert registry_of(lake).differences() == []


def test_a_store_that_grew_on_another_line_is_noticed_by_status_and_follow(filled):
    store, url = filled
    keys = sorted(found.key for found in store.list_objects("") if found.key.endswith(".root"))
    store.delete(keys[-2:])
    registry = registry_of(underlay.connect(store, registry=url))
    assert registry.status().problem is not None, "ahead of the store"
    with pytest.raises(RegistryRefused):
        registry.follow()
    table = underlay.connect(store, registry="none").table(NAME)
    for number in range(10, 16):
        table.append(rows([number]))
    assert registry.status().problem is not None, "of another history"
    with pytest.raises(RegistryRefused):
        registry.follow()
    registry.restore()
    assert registry.status().problem is None


def test_a_file_swapped_under_a_living_process_is_not_written_to(tmp_path, caplog):
    urls = [f"sqlite:///{tmp_path / name}" for name in ("one.sqlite", "other.sqlite")]
    stores = [far_store(), far_store()]
    lakes = [underlay.connect(store, registry=url) for store, url in zip(stores, urls, strict=True)]
    for lake in lakes:
        lake.create_table(NAME, SCHEMA).append(rows([1]))
        assert registry_of(lake).wait(120)
    lakes[1].close()
    shutil.copy(tmp_path / "other.sqlite", tmp_path / "new.sqlite")
    for log in ("one.sqlite-wal", "one.sqlite-shm"):
        (tmp_path / log).unlink(missing_ok=True)
    (tmp_path / "new.sqlite").replace(tmp_path / "one.sqlite")
    lakes[0].table(NAME).append(rows([2]))
    assert not registry_of(lakes[0]).wait(120)
    assert "belongs to another lake" in caplog.text or "does not have" in caplog.text
    (tmp_path / "one.sqlite").replace(tmp_path / "other.sqlite")
    assert registry_of(underlay.connect(stores[1], registry=urls[1])).differences() == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lake SET number = 'abc'",
        "UPDATE lake SET number = x'00ff'",
        "UPDATE lake SET number = -5",
        "UPDATE lake SET commit_id = x'00'",
        "UPDATE revisions SET head = 'abc'",
        "UPDATE revisions SET folder = '../x'",
        "UPDATE revisions SET folder = ''",
        "UPDATE revisions SET head_id = 7",
        "UPDATE physical_tables SET active = 'nothing'",
        "DELETE FROM lake",
        "DELETE FROM revisions",
    ],
)
def test_whatever_is_written_into_a_registry_harms_no_reader(tmp_path, statement):
    path = tmp_path / "registry.sqlite"
    store, url = far_store(), f"sqlite:///{path}"
    lake = underlay.connect(store, registry=url)
    lake.create_table(NAME, SCHEMA).append(rows([1]))
    assert registry_of(lake).wait(120)
    registry_of(lake).close()
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    reader = underlay.connect(store, registry=url)
    assert [table.name for table in reader.tables()] == [NAME]
    table = underlay.connect(store, registry=url).table(NAME)
    table.append(rows([2]))
    assert ids(table) == [1, 2]
    registry_of(reader).wait(120)
    registry_of(reader).restore()
    assert registry_of(reader).differences() == []


def test_a_registry_that_was_refused_and_restored_follows_again(filled):
    _, url = filled
    other = underlay.connect(far_store(), registry=url)
    table = other.create_table(NAME, SCHEMA)
    assert not registry_of(other).wait(120)
    registry_of(other).restore()
    table.append(rows([1]))
    table.append(rows([2]))
    assert registry_of(other).wait(120)
    assert registry_of(other).differences() == []
