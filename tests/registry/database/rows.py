"""A table of numbers in a registry's database, and what is asked of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Column, Integer, MetaData, Table, Text, insert, select, text

from underlay.registry.database.database import Database

ROWS = Table("rows", MetaData(), Column("id", Integer, primary_key=True, autoincrement=False), Column("word", Text))


def create(database: Database) -> None:
    with database.write() as connection:
        ROWS.create(connection)


def put(database: Database, number: int, word: str = "word") -> None:
    with database.write() as connection:
        connection.execute(insert(ROWS).values(id=number, word=word))


def numbers(database: Database) -> list[int]:
    with database.read() as connection:
        return list(connection.scalars(select(ROWS.c.id).order_by(ROWS.c.id)))


# SQLite


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def settings(database: Database) -> list[object]:
    with database.read() as connection:
        names = ("lock_timeout", "statement_timeout", "application_name", "transaction_read_only")
        return [connection.scalar(text(f"SHOW {name}")) for name in names]
