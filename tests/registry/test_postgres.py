"""Writers and a PostgreSQL server that is killed, cut off or refuses transactions: nobody notices but the registry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from psycopg import sql

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, ids, rows
from tests.end_to_end.writer import Writers
from tests.gate import sized
from tests.registry.far import far_store, registry_of
from tests.table.checker import Checker
from underlay.store.local import LocalStore

PROCESSES, APPENDS = sized((8, 10), (32, 20))


@pytest.fixture
def own_postgres(postgres) -> Iterator[object]:
    """The server, running again after the test."""
    yield postgres
    postgres.start()


class Appenders:
    """Threads that append a row at a time, each with a lake object of its own."""

    def __init__(self, store, url: str, threads: int, count: int) -> None:
        self.told: set[int] = set()
        self.errors: list[Exception] = []
        self._threads = [Thread(target=self._run, args=(store, url, number, count)) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def _run(self, store, url: str, number: int, count: int) -> None:
        table = underlay.connect(store, registry=url).table(NAME)
        for place in range(count):
            row = 1_000 * number + place
            try:
                table.append(rows([row]))
            except Exception as error:  # noqa: BLE001  # whatever a writer would see
                self.errors.append(error)
                return
            self.told.add(row)

    def are_writing(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


def check_all_there(store, url: str, told: set[int], count: int) -> None:
    assert len(told) == count
    lake = underlay.connect(store, registry=url)
    assert ids(lake.table(NAME)) == sorted(told)
    registry = registry_of(lake)
    assert registry.wait(240)
    assert registry.differences() == []
    registry.close()


def test_a_server_that_is_killed_again_and_again_fails_no_commit(own_postgres):
    store, url = far_store(), own_postgres.create_database()
    underlay.connect(store, registry=url).create_table(NAME, SCHEMA)
    appenders = Appenders(store, url, 3, 40)
    while appenders.are_writing():
        own_postgres.kill()
        own_postgres.start()
        own_postgres.drop_connections()
    appenders.join()
    assert not appenders.errors
    check_all_there(store, url, appenders.told, 120)


def test_a_server_that_never_comes_back_fails_no_commit_and_is_mentioned_once(own_postgres, caplog):
    store, url = far_store(), own_postgres.create_database()
    lake = underlay.connect(store, registry=url)
    table = lake.create_table(NAME, SCHEMA)
    assert registry_of(lake).wait(120)
    own_postgres.kill()
    for number in range(20):
        table.append(rows([number]))
    assert ids(underlay.connect(store, registry=url).table(NAME)) == list(range(20))
    assert not registry_of(lake).wait(3)
    said = [record for record in caplog.records if "registry" in record.message]
    assert said
    own_postgres.start()
    check_all_there(store, url, set(range(20)), 20)


def test_transactions_that_cannot_be_serialised_are_done_again(postgres):
    store, url = far_store(), postgres.create_database()
    lake = underlay.connect(store, registry=url)
    lake.create_table(NAME, SCHEMA)
    assert registry_of(lake).wait(120)
    postgres.execute(
        sql.SQL(
            """
            CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF random() < 0.4 THEN
                    RAISE EXCEPTION 'injected' USING ERRCODE = '40001';
                END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER fail BEFORE INSERT ON versions FOR EACH ROW EXECUTE FUNCTION fail();
            """
        ),
        url.rpartition("/")[2],
    )
    appenders = Appenders(store, url, 2, 20)
    appenders.join()
    assert not appenders.errors
    postgres.execute(sql.SQL("DROP TRIGGER fail ON versions"), url.rpartition("/")[2])
    check_all_there(store, url, appenders.told, 40)


def test_many_processes_append_at_once(tmp_path: Path, postgres):
    url = postgres.create_database()
    store = LocalStore(tmp_path / "lake")
    underlay.connect(store).create_table(NAME, SCHEMA, key=["id"])
    with Writers(store.root, url) as writers:
        for number in range(PROCESSES):
            writers.write(1_000 * number, APPENDS)
        told, failed = writers.rest()
    assert failed == 0
    expected = [1_000 * number + place for number in range(PROCESSES) for place in range(APPENDS)]
    assert sorted(told) == expected
    assert sorted(told.values()) == list(range(1, len(expected) + 1)), "every append is a version of its own"
    check_all_there(store, url, set(expected), PROCESSES * APPENDS)
    Checker(store).check()
