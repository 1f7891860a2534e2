from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Event, Thread

import psycopg
import pytest
from sqlalchemy import Column, Integer, MetaData, Table, Text, insert, select, text, update

from tests.registry.servers import PASSWORD, PostgresServer
from tests.store.servers import free_ports
from underlay.errors import Inconsistent, InvalidRequest, Malformed, Unavailable, UnderlayError, Unsupported
from underlay.registry.database.database import Database, open_database
from underlay.registry.database.database_errors import is_retryable
from underlay.registry.database.engine import Timeouts
from underlay.registry.database.sqlite_file import SqliteFile
from underlay.runtime import fork

ROWS = Table("rows", MetaData(), Column("id", Integer, primary_key=True, autoincrement=False), Column("word", Text))


@pytest.fixture
def database(registry_url: str) -> Iterator[Database]:
    with closing(open_database(registry_url)) as database:
        create(database)
        yield database


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "registry.sqlite"


@pytest.fixture
def file(path: Path) -> Iterator[Database]:
    with closing(open_database(f"sqlite:///{path}")) as database:
        create(database)
        yield database


@pytest.fixture
def server(postgres: PostgresServer) -> Iterator[Database]:
    url = postgres.create_database()
    with closing(open_database(url)) as database:
        create(database)
        yield database
    postgres.drop_database(url)


def create(database: Database) -> None:
    with database.write() as connection:
        ROWS.create(connection)


def put(database: Database, number: int, word: str = "word") -> None:
    with database.write() as connection:
        connection.execute(insert(ROWS).values(id=number, word=word))


def numbers(database: Database) -> list[int]:
    with database.read() as connection:
        return list(connection.scalars(select(ROWS.c.id).order_by(ROWS.c.id)))


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


# SQLite


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def test_opening_makes_nothing_and_the_first_use_makes_the_folder(path: Path):
    database = open_database(f"sqlite:///{path}")
    assert not path.parent.exists()
    create(database)
    assert path.exists()


def test_a_relative_path_is_in_the_folder_that_was_current_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    database = open_database("sqlite:///a % ?#.sqlite")
    monkeypatch.chdir("/")
    create(database)
    assert (tmp_path / "a % ?#.sqlite").exists()
    assert not database.is_shared


def test_a_file_is_in_wal_mode_and_does_not_wait_for_the_disk(file: Database):
    with file.read() as connection:
        settings = [
            connection.scalar(text(f"PRAGMA {name}")) for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
        assert connection.scalar(text("PRAGMA busy_timeout")) == 250
    assert settings == ["wal", 1, 0]


def test_a_locked_file_is_given_up_and_may_be_tried_again(file: Database, path: Path):
    with locked(path), pytest.raises(Unavailable, match="locked") as caught:
        put(file, 1)
    assert is_retryable(caught.value)
    put(file, 2)
    assert numbers(file) == [2]


def test_a_writer_does_not_keep_readers_waiting(file: Database, path: Path):
    put(file, 1)
    with locked(path):
        assert numbers(file) == [1]


def test_a_folder_where_a_file_should_be_is_told(path: Path):
    path.mkdir(parents=True)
    with pytest.raises(Unavailable, match="unable to open"):
        create(open_database(f"sqlite:///{path}"))


def test_a_file_where_a_folder_should_be_is_told(path: Path):
    path.parent.write_bytes(b"")
    with pytest.raises(Unavailable, match="File exists"):
        create(open_database(f"sqlite:///{path}"))


@contextmanager
def unprivileged(folder: Path) -> Iterator[None]:
    """Be a user who may read but not write in the folder. Root may write everywhere."""
    folder.chmod(0o555)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o755)


def test_a_folder_that_cannot_be_written_is_told():
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(f"sqlite:///{folder}/registry.sqlite")
        with unprivileged(Path(folder)), pytest.raises(Unavailable, match="Permission denied") as caught:
            create(database)
    assert not is_retryable(caught.value)


def test_a_file_that_cannot_be_written_is_told():
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(f"sqlite:///{folder}/registry.sqlite")
        create(database)
        database.close()
        with unprivileged(Path(folder)), pytest.raises(Unavailable, match="may write there"):
            put(database, 1)
        put(database, 2)
        assert numbers(database) == [2]
        database.close()


def test_a_full_disk_is_told_and_undoes_the_transaction(file: Database):
    def fill() -> None:
        with file.write() as connection:
            connection.execute(text("PRAGMA max_page_count = 3"))
            connection.execute(insert(ROWS), [{"id": number, "word": "x" * 1000} for number in range(100)])

    with pytest.raises(Unavailable, match="full"):
        fill()
    assert numbers(file) == []


@pytest.mark.parametrize("content", [b"", b"S"])
def test_a_file_that_never_got_a_page_is_an_empty_database(path: Path, content: bytes):
    path.parent.mkdir()
    path.write_bytes(content)
    database = open_database(f"sqlite:///{path}")
    create(database)
    assert numbers(database) == []


