"""A registry that is down, locked, frozen or no registry at all: tables are read and written, and it is said once."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from threading import Thread

import pytest

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, ids, rows
from tests.registry.far import far_store, registry_of
from underlay.errors import InvalidRequest


def warnings_in(caplog) -> list[str]:
    return [record.message for record in caplog.records if record.name == "underlay.registry"]


def use(store, url: str, first: int) -> underlay.Lake:
    """Append three rows and read all, as a new process would."""
    lake = underlay.connect(store, registry=url)
    table = lake.table(NAME)
    for number in range(first, first + 3):
        table.append(rows([number]))
    assert ids(table) == list(range(first + 3))
    return lake


@pytest.fixture
def store():
    found = far_store()
    underlay.connect(found, registry="none").create_table(NAME, SCHEMA)
    return found


def test_a_locked_file_is_in_nobodys_way(store, tmp_path, caplog):
    path = tmp_path / "registry.sqlite"
    url = f"sqlite:///{path}"
    assert registry_of(use(store, url, 0)).wait(120)
    locking = sqlite3.connect(path, isolation_level=None)
    locking.execute("BEGIN EXCLUSIVE")
    lake = use(store, url, 3)
    assert not registry_of(lake).wait(2)
    locking.execute("ROLLBACK")
    locking.close()
    assert registry_of(lake).wait(240)
    assert registry_of(lake).differences() == []


def test_a_frozen_server_is_in_nobodys_way(store, postgres, caplog, monkeypatch):
    url = postgres.create_database()
    assert registry_of(use(store, url, 0)).wait(120)
    monkeypatch.setattr("underlay.registry.follow.ask.ANSWER_SECONDS", 0.5)
    postgres.freeze()
    try:
        use(store, url, 3)
    finally:
        postgres.thaw()
    assert any("no answer within" in message for message in warnings_in(caplog))
    assert registry_of(use(store, url, 6)).wait(240)


def check_said_once(lake: underlay.Lake, caplog: pytest.LogCaptureFixture) -> None:
    until = time.monotonic() + 120
    while not warnings_in(caplog) and time.monotonic() < until:
        time.sleep(0.05)
    assert not registry_of(lake).wait(2)
    assert len(warnings_in(caplog)) == 1


def test_no_commit_of_an_open_lake_waits_for_a_server_that_froze(store, postgres, monkeypatch):
    monkeypatch.setattr("underlay.registry.follow.ask.ANSWER_SECONDS", 3600)
    url = postgres.create_database()
    lake = use(store, url, 0)
    assert registry_of(lake).wait(120)

    def write(numbers) -> None:
        for number in numbers:
            lake.table(NAME).append(rows([number]))

    postgres.freeze()
    try:
        writer = Thread(target=write, args=[range(3, 20)], daemon=True)
        writer.start()
        writer.join(600)
        is_waiting = writer.is_alive()
    finally:
        postgres.thaw()
    assert not is_waiting
    write(range(20, 30))
    assert ids(lake.table(NAME)) == list(range(30))
    assert registry_of(lake).wait(240)
    assert registry_of(lake).differences() == []


def test_a_folder_in_the_place_of_the_file_is_said_once(store, tmp_path: Path, caplog):
    lake = use(store, f"sqlite:///{tmp_path}", 0)
    check_said_once(lake, caplog)


def test_a_server_that_is_not_there_is_said_once(store, caplog):
    lake = use(store, "postgresql://nobody@127.0.0.1:1/nothing", 0)
    check_said_once(lake, caplog)


def test_a_file_that_is_no_database_is_refused_with_what_to_do(store, tmp_path: Path, caplog):
    path = tmp_path / "registry.sqlite"
    path.write_bytes(b"this is no database" * 1000)
    lake = use(store, f"sqlite:///{path}", 0)
    assert not registry_of(lake).wait(120)
    assert ["underlay registry restore" in message for message in warnings_in(caplog)] == [True]
    registry_of(lake).restore()
    assert registry_of(lake).differences() == []
    assert registry_of(use(store, f"sqlite:///{path}", 3)).wait(120)


@pytest.mark.parametrize("url", ["mysql://host/name", "registry.sqlite", "sqlite://", "s3://bucket/registry"])
def test_what_names_no_registry_is_refused_at_once(store, url):
    with pytest.raises(InvalidRequest):
        underlay.connect(store, registry=url)


def test_a_lake_without_a_registry_has_none(store):
    assert underlay.connect(store, registry="none").registry is None


def test_a_local_lake_has_one_beside_it(tmp_path: Path, monkeypatch):
    monkeypatch.delenv("UNDERLAY_REGISTRY")
    lake = underlay.connect(tmp_path / "lake")
    lake.create_table(NAME, SCHEMA).append(rows([1]))
    assert registry_of(lake).wait(120)
    assert (tmp_path / "lake" / "_registry" / "registry.sqlite").is_file()
    assert registry_of(lake).differences() == []
    registry_of(lake).close()


def test_jobs_and_leases_are_mirrored(store, registry_url):
    lake = underlay.connect(store, registry=registry_url)
    table = lake.table(NAME)
    with table.job("nightly"), table.lease():
        assert registry_of(lake).wait(120)
        assert registry_of(lake).differences() == []
        with registry_of(lake)._database.read() as connection:
            assert connection.exec_driver_sql("select job, epoch from jobs").all() == [("nightly", 1)]
            assert len(connection.exec_driver_sql("select reader from leases").all()) == 1
    assert registry_of(lake).wait(120)
    assert registry_of(lake).differences() == []
    with registry_of(lake)._database.read() as connection:
        assert connection.exec_driver_sql("select count(*) from jobs").scalar() == 0
