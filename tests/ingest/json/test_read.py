from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.ingest.source_reading import reading, take
from underlay.errors import SchemaMismatch, SourceUnreadable
from underlay.ingest.json.records import json_batches
from underlay.ingest.rows.reading import RowRules
from underlay.ingest.source.decompressed import Plain
from underlay.ingest.source.file_format import FileFormat
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


VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.text('a"\\\\]}[{,:\n é', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a"]', max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(
        st.fixed_dictionaries({"id": st.integers(0, 9) | st.just("bad"), "note": st.text('x"\\\\]}é')}), max_size=6
    ),
    st.sampled_from([None, 0, 2]),
    st.sampled_from(["array", "objects"]),
    st.booleans(),
    st.sampled_from([1, 7, 64, 1 << 20]),
)
def test_arrays_and_printed_objects_have_the_rows_of_the_same_lines(
    found: list[dict[str, object]], indent: int | None, shape: str, is_ascii: bool, block_bytes: int
):
    if shape == "array":
        text = "\n " + json.dumps(found, indent=indent, ensure_ascii=is_ascii) + "\n\n"
    else:
        text = "\n".join(json.dumps(one, indent=2, ensure_ascii=is_ascii) for one in found)
    lines = "\n".join(json.dumps(one) for one in found)
    how = reading(("id", pa.int64()), ("note", pa.string()), block_bytes=block_bytes)
    rows, rejected = take(text.encode(), how, FileFormat.JSON)
    expected, bad = take(lines.encode(), how, FileFormat.JSON)
    assert (rows, [one.reason for one in rejected]) == (expected, [one.reason for one in bad])
    for one in rejected:
        begin = one.offset or 0
        assert text.encode()[begin : begin + len(one.raw)] == one.raw
        assert text.encode()[:begin].count(b"\n") == one.line - 1


@given(st.lists(VALUES, max_size=5), st.sampled_from([None, 1]), st.integers(1, 40))
def test_the_elements_of_an_array_are_found_whatever_they_hold(values: list[object], indent: int | None, size: int):
    plain = Plain(io.BytesIO(json.dumps(values, indent=indent).encode()), "a")
    batches = json_batches(plain, block_bytes=size, record_bytes=1 << 20)
    assert [json.loads(text) for batch in batches for text in batch.texts] == values


@pytest.mark.parametrize("block_bytes", [3, 1 << 20])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b'[{"id":1},\n{"id":2}', "line 2: the JSON array does not end"),
        (b'[{"id":1}', "does not end"),
        (b"[", "does not end"),
        (b'{\n  "id": 1\n}\n{\n', "line 5: a JSON object does not end"),
        (b'[{"id":1}]\n[{"id":2}]', "line 1: text follows the JSON array"),
        (b'[{"id":1}}', "a bracket is closed that was not opened"),
        (b'{\n"id":1}}', "a bracket is closed that was not opened"),
    ],
)
def test_json_that_does_not_end_as_it_began_is_unreadable(text: bytes, problem: str, block_bytes: int):
    with pytest.raises(SourceUnreadable, match=problem):
        take(text, reading(("id", pa.int64()), block_bytes=block_bytes), FileFormat.JSON)


@pytest.mark.parametrize("block_bytes", [3, 1 << 20])
def test_what_is_no_object_in_an_array_is_rejected_where_it_stands(block_bytes: int):
    text = b'[{"id":1}, 5,\n "x", , {"id": 2} {"id": 3},\n {"id":"y", "note":"long, long, long"}, {"id":4},]'
    how = reading(("id", pa.int64()), ("note", pa.string()), block_bytes=block_bytes, record_bytes=30)
    rows, rejected = take(text, how, FileFormat.JSON)
    assert [row["id"] for row in rows] == [1, 4]
    assert [one.line for one in rejected] == [1, 2, 2, 2, 3, 3]
    assert ["missing" in one.reason for one in rejected] == [False, False, True, False, False, True]
    assert "longer than 30 bytes" in rejected[4].reason
    assert take(b" [ ] ", how, FileFormat.JSON) == ([], [])


def test_a_line_that_is_too_long_is_rejected():
    how = reading(("id", pa.int64()), record_bytes=19)
    rows, rejected = take(b'{"id":1}\n{"id":      2      }\n{"id":3}\n', how, FileFormat.JSON)
    assert ([row["id"] for row in rows], [(one.line, one.offset) for one in rejected]) == ([1, 3], [(2, 9)])


def test_keys_match_columns_in_any_case_unless_two_could_be_meant():
    how = reading(ID, ("fare", pa.float32()))
    lines = [b'{"ID":1,"Fare":2}', b'{"id":2,"fare":3}', b'{"Id":3}', b'{"ID":4,"FARE":1}', b'{"iD":"x"}']
    rows, rejected = take(b"\n".join(lines), how, FileFormat.JSON)
    assert [(row["id"], row["fare"]) for row in rows] == [(1, 2.0), (2, 3.0), (3, None), (4, 1.0)]
    assert [one.line for one in rejected] == [5]
    for ambiguous in (b'{"id":1,"ID":2}', b'{"Id":1,"ID":2}', b'{"id":1,"tip":2}'):
        with pytest.raises(SchemaMismatch, match="the table has no column"):
            take(ambiguous, how, FileFormat.JSON)


def test_a_key_in_another_case_is_not_ignored():
    how = reading(ID, ("fare", pa.float32()), new_columns="ignore")
    rows, _ = take(b'{"ID":1,"Fare":2,"tip":3}\n{"id":2,"ID":7}\n', how, FileFormat.JSON)
    assert [(row["id"], row["fare"]) for row in rows] == [(1, 2.0), (2, None)]
    with pytest.raises(SchemaMismatch, match=r"the table has no column Fare\. Did you mean fare"):
        take(b'{"id":1,"Fare":2,"FARE":2}', how, FileFormat.JSON)


def test_of_a_key_that_occurs_twice_the_last_counts():
    rows, rejected = take(b'{"id":1,"id":2}', reading(ID), FileFormat.JSON)
    assert (rows, rejected) == ([{"id": 2}], [])