def test_a_file_that_is_no_database_is_damaged(path: Path):
    path.parent.mkdir()
    path.write_bytes(b"not a database, but long enough to be one" * 100)
    with pytest.raises(Malformed, match="not a database"):
        create(open_database(f"sqlite:///{path}"))


@pytest.mark.parametrize("size_bytes", [50, 100, 1000, 4096, 4097, 8192, 40960])
def test_a_file_that_was_cut_short_is_damaged_and_can_be_made_again(file: Database, path: Path, size_bytes: int):
    with file.write() as connection:
        connection.execute(insert(ROWS), [{"id": number, "word": "x" * 500} for number in range(500)])
    file.close()
    assert path.stat().st_size > 100_000
    os.truncate(path, size_bytes)
    with pytest.raises(Malformed, match="underlay registry restore"):
        assert len(numbers(file)) == 500
    file.delete_file()
    assert not list(path.parent.iterdir())
    create(file)
    assert numbers(file) == []


def test_a_file_that_is_cut_short_while_it_is_open_is_damaged(file: Database, path: Path):
    with file.write() as connection:
        connection.execute(insert(ROWS), [{"id": number, "word": "x" * 500} for number in range(500)])
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    os.truncate(path, 8192)
    with closing(open_database(f"sqlite:///{path}")) as second, pytest.raises(Malformed):
        assert len(numbers(second)) == 500


@pytest.mark.parametrize("suffixes", [("",), ("", "-wal", "-shm"), ("", "-wal"), ("", "-shm")])
def test_a_file_deleted_while_open_is_made_anew_by_the_next_write(
    file: Database, path: Path, suffixes: tuple[str, ...]
):
    put(file, 1)
    for suffix in suffixes:
        path.with_name(path.name + suffix).unlink()
    create(file)
    put(file, 2)
    assert numbers(file) == [2]
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT id FROM rows").fetchall() == [(2,)]
        assert other.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_file_that_was_replaced_is_read_from_then_on(file: Database, path: Path, tmp_path: Path):
    put(file, 1)
    with closing(open_database(f"sqlite:///{tmp_path / 'other.sqlite'}")) as other:
        create(other)
        put(other, 2)
    file.delete_file()
    os.replace(tmp_path / "other.sqlite", path)
    assert numbers(file) == [2]


def test_the_log_of_a_deleted_file_does_not_reach_the_next(path: Path):
    old = open_database(f"sqlite:///{path}")
    create(old)
    with old.write() as connection:
        connection.execute(insert(ROWS), [{"id": number, "word": "old"} for number in range(500)])
    path.unlink()
    assert path.with_name("registry.sqlite-wal").stat().st_size > 0
    with closing(open_database(f"sqlite:///{path}")) as new:
        create(new)
        put(new, 7)
        assert numbers(new) == [7]
        old.close()
        put(new, 8)
    assert numbers(old) == [7, 8]
    old.close()


def test_a_transaction_on_a_deleted_file_does_not_reach_the_next(file: Database, path: Path):
    with file.write() as connection:
        connection.execute(insert(ROWS).values(id=1))
        path.unlink()
        with closing(open_database(f"sqlite:///{path}")) as new:
            create(new)
            put(new, 2)
    put(file, 3)
    assert numbers(file) == [2, 3]


# PostgreSQL


def test_a_server_killed_between_two_writes_and_started_again_is_not_noticed(
    server: Database, postgres: PostgresServer
):
    put(server, 1)
    postgres.kill()
    postgres.start()
    put(server, 2)
    assert numbers(server) == [1, 2]


def test_connections_dropped_between_two_transactions_are_not_noticed(server: Database, postgres: PostgresServer):
    with server.read(), server.read(), server.read():
        put(server, 1)
    postgres.drop_connections()
    assert numbers(server) == [1]
    put(server, 2)
    assert numbers(server) == [1, 2]


def test_a_connection_dropped_within_a_transaction_may_be_tried_again(server: Database, postgres: PostgresServer):
    def write() -> None:
        with server.write() as connection:
            connection.execute(insert(ROWS).values(id=1))
            postgres.drop_connections()
            connection.execute(insert(ROWS).values(id=2))

    with pytest.raises(Unavailable) as caught:
        write()
    assert is_retryable(caught.value)
    assert numbers(server) == []


def test_a_connection_dropped_before_the_commit_may_be_tried_again(server: Database, postgres: PostgresServer):
    def write() -> None:
        with server.write() as connection:
            connection.execute(insert(ROWS).values(id=1))
            postgres.drop_connections()

    with pytest.raises(Unavailable) as caught:
        write()
    assert is_retryable(caught.value)
    assert numbers(server) == []


def test_a_server_that_is_down_is_told_with_what_to_see_to(server: Database, postgres: PostgresServer):
    put(server, 1)
    postgres.kill()
    try:
        for _ in range(2):
            with pytest.raises(Unavailable, match="Check that the server is running") as caught:
                put(server, 2)
            assert caught.value.place == server.shown
    finally:
        postgres.start()
    assert numbers(server) == [1]


