from __future__ import annotations

import os
import pickle
import sqlite3
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import psycopg
import pytest
from sqlalchemy import insert, select, text, update

from tests.registry.database.rows import ROWS, create, locked, numbers, put
from tests.registry.servers import PASSWORD, PostgresServer
from tests.store.servers import free_ports
from underlay.errors import Inconsistent, InvalidRequest, Unavailable, Unsupported
from underlay.registry.database.database import Database, open_database
from underlay.registry.database.database_errors import is_retryable
from underlay.runtime import fork

# Every kind of database


def test_what_was_written_is_read(database: Database):
    put(database, 1)
    assert numbers(database) == [1]


def test_an_exception_undoes_the_whole_transaction(database: Database):
    def fail() -> None:
        with database.write() as connection:
            connection.execute(insert(ROWS).values(id=1))
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    assert numbers(database) == []


def test_a_statement_that_fails_undoes_the_whole_transaction(database: Database):
    def fail() -> None:
        with database.write() as connection:
            connection.execute(insert(ROWS).values(id=1))
            connection.execute(insert(ROWS).values(id=1))

    with pytest.raises(Inconsistent) as caught:
        fail()
    assert caught.value.place == database.shown
    assert numbers(database) == []


def test_statements_and_transactions_are_counted_and_nothing_else_is(database: Database):
    before = database.statement_count, database.transaction_count
    with database.write() as connection:
        connection.execute(insert(ROWS).values(id=1))
        connection.execute(insert(ROWS), [{"id": number} for number in range(2, 50)])
    assert len(numbers(database)) == 49
    assert (database.statement_count - before[0], database.transaction_count - before[1]) == (3, 2)


def test_a_read_sees_one_state(database: Database):
    put(database, 1)
    with database.read() as connection:
        assert len(connection.execute(select(ROWS)).all()) == 1
        put(database, 2)
        assert len(connection.execute(select(ROWS)).all()) == 1
    assert numbers(database) == [1, 2]


def test_threads_write_one_after_the_other(database: Database):
    put(database, 0, "0")
    with closing(database.patient()) as patient:

        def increment(_: int) -> None:
            with patient.write() as connection:
                found = connection.scalar(select(ROWS.c.word).where(ROWS.c.id == 0).with_for_update())
                connection.execute(update(ROWS).values(word=str(int(found or "") + 1)))

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(increment, range(40)))
        assert patient.statement_count == 80
    with database.read() as connection:
        assert connection.scalar(select(ROWS.c.word)) == "40"


def test_a_table_that_somebody_removed_is_told(database: Database):
    with database.write() as connection:
        ROWS.drop(connection)
    with pytest.raises(Inconsistent, match="underlay registry restore"):
        numbers(database)


def test_a_database_that_was_closed_connects_again(database: Database):
    database.close()
    put(database, 1)
    assert numbers(database) == [1]


def test_a_connection_that_is_in_use_is_closed_when_it_is_done(database: Database):
    with database.read() as connection:
        database.close()
        assert connection.execute(text("SELECT 1")).scalar() == 1
        held = connection.connection.driver_connection
    assert held is not None
    with pytest.raises((sqlite3.ProgrammingError, psycopg.OperationalError), match="closed"):
        held.execute("SELECT 1")


def test_a_statement_that_is_no_sql_is_unsupported(database: Database):
    with pytest.raises(Unsupported), database.write() as connection:
        connection.execute(text("SELEKT 1"))


FORK = """
import os, sys
from sqlalchemy import text
from underlay.registry.database.database import open_database

database = open_database(sys.argv[1])
def put(number):
    with database.write() as connection:
        connection.execute(text(f"INSERT INTO rows (id) VALUES ({number})"))
put(1)
child = os.fork()
if child == 0:
    assert database.statement_count == 0
    put(2)
    sys.exit(0)  # with everything that an interpreter does at its end
assert os.waitpid(child, 0)[1] == 0
put(3)
assert database.statement_count == 2
"""


def test_a_forked_child_and_its_parent_do_not_share_a_connection(registry_url: str):
    with closing(open_database(registry_url)) as database:
        create(database)
        subprocess.run([sys.executable, "-W", "error", "-c", FORK, registry_url], check=True, timeout=240)
        assert numbers(database) == [1, 2, 3]


