"""QuestDB's own metadata in a Parquet footer: what is read from it, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.genuine import fixtures
from underlay.errors import Malformed, SchemaMismatch, Unsupported
from underlay.parquet.footer.footer import KeyValue
from underlay.parquet.footer.tail import load_footer
from underlay.pm.convert.questdb_key import read_questdb_key

COLUMN = {"column_type": 5}


def key_values(**fields: Any) -> list[KeyValue]:
    return [KeyValue(b"questdb", json.dumps({"version": 1, "schema": [COLUMN]} | fields).encode())]


def test_all_fields_are_read_and_unknown_ones_ignored():
    column = {"column_type": 12, "column_top": 7, "format": 1, "ascii": True, "id": 3, "later": {}}
    key = read_questdb_key(key_values(schema=[column], unused_bytes=9, squash_tracker=-5, seq_txn=8, later=[1]), 1)
    assert key is not None
    (read,) = key.schema
    assert (read.column_type, read.format, read.ascii, read.id) == (12, 1, True, 3)
    assert (key.squash_tracker, key.seq_txn) == (-5, 8)


def test_what_is_missing_has_its_default():
    key = read_questdb_key(key_values(), 1)
    assert key is not None
    (read,) = key.schema
    assert (read.format, read.ascii, read.id) == (None, None, None)
    assert (key.squash_tracker, key.seq_txn, key.designated()) == (-1, -1, None)


@pytest.mark.parametrize("pairs", [[], [KeyValue(b"other", b"{}")], [KeyValue(b"questdb", None)]])
def test_a_file_without_the_key_has_none(pairs: list[KeyValue]):
    assert read_questdb_key(pairs, 1) is None


@pytest.mark.parametrize(("code", "designated"), [(0x20008, (1, False)), (0x60008, (1, False)), (0x120008, (1, True))])
def test_the_designated_timestamp_is_the_first_that_is_marked(code: int, designated: tuple[int, bool]):
    schema = [{"column_type": 8}, {"column_type": code}, {"column_type": 0x20008}]
    key = read_questdb_key(key_values(schema=schema), 3)
    assert key is not None
    assert key.designated() == designated


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"", Malformed),
        (b"{", Malformed),
        (b"[]", Malformed),
        (b"\xff", Malformed),
        (b'{"version": 1}', Malformed),
        (b'{"schema": []}', Malformed),
        (b'{"version": 1, "schema": [{}]}', Malformed),
        (b'{"version": 1, "schema": [{"column_type": "5"}]}', Malformed),
        (b'{"version": 1, "schema": [{"column_type": 2147483648}]}', Malformed),
        (b'{"version": 1, "schema": [{"column_type": 0}]}', Malformed),
        (b'{"version": 1, "schema": [{"column_type": -1}]}', Malformed),
        (b'{"version": 1, "schema": [{"column_type": 99}]}', Malformed),
        (b'{"version": 1, "schema": [{"column_type": 5, "format": 2}]}', Malformed),
        (b'{"version": 1, "schema": [{"column_type": 5}], "seq_txn": 9223372036854775808}', Malformed),
        (b'{"version": 2, "schema": [{"column_type": 5}]}', Unsupported),
        (b'{"version": 2, "columns": "of another shape"}', Unsupported),
        (b'{"version": 1, "schema": []}', SchemaMismatch),
        (b'{"version": 1, "schema": [{"column_type": 5}, {"column_type": 5}]}', SchemaMismatch),
    ],
)
def test_what_questdb_does_not_write_is_refused_by_name(value: bytes, error: type[Exception]):
    with pytest.raises(error, match='key "questdb"'):
        read_questdb_key([KeyValue(b"questdb", value)], 1)


@pytest.mark.parametrize("version", ["9.4.3", "10.0.0"])
def test_a_genuine_key_describes_every_column(version: str):
    footer = load_footer(fixtures() / "questdb" / version / "ids" / "data.parquet").footer
    key = read_questdb_key(footer.key_values, footer.column_count)
    assert key is not None
    assert len(key.schema) == footer.column_count
    assert key.designated() is not None
    assert any(column.id is not None for column in key.schema) == (version == "10.0.0")
