"""DuckDB as the judge: no single-row block is dropped whose row DuckDB itself matches, whatever casts it makes."""

from __future__ import annotations

import struct

import duckdb
import pytest

from tests.prune.columns import column, verdict
from tests.prune.oracles.duckdb_sql import duckdb_sql
from underlay.errors import BadPredicate
from underlay.prune import (
    Binary,
    Booleans,
    Decimals,
    Floats,
    Integers,
    Text,
    Times,
    TimesOfDay,
    Unit,
    Uuids,
)
from underlay.prune.parse.sql import parse_where

AT = 1_577_836_800
LONG = 12345678901234567890123456781234567890
NUMBERS = (
    "0", "-0.0", "1", "-1", "1.5", "0.1", "0.3", "1e-1", "0.125", "'1.5'", "'0.125'", "'0.1'", "2147483648", "16777217",
    "9007199254740992e0", "9007199254740993", "9007199254740992.5", "1.0000000000000000000000000000000000001",
    "4.99999999999999999999999999999999999999", "'nan'::double", "'inf'::double",
    "1234567890123456789012345678.12345678901",
)  # fmt: skip
TIMES = (
    "DATE '2020-01-01'", "TIMESTAMP '2020-01-01 12:00:00'", "'2020-01-01'", "'2020-01-01 12:00:00'",
    "TIMESTAMP '2020-01-01 00:00:00.123456'", "'2020-01-01 00:00:00.123456'", "'2020-01-01 00:00:00.123456789'",
    "TIMESTAMP '2020-01-01 00:00:00.123456789'", "TIMESTAMP_NS '2020-01-01 00:00:00.123456789'", "DATE '9999-12-31'",
)  # fmt: skip

NOON = 43_200_000_000
CLOCKS = (
    "TIME '12:00:00.123456'", "TIME '12:00'", "TIME '00:00:00'", "TIME '23:59:59.999999'", "'12:00:00.123456'",
    "'12:00:00.1234567'", "'12:00:00.123456789'", "'00:00'",
)  # fmt: skip


def integers(*values):
    return [(str(value), value) for value in values]


def singles(*values):
    return [(f"'{value}'", struct.unpack("<f", struct.pack("<f", value))[0]) for value in values]


def moments(function, scale, *offsets):
    return [(f"{function}({AT * scale + offset})", AT * scale + offset) for offset in offsets]


