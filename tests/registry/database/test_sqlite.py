"""A registry in a file: where it lies, who may lock, delete or damage it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import insert, text

from tests.registry.database.rows import ROWS, create, locked, numbers, put
from tests.registry.unprivileged import unprivileged
from underlay.errors import Malformed, Unavailable
from underlay.registry.database.database import Database, open_database
from underlay.registry.database.database_errors import is_retryable
from underlay.registry.database.sqlite_file import SqliteFile


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
