"""A registry is made new from the store whatever became of the old one, and nothing of somebody else is lost."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from psycopg import sql
from sqlalchemy import select, text

from tests.registry.servers import PostgresServer
from tests.registry.workload import Workload
from tests.table.entries import append, new_table
from underlay.errors import Inconsistent, Malformed, RegistryRefused, Unavailable, Unsupported
from underlay.registry.database.database import Database, open_database
from underlay.registry.database.database_errors import patiently, retryable
from underlay.registry.database.migration import check_shape, prepare
from underlay.registry.database.schema import LAKE
from underlay.registry.mirror.catch_up import follow
from underlay.registry.rebuild.difference import compare
from underlay.registry.rebuild.restore import restore
from underlay.store.store import Store

HARM = [
    "DELETE FROM registry_schema",
    "DROP TABLE registry_schema",
    "UPDATE registry_schema SET version_num = '0001'",
    "UPDATE registry_schema SET version_num = '0002'",
    "DROP TABLE file_metadata",
    "DROP TABLE lake; CREATE TABLE lake (one INTEGER)",
    "DROP TABLE lake; CREATE TABLE lake (one INTEGER, lake_id TEXT, url TEXT, number BIGINT, commit_id TEXT, "
    "committed_us BIGINT); INSERT INTO lake VALUES (1, 'x', 'y', 1, 'z', 1), (2, 'x', 'y', 1, 'z', 1)",
]


@pytest.fixture
def store() -> Store:
    workload = Workload(4)
    workload.run(10)
    return workload.store


def harm(database: Database, statements: str) -> None:
    with database.write() as connection:
        for statement in statements.split("; "):
            connection.execute(text(statement))


@pytest.mark.parametrize("statements", HARM)
def test_whatever_was_done_to_the_tables_is_mended(registry_url: str, store: Store, statements: str) -> None:
    database = open_database(registry_url)
    restore(database, store)
    harm(database, f"CREATE TABLE theirs (id INTEGER); {statements}")
    restore(database, store)
    check_shape(database)
    assert compare(database, store) == []
    assert follow(database, store) == 0
    with database.read() as connection:
        assert connection.execute(text("SELECT id FROM theirs")).all() == []
    database.close()


def test_a_view_in_the_place_of_a_table_is_mended_in_a_file(tmp_path: Path, store: Store) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'registry.sqlite'}")
    restore(database, store)
    harm(database, "DROP TABLE lake; CREATE VIEW lake AS SELECT 1")
    restore(database, store)
    assert compare(database, store) == []


def test_a_file_whose_schema_is_no_text_is_damaged_and_replaced(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "registry.sqlite"
    database = open_database(f"sqlite:///{path}")
    restore(database, store)
    database.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"CREATE TABLE file_metadata", b"CREATE\xc0\xc1ABLE file_metadata"))
    with pytest.raises(Malformed), database.read() as reading:
        reading.execute(select(LAKE)).all()
    restore(database, store)
    assert compare(database, store) == []


@pytest.mark.parametrize("statement", ["CREATE TABLE jobs (id INTEGER)", "CREATE TABLE lake (id INTEGER)"])
def test_tables_of_somebody_else_are_not_replaced(registry_url: str, store: Store, statement: str) -> None:
    database = open_database(registry_url)
    harm(database, statement)
    with pytest.raises(RegistryRefused, match="not a registry's"):
        restore(database, store)
    with database.read() as connection:
        assert connection.execute(text(f"SELECT id FROM {statement.split()[2]}")).all() == []
    database.close()


def test_a_registry_of_a_newer_release_is_left_alone(registry_url: str, store: Store) -> None:
    database = open_database(registry_url)
    restore(database, store)
    harm(database, "UPDATE registry_schema SET version_num = '9999'")
    with pytest.raises(Unsupported, match="newer release"):
        restore(database, store)
    assert compare(database, store) == []
    database.close()


def test_two_rows_where_there_can_be_one_are_told(registry_url: str, store: Store) -> None:
    database = open_database(registry_url)
    restore(database, store)
    harm(database, HARM[-1])
    with pytest.raises(Inconsistent, match="Multiple rows") as caught:
        follow(database, store)
    assert caught.value.place == database.shown
    database.close()


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "EUC_JP"])
def test_a_server_may_have_any_encoding(postgres: PostgresServer, encoding: str) -> None:
    base = f"encoded_{encoding.lower()}"
    made = "CREATE DATABASE {} ENCODING {} LOCALE 'C' TEMPLATE template0"
    postgres.execute(sql.SQL(made).format(sql.Identifier(base), sql.Literal(encoding)))
    database = open_database(postgres.url(base))
    _, revision = new_table()
    append(revision, "./raw/schön.parquet" if encoding != "EUC_JP" else "./raw/日本.parquet")
    restore(database, revision.store)
    assert compare(database, revision.store) == []
    append(revision, "./raw/\U0001f600.parquet")
    if encoding == "SQL_ASCII":
        assert follow(database, revision.store) == 1
    else:
        with pytest.raises(Unsupported, match="encoding is UTF8"):
            follow(database, revision.store)
    database.close()
    postgres.drop_database(postgres.url(base))


def test_restores_and_followers_at_once_all_succeed(registry_url: str) -> None:
    workload = Workload(1)
    workload.run(20)
    prepare(open_database(registry_url))
    works = [restore, restore, follow, follow]
    together = Barrier(len(works))

    def run(number: int) -> None:
        database = open_database(registry_url).patient()
        together.wait()
        for _ in range(2):
            works[number](database, workload.store)
        database.close()

    with ThreadPoolExecutor(len(works)) as threads:
        running = [threads.submit(run, number) for number in range(len(works))]
        workload.run(10)
        for one in running:
            one.result()
    database = open_database(registry_url)
    follow(database, workload.store)
    assert compare(database, workload.store) == []
    database.close()


def test_what_met_another_transaction_is_done_again_and_nothing_else_is() -> None:
    tries: list[int] = []

    def meet_twice() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise retryable(Unavailable("deadlock detected"))
        return "done"

    assert patiently(meet_twice) == "done"

    def fail() -> None:
        tries.append(1)
        raise Unavailable("no space")

    with pytest.raises(Unavailable, match="no space"):
        patiently(fail)
    assert len(tries) == 4