def test_opening_connects_to_nothing():
    (port,) = free_ports(1)
    database = open_database(f"postgres://ada@127.0.0.1:{port}/lake")
    assert database.is_shared
    assert database.shown == f"postgresql://ada@127.0.0.1:{port}/lake"
    with pytest.raises(Unavailable, match="refused"):
        numbers(database)


def test_a_server_is_reached_through_its_socket(postgres: PostgresServer, server: Database):
    name = server.shown.rpartition("/")[2]
    with closing(open_database(f"postgresql://postgres@/{name}?host={postgres.folder}&port={postgres.port}")) as local:
        put(local, 1)
    assert numbers(server) == [1]


@pytest.mark.parametrize(
    ("state", "kind", "may_pass"),
    [
        ("40001", Unavailable, True),
        ("40P01", Unavailable, True),
        ("55P03", Unavailable, True),
        ("57P01", Unavailable, True),
        ("53300", Unavailable, True),
        ("53100", Unavailable, False),
        ("57014", Unavailable, False),
        ("25006", Unavailable, False),
        ("42501", Unavailable, False),
        ("42P01", Inconsistent, False),
        ("23505", Inconsistent, False),
        ("XX001", Malformed, False),
        ("22003", Unsupported, False),
        ("42601", Unsupported, False),
    ],
)
def test_what_the_server_says_has_its_meaning(server: Database, state: str, kind: type[UnderlayError], may_pass: bool):
    with pytest.raises(kind, match="said so") as caught, server.write() as connection:
        connection.execute(text(f"DO $$ BEGIN RAISE SQLSTATE '{state}' USING MESSAGE = 'said so'; END $$"))
    assert type(caught.value) is kind
    assert is_retryable(caught.value) is may_pass


def test_a_locked_table_is_given_up_and_may_be_tried_again(server: Database, postgres: PostgresServer):
    with postgres.connect(server.shown.rpartition("/")[2]) as other, other.transaction():
        other.execute("LOCK TABLE rows")
        with pytest.raises(Unavailable, match="lock timeout") as caught:
            put(server, 1)
    assert is_retryable(caught.value)
    put(server, 2)


def test_a_slow_statement_is_given_up(server: Database):
    hurried = server.waiting(Timeouts(connect_s=120, lock_ms=10, statement_ms=20, pool_s=0.01))
    with closing(hurried), pytest.raises(Unavailable, match="statement timeout"), hurried.read() as connection:
        connection.execute(text("SELECT pg_sleep(60)"))


def test_a_pool_that_is_exhausted_is_given_up_and_may_be_tried_again(server: Database):
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(server.read())
        with pytest.raises(Unavailable, match="in use") as caught:
            put(server, 1)
        assert is_retryable(caught.value)
    put(server, 2)


def settings(database: Database) -> list[object]:
    with database.read() as connection:
        names = ("lock_timeout", "statement_timeout", "application_name", "transaction_read_only")
        return [connection.scalar(text(f"SHOW {name}")) for name in names]


def test_a_session_has_short_timeouts_and_a_patient_one_long_ones(server: Database):
    with closing(server.waiting(Timeouts(connect_s=2, lock_ms=250, statement_ms=2_000, pool_s=1.0))) as quick:
        assert settings(quick) == ["250ms", "2s", "underlay", "on"]
    with closing(server.patient()) as patient:
        assert settings(patient) == ["1min", "0", "underlay", "on"]


def test_parameters_of_the_url_go_to_the_server(postgres: PostgresServer, server: Database):
    name = server.shown.rpartition("/")[2]
    query = "application_name=mine&options=-c%20lock_timeout%3D7s"
    with closing(open_database(f"{postgres.url(name)}?{query}")) as database:
        lock, _, application, reads_only = settings(database)
        assert (lock, application, reads_only) == ("7s", "mine", "on")


def test_reading_writes_nothing_on_a_server(server: Database):
    with pytest.raises(Unavailable, match="read-only"), server.read() as connection:
        connection.execute(insert(ROWS).values(id=1))


def test_a_value_that_a_server_cannot_hold_is_unsupported(server: Database):
    with pytest.raises(Unsupported):
        put(server, 1, "nul \0")


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


def test_a_replaced_file_gets_an_index_of_its_own_beside_the_one_that_is_mapped(tmp_path):
    # With the old one's, SQLite would cut a file short that this process has mapped: a bus error for its readers.
    file = SqliteFile(path=tmp_path / "registry.sqlite", lock_ms=100)
    old = file.connect()
    old.execute("CREATE TABLE t (x)")
    index = tmp_path / "registry.sqlite-shm"
    mapped = index.stat().st_ino
    held = index.open("rb")  # so that its number is not given to the next one
    shutil.copy(file.path, tmp_path / "copy")
    (tmp_path / "copy").replace(file.path)
    new = file.connect()
    new.execute("CREATE TABLE u (x)")
    assert index.stat().st_ino != mapped
    assert old.execute("SELECT count(*) FROM t").fetchone() == (0,)
    for one in (old, new, held):
        one.close()
