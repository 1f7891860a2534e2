from __future__ import annotations

import io
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.ingest.source_reading import reading, take
from underlay.errors import SchemaMismatch, SourceUnreadable
from underlay.ingest.rows.reading import Dialect, RowRules
from underlay.ingest.source.file_format import FileFormat
from underlay.ingest.work.infer_schema import infer_one
from underlay.schema.table_schema import TableSchema

ID = pa.field("id", pa.int8(), nullable=False)
NESTED = pa.struct([pa.field("x", pa.int16(), nullable=False), ("days", pa.list_(pa.date32()))])

GOOD = {
    b'{"id": 1}': {"id": 1, "fare": None},
    b' {"fare": 2, "id": 1}\r': {"id": 1, "fare": 2.0},
    b'{"id":-128,"fare":-0.5}': {"id": -128, "fare": -0.5},
}
BAD = [
    b"null", b"[]", b"5", b"{", b'{"id":1} {"id":2}', b'{"id":1},', b'{"id":128}', b'{"id":1.0}', b'{"id":"1"}',
    b'{"id":null}', b'{"fare":1}', b'{"id":1,"fare":1e999}', b'{"id":1,"fare":NaN}', b'{"id":1,"fare":"1"}',
    b"\x00", b'{"id":1,"fare":\xff}',
]  # fmt: skip


@given(st.lists(st.sampled_from([*GOOD, *BAD, b"", b" "]), max_size=12), st.sampled_from([16, 50, 1 << 20]))
def test_good_lines_are_rows_and_bad_ones_are_rejected_whatever_the_block_size(lines: list[bytes], block_bytes: int):
    first = next((line for line in lines if line.strip()), b"")
    assume(first not in (b"[]", b"{"))  # that is refused as a whole, see below
    how = reading(ID, ("fare", pa.float32()), block_bytes=block_bytes)
    rows, rejected = take(b"\n".join(lines), how, FileFormat.JSON)
    assert rows == [GOOD[line] for line in lines if line in GOOD]
    bad = [(at, line) for at, line in enumerate(lines, start=1) if line in BAD]
    assert [(one.line, one.raw) for one in rejected] == bad
    for one in rejected:
        assert one.offset == sum(len(line) + 1 for line in lines[: one.line - 1])


def test_every_type_of_a_table_has_a_form_in_json():
    fields = [
        ("blob", pa.binary()), ("at", pa.timestamp("us", "UTC")), ("n", pa.decimal128(20, 2)), ("big", pa.uint64()),
        ("s", NESTED), ("m", pa.map_(pa.int32(), pa.string())), ("l", pa.list_(NESTED)),
    ]  # fmt: skip
    good = (
        b'{"blob":"00ff","at":"2024-01-01T00:00:00Z","n":123456789012345678.25,"big":18446744073709551615,'
        b'"s":{"x":1,"days":["2024-02-29",null]},"m":{"7":"seven","8":null},"l":[{"x":2},null]}'
    )
    bad = {
        "blob": b'"xyz"', "at": b'"2024-01-01T00:00:00"', "n": b"1.234", "big": b"18446744073709551616",
        "s": b'{"x":null}', "m": b'{"seven":"7"}', "l": b'[{"x":1,"days":["2024-02-30"]}]',
    }  # fmt: skip
    lines = [good, b'{"n":"NaN"}', *(b'{"%b":%b}' % (name.encode(), text) for name, text in bad.items()), b"{}"]
    rows, rejected = take(b"\n".join(lines), reading(*fields), FileFormat.JSON)
    first, last = rows
    assert first["blob"] == b"\x00\xff"
    assert str(first["at"]) == "2024-01-01 00:00:00+00:00"
    assert (first["n"], first["big"]) == (Decimal("123456789012345678.25"), 2**64 - 1)
    assert first["s"] == {"x": 1, "days": [date(2024, 2, 29), None]}
    assert (first["m"], first["l"]) == ([(7, "seven"), (8, None)], [{"x": 2, "days": None}, None])
    assert set(last.values()) == {None}
    places = [one.reason.removeprefix("column ").partition(":")[0].partition(".")[0] for one in rejected]
    assert places == ["n", *bad]


def test_a_key_that_the_table_does_not_have_is_an_error_with_its_line_or_ignored():
    fields = (ID, ("s", NESTED))
    for line, name in ((b'{"id":2,"tip":1}', "tip"), (b'{"id":2,"s":{"x":1,"tip":1}}', "s.tip")):
        data = b'{"id":1}\n' + line + b"\n"
        with pytest.raises(SchemaMismatch, match=f'trips, line 2: the table has no column "?{name}"?'):
            take(data, reading(*fields), FileFormat.JSON)
        rows, _ = take(data, reading(*fields, new_columns="ignore"), FileFormat.JSON)
        assert [row["id"] for row in rows] == [1, 2]


def with_default(how: RowRules, default: str) -> RowRules:
    first, *others = how.schema.fields
    return replace(how, schema=TableSchema(fields=(replace(first, default=default), *others), last_id=9))


def test_a_missing_key_is_the_default_and_a_null_is_null():
    how = with_default(reading(("at", pa.timestamp("us")), ("_source", pa.string())), "2024-01-01 00:00:00")
    rows, _ = take(b'{}\n{"at":null}\n', replace(how, source_column="_source"), FileFormat.JSON)
    assert rows == [{"at": datetime(2024, 1, 1), "_source": "trips"}, {"at": None, "_source": "trips"}]
    uuids = with_default(reading(("u", pa.uuid())), "00000000-0000-0000-0000-000000000001")
    rows, _ = take(b'{"u":"00000000-0000-0000-0000-000000000002"}\n{}\n', uuids, FileFormat.JSON)
    assert [str(row["u"])[-1] for row in rows] == ["2", "1"]


def test_a_line_that_is_too_long_is_passed_over_and_an_empty_source_has_no_rows():
    how = reading(ID, block_bytes=16, record_bytes=40)
    rows, rejected = take(b'{"id":1}\n{"id":2' + b" " * 100 + b'}\r\n{"id":3}', how, FileFormat.JSON)
    assert rows == [{"id": 1}, {"id": 3}]
    assert [(one.line, one.offset) for one in rejected] == [(2, 9)]
    assert take(b"", how, FileFormat.JSON) == ([], [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b'[{"id":1},{"id":2}]', r"a JSON array; .*jq -c '\.\[\]'"),
        (b'\n  [\n  {"id": 1}\n]\n', "a JSON array"),
        (b'{\n  "id": 1\n}\n', r"a JSON object over several lines; .*jq -c '\.'"),
    ],
)
def test_json_that_is_not_lines_is_refused_with_what_to_do(text: bytes, problem: str):
    with pytest.raises(SourceUnreadable, match=f"trips: this is {problem}"):
        take(text, reading(ID), FileFormat.JSON)
    with pytest.raises(SourceUnreadable, match=f"trips: this is {problem}"):
        infer_one("trips", FileFormat.JSON, io.BytesIO(text), Dialect())