# SQL type, domain, rows as (SQL text, stored value), literals
CASES = {
    "int": ("INTEGER", Integers(32), integers(0, 1, 2, 5, 16777217), NUMBERS),
    "bigint": ("BIGINT", Integers(64), integers(0, 1, 2, 5, 2**53, 2**53 + 1), NUMBERS),
    "ubigint": ("UBIGINT", Integers(64, signed=False), integers(0, 1, 2, 2**53 + 1, 2**64 - 1), NUMBERS),
    "float": ("FLOAT", Floats(32), singles(0.0, -0.0, 0.1, 0.3, 1.5, 16777216.0), NUMBERS),
    "double": ("DOUBLE", Floats(64), [(f"'{v}'", v) for v in (0.0, -0.0, 0.1, 0.3, 1.5, 2.0**53)], NUMBERS),
    "decimal": (
        "DECIMAL(9,2)",
        Decimals(9, 2, 4, big_endian=False),
        [("0.12", 12), ("0.13", 13), ("0.10", 10), ("1.5", 150)],
        NUMBERS,
    ),
    "wide": (
        "DECIMAL(38,10)",
        Decimals(38, 10, None),
        [(f"{LONG // 10**10}.{LONG % 10**10}", LONG), ("1", 10**10)],
        NUMBERS,
    ),
    "date": ("DATE", Times(Unit.DAY, 32), [("'2020-01-01'", 18262), ("'2020-01-02'", 18263)], TIMES),
    "seconds": (
        "TIMESTAMP_S",
        Times(Unit.SECOND),
        [("'2020-01-01 00:00:00'", AT), ("'2020-01-01 00:00:01'", AT + 1)],
        TIMES,
    ),
    "millis": ("TIMESTAMP_MS", Times(Unit.MILLISECOND), moments("make_timestamp_ms", 10**3, 0, 123, 124), TIMES),
    "micros": ("TIMESTAMP", Times(Unit.MICROSECOND), moments("make_timestamp", 10**6, 0, 123456, 123457), TIMES),
    "nanos": (
        "TIMESTAMP_NS",
        Times(Unit.NANOSECOND),
        moments("make_timestamp_ns", 10**9, 0, 123456000, 123456789, 123457000),
        TIMES,
    ),
    "time": (
        "TIME",
        TimesOfDay(Unit.MICROSECOND),
        [("'00:00:00'", 0), ("'12:00:00.123456'", NOON + 123456), ("'12:00:00.123457'", NOON + 123457)],
        CLOCKS,
    ),
    "time_ns": (
        "TIME_NS",
        TimesOfDay(Unit.NANOSECOND),
        [("'12:00:00.123456'", (NOON + 123456) * 1000), ("'12:00:00.123456789'", (NOON + 123456) * 1000 + 789)],
        CLOCKS,
    ),
    "text": (
        "VARCHAR",
        Text(),
        [("'a'", "a"), ("'A'", "A"), ("'a '", "a "), ("'é'", "é")],
        ("'a'", "'A'", "'a '", "'é'", "'é'"),
    ),
    "blob": ("BLOB", Binary(), [("'a'", b"a"), ("'\\x80'", b"\x80")], ("'a'", "X'80'", "X''", "X'61'")),
    "uuid": (
        "UUID",
        Uuids(),
        [(f"'{'8' * 32}'", b"\x88" * 16), (f"'{'0' * 32}'", bytes(16))],
        (f"'{'8' * 32}'", f"UUID '{'1' * 32}'"),
    ),
    "boolean": ("BOOLEAN", Booleans(), [("true", True), ("false", False)], ("TRUE", "'false'")),
}


@pytest.fixture(scope="module")
def database():
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def duckdb_matches(database, type_, rows, where):
    """Whether DuckDB matches each row; None where it refuses the comparison."""
    values = ", ".join(f"({index}, CAST({row} AS {type_}))" for index, row in enumerate(rows))
    try:
        query = f"SELECT coalesce({duckdb_sql(where)}, false) FROM (VALUES {values}) AS rows(i, c) ORDER BY i"
        return [answer for (answer,) in database.execute(query).fetchall()]
    except duckdb.Error:
        return [None] * len(rows)


FORMS = (
    "c = {}", "c < {}", "c <= {}", "c > {}", "c >= {}", "c IN ({0}, {0})", "c BETWEEN {0} AND {0}", "c <> {}",
    "NOT c < {}", "NOT c > {}", "c NOT IN ({0}, {0})", "c NOT BETWEEN {0} AND {0}", "c IS DISTINCT FROM {}",
    "c IS NOT DISTINCT FROM {}", "NOT (c = {0} OR c > {0})", "c IN ({0}, 1e0)", "c NOT IN ({0}, 1e0)",
    "c BETWEEN {0} AND 1e300", "NOT c BETWEEN -1e300 AND {0}",
)  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_duckdb_matches_no_row_of_a_dropped_block_and_every_row_of_a_full_one(name, database):
    type_, domain, rows, literals = CASES[name]
    known = {"null_count": [0] * len(rows), "value_count": [1] * len(rows)}
    bounds = column(domain, *((value, value) for _, value in rows), may_hold_nan=False, **known)
    dropped = full = 0
    for where in (form.format(literal) for literal in literals for form in FORMS):
        try:
            found = verdict(where, bounds)
        except BadPredicate:
            continue
        answers = duckdb_matches(database, type_, [row for row, _ in rows], where)
        for (row, _), is_kept, is_full, answer in zip(rows, found.kept, found.must, answers, strict=True):
            assert is_kept or not answer, (row, where)
            assert not is_full or answer is not False, (row, where)
            dropped += not is_kept
            full += bool(is_full)
    assert min(dropped, full) > 0


def test_every_literal_here_is_one_that_we_read():
    for literal in (*NUMBERS, *TIMES, *CLOCKS):
        parse_where(f"c = {literal}")