def test_a_child_that_is_forked_in_the_midst_of_a_transaction_leaves_the_file_to_its_parent(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fork, "FORK_SECONDS", 0.0)
    with closing(open_database(f"sqlite:///{path}")) as database:
        create(database)
        begun, over = Event(), Event()

        def write() -> None:
            with database.write() as connection:
                connection.execute(text("INSERT INTO rows (id) VALUES (1)"))
                begun.set()
                over.wait()

        thread = Thread(target=write)
        thread.start()
        assert begun.wait(60)
        child = os.fork()
        if not child:
            code = 1
            try:
                for one in (database, open_database(f"sqlite:///{path}")):
                    with pytest.raises(InvalidRequest, match="forked while its parent was in a transaction"):
                        put(one, 2)
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        over.set()
        thread.join()
        put(database, 3)
        assert numbers(database) == [1, 3]


def test_no_connection_to_a_file_is_carried_over_a_fork(path: Path):
    with closing(open_database(f"sqlite:///{path}")) as database:
        create(database)
        child = os.fork()
        if not child:
            opened = [os.path.realpath(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd")]
            os._exit(sum(one.startswith(str(path)) for one in opened))
        assert os.waitpid(child, 0)[1] == 0
        put(database, 1)
        assert numbers(database) == [1]


def test_an_error_that_may_pass_says_so_after_it_was_sent_to_another_process(file: Database, path: Path):
    with locked(path), pytest.raises(Unavailable) as caught:
        put(file, 1)
    assert is_retryable(pickle.loads(pickle.dumps(caught.value)))
    assert not is_retryable(Unavailable("no"))


# URLs


@pytest.mark.parametrize(
    "url",
    [
        *("", "registry.sqlite", "/srv/registry.sqlite", "mysql://ada:hunter2@host/db", "sqlite:registry.sqlite"),
        *("sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:////srv/", "sqlite://registry.sqlite"),
        *("postgresql+psycopg2://ada:hunter2@host/db", "postgresql:ada:hunter2@host"),
        *(
            "postgresql://ada:hunter2@x@host/db",
            "postgresql://ada:x@hunter2/x@host/db",
            "postgresql://ada@host:hunter2/db",
        ),
        *("postgresql://ada:hunter2@host/db?nonsense=hunter2", "postgresql://ada@host/db?password=hunter2&no=1"),
    ],
)
def test_a_url_of_no_database_is_refused_and_not_repeated(url: str):
    with pytest.raises(InvalidRequest) as caught:
        open_database(url)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value)).replace(repr(url), "")
    assert "sqlite:///" in str(caught.value)


def everything_said(error: BaseException, database: Database) -> str:
    shown = [repr(error), str(error), repr(database), str(database), database.shown]
    return "".join([*shown, *traceback.format_exception(error), repr(vars(error))])


def test_a_password_is_never_shown(postgres: PostgresServer):
    (port,) = free_ports(1)
    wrong = "hunter2%40%2F"
    urls = [
        postgres.url("postgres", password=wrong),
        f"postgresql://postgres@127.0.0.1:{postgres.port}/postgres?password={wrong}",
        f"postgresql://ada:{wrong}@127.0.0.1:{port}/lake?sslpassword={wrong}",
        f"postgresql://ada:hunter2/?x@127.0.0.1:{port}/lake",
        postgres.url("absent"),
    ]
    for url in urls:
        database = open_database(url)
        with pytest.raises(Unavailable) as caught:
            numbers(database)
        said = everything_said(caught.value, database)
        assert "hunter2" not in said
        assert PASSWORD not in said
        assert "127.0.0.1" in said


def test_rows_are_not_part_of_what_is_said(database: Database):
    word = os.urandom(8).hex()
    put(database, 1, word)
    with pytest.raises(Inconsistent) as caught:
        put(database, 1, word)
    assert word not in everything_said(caught.value, database)


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(Unsupported, match=r"underlay\[postgres\]"):
        open_database("postgresql://ada@host/lake")


def test_only_a_file_can_be_deleted():
    with pytest.raises(InvalidRequest):
        open_database("postgresql://ada@host/lake").delete_file()
