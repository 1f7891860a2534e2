"""Every text that the store holds is held by both kinds of database, and alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select, text

from tests.registry.databases import on_sqlite as on_sqlite
from tests.registry.databases import registry as registry
from tests.table.entries import LAYOUT, append, entry, new_table
from underlay.errors import Inconsistent, Malformed
from underlay.index.operation import Operation
from underlay.registry.database.column_types import MOST_KEY_BYTES, key_text, plain_text
from underlay.registry.database.database import Database
from underlay.registry.database.schema import FILE_METADATA, LAKE, REVISIONS, SOURCES
from underlay.registry.mirror.apply import mirrored
from underlay.registry.mirror.catch_up import catch_up_all
from underlay.registry.rebuild.difference import compare
from underlay.registry.rebuild.restore import restore_rows
from underlay.table.commit.commit import commit
from underlay.table.commit.transaction import Transaction
from underlay.table.time_travel import rollback

HARD = ["a\0b", "a\ufffdb", "x" * 4000, "x" * 3999 + "y", "\U0001f600" * 900, "it's %s %% \"\\"]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 900))
def test_a_key_is_short_without_nul_and_stored_as_it_is_kept(part: str, times: int) -> None:
    found = key_text(part * times)
    assert "\0" not in found
    assert len(found.encode()) <= MOST_KEY_BYTES
    assert key_text(found) == found == plain_text(found)


def test_keys_that_differ_are_stored_as_ones_that_differ() -> None:
    assert len({key_text(one) for one in HARD}) == len(HARD)


def test_any_token_and_location_is_followed_restored_and_rolled_back(registry: Database) -> None:
    _, revision = new_table()
    for number, hard in enumerate(HARD):
        transaction = Transaction(revision, revision.head(), Operation.APPEND)
        transaction.add_file(entry(f"./raw/{hard}{number}.parquet"), LAYOUT)
        transaction.set_token(hard)
        commit(transaction)
    catch_up_all(registry, revision.store)
    assert compare(registry, revision.store) == []
    rollback(revision, 2)
    append(revision, "./raw/plain.parquet")
    rollback(revision, 4)
    catch_up_all(registry, revision.store)
    assert compare(registry, revision.store) == []
    with registry.read() as connection:
        assert len(connection.execute(select(SOURCES.c.uri)).all()) == 4
        assert len(mirrored(connection, revision.id).live_files()) == 4
        assert len(connection.execute(select(FILE_METADATA.c.location)).all()) == len(HARD) + 3
    restore_rows(registry, revision.store)
    assert compare(registry, revision.store) == []


@pytest.mark.parametrize("value", ["'abc'", "1.5", "1e300", "x'00'"])
def test_a_number_that_is_none_is_told(on_sqlite: Database, value: str) -> None:
    _, revision = new_table()
    restore_rows(on_sqlite, revision.store)
    with on_sqlite.write() as connection:
        connection.execute(text(f"UPDATE revisions SET head = {value}"))
    with pytest.raises(Inconsistent, match="a number is a"), on_sqlite.read() as connection:
        connection.execute(select(REVISIONS.c.head)).all()


def test_a_text_that_is_none_is_told(on_sqlite: Database) -> None:
    _, revision = new_table()
    restore_rows(on_sqlite, revision.store)
    with on_sqlite.write() as connection:
        connection.execute(text("UPDATE lake SET url = x'00', commit_id = CAST(x'ff' AS TEXT)"))
    with pytest.raises(Inconsistent, match="a text is a bytes"), on_sqlite.read() as connection:
        connection.execute(select(LAKE.c.url)).all()
    with pytest.raises(Malformed, match="not UTF-8"), on_sqlite.read() as connection:
        connection.execute(select(LAKE.c.commit_id)).all()
