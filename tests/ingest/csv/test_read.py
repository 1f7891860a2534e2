from __future__ import annotations

import csv
import io
import math
import re
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.source_reading import reading, take
from underlay.errors import InvalidRequest, SchemaMismatch, SourceUnreadable, Unsupported
from underlay.ingest.csv.salvage import bad_texts
from underlay.ingest.rows.reading import Dialect

FIELDS = [
    pa.field("id", pa.int32(), nullable=False),
    pa.field("fare", pa.float64()),
    pa.field("zone", pa.string()),
    pa.field("day", pa.date32()),
    pa.field("at", pa.timestamp("us")),
]

GOOD = (
    ["1", "-7", "2147483647", " 5 ", '"12"'],
    ["1.5", "", "nan", "inf", "-1e-7", " 2"],
    ["JFK", "", "é", '"a,b"', '"two\nlines"', '"cr\r\nlf"', '"say ""no"""', 'in"ch', '"a"b', "x\ty"],
    ["2024-02-29", "", "1969-12-31"],
    ["2024-01-01 10:00:00", "2024-01-01T10:00:00.123456", "", "2024-01-01"],
)
BAD = (
    ["", "x", "2147483648", "1.0", "+1", "1e2"],
    ["1,5", "1e999", "-1e999", "one", "1_0"],
    ["\udcff", "ok\udcc3(", '"\udc80\n"'],
    ["2024-02-30", "2023-02-29", "01/02/2024", "2024-1-1"],
    ["2024-01-01T10:00:00Z", "2024-01-01 25:00:00", "2024-01-01T10:00:00.1234567", "soon"],
)


@st.composite
def records(draw: st.DrawFn) -> str:
    shape = draw(st.integers(0, 11))
    if shape == 0:
        return ""
    fields = [draw(st.sampled_from(good)) for good in GOOD]
    if shape == 1:
        fields.append("more")
    elif shape == 2:
        fields.pop()
    elif shape <= 4:
        at = draw(st.integers(0, 4))
        fields[at] = draw(st.sampled_from(BAD[at]))
    return ",".join(fields)


def value(at: int, text: str) -> object:
    """The value of a text by Python's own rules. Raises ValueError."""
    if not text and at:
        return None
    if at == 0:
        if not re.fullmatch(r"[ \t]*-?[0-9]+[ \t]*", text) or not -(2**31) <= int(text) < 2**31:
            raise ValueError(text)
        return int(text)
    if at == 1:
        if "_" in text or (math.isinf(float(text)) and "inf" not in text):
            raise ValueError(text)
        return repr(float(text))
    if at == 2:
        return text.encode().decode()
    if at == 3 and not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise ValueError(text)
    if at == 4 and (text.endswith("Z") or re.search(r"\.\d{7}", text)):
        raise ValueError(text)
    return date.fromisoformat(text) if at == 3 else datetime.fromisoformat(text)


def expected(text: str) -> tuple[list[tuple[object, ...]], list[int]]:
    """Rows, and the lines of records that are none, by the csv module."""
    rows: list[tuple[object, ...]] = []
    bad: list[int] = []
    reader = csv.reader(io.StringIO(text, newline=""))
    next(reader)
    line = reader.line_num + 1
    for fields in reader:
        try:
            if len(fields) == len(FIELDS):
                rows.append(tuple(value(at, field) for at, field in enumerate(fields)))
            elif fields:
                bad.append(line)
        except ValueError:
            bad.append(line)
        line = reader.line_num + 1
    return rows, bad


@given(
    st.lists(records(), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from([16, 37, 64, 200, 1 << 20]),
)
def test_rows_and_rejected_rows_are_those_of_the_csv_module_whatever_the_block_size(
    lines: list[str], end: str, is_ended: bool, block_bytes: int
):
    text = end.join(["id,fare,zone,day,at", *lines]) + (end if is_ended else "")
    data = text.encode("utf-8", "surrogateescape")
    rows, rejected = take(data, reading(*FIELDS, block_bytes=block_bytes))
    found = [tuple(repr(v) if isinstance(v, float) else v for v in row.values()) for row in rows]
    assert (found, [one.line for one in rejected]) == expected(text)
    for one in rejected:
        assert one.offset is not None
        assert data[one.offset :].startswith(one.raw)
        assert data[: one.offset].endswith((b"\n", b"\r"))


def test_a_text_is_a_value_or_none_whatever_stands_beside_it():
    texts = {
        pa.int16(): ["0x1F", "-0x1", " 7\t", "007", "32768", "--1", "0x"],
        pa.float32(): ["nan(ab)", "Infinity", "1e39", "+.5", "5.", ".", "1f", "-nan"],
        pa.decimal128(6, 2): ["9999.99", "99999.9", "1e3", "1e5", "1.234", "1.230", "+.5", ".", "nan"],
        pa.date32(): ["2024-02-29", " 2024-02-29 ", "2023-02-29", "2024-04-31", "2024-02-29T00"],
        pa.timestamp("us"): ["2024-02-29 10", "2024-02-29t10", "2024-02-29 10:00:60", " 2024-02-29"],
        pa.bool_(): ["TRUE", "tRUE", " 1", "0", "yes"],
    }
    for type_, values in texts.items():
        how = reading(("a", type_))
        alone = [take(f"a\n{text}\n".encode(), how) for text in values]
        together, rejected = take("\n".join(["a", *values, "!"]).encode(), how)
        assert repr(together) == repr([row for rows, _ in alone for row in rows])
        expected = [text for text, (rows, _) in zip(values, alone, strict=True) if not rows]
        assert [one.raw.decode() for one in rejected] == [*expected, "!"]


def test_a_rejected_record_says_where_it_is_and_why():
    data = b'\xef\xbb\xbfid,zone\r\n1,"a\r\nb"\r\n\r\nx,JFK\r\n2\r\n,EWR\r\n3,\xff\r\n4,end'
    rows, rejected = take(data, reading(FIELDS[0], FIELDS[2]))
    assert rows == [{"id": 1, "zone": "a\r\nb"}, {"id": 4, "zone": "end"}]
    assert [(one.line, one.offset, one.reason, one.raw) for one in rejected] == [
        (5, 24, "column id: 'x' is not a valid int32", b"x,JFK"),
        (6, 31, "expected 2 fields, found 1", b"2"),
        (7, 34, "column id: null in a required column", b",EWR"),
        (8, 40, "byte 2 is not UTF-8", b"3,\xff"),
    ]


@pytest.mark.parametrize("block_bytes", [8, 50, 1 << 20])
def test_a_quote_that_never_ends_takes_the_rest_of_the_source_and_no_memory(block_bytes: int):
    begin = b'id,zone\n1,JFK\n2,"EWR\n'
    how = reading(FIELDS[0], FIELDS[2], block_bytes=block_bytes, record_bytes=200)
    for rest in (b"3,x\n" * 5, b"3,x\r\n" * 500, b'3,""x\n' * 500):
        rows, rejected = take(begin + rest, how)
        assert rows == [{"id": 1, "zone": "JFK"}]
        assert [(one.line, one.offset) for one in rejected] == [(3, 14)]
        assert "never closed" in rejected[0].reason


@pytest.mark.parametrize("block_bytes", [8, 9, 10, 11, 64])
def test_a_record_that_is_too_long_is_passed_over_and_the_next_one_is_read(block_bytes: int):
    how = reading(FIELDS[0], FIELDS[2], block_bytes=block_bytes, record_bytes=100)
    for long in (b'"' + b'a""\r\n,' * 60 + b'"', b"plain " * 60, b'x"' * 200):
        data = b"id,zone\r\n1,JFK\r\n2," + long + b'\r\n3,"E""WR"\r\n4,LGA\r\n5,'
        rows, rejected = take(data, how)
        assert [row["zone"] for row in rows] == ["JFK", 'E"WR', "LGA", None]
        assert [(one.line, one.offset) for one in rejected] == [(3, 16)]
        *_, last = take(data + b",", how)[1]
        assert last.line == 6 + long.count(b"\n")


def test_the_delimiter_is_told_from_the_header_or_by_the_dialect():
    row = [{"id": 1, "zone": "a,b"}]
    how = reading(FIELDS[0], FIELDS[2])
    for mark in (";", "\t", "|"):
        assert take(f"id{mark}zone\n1{mark}a,b\n".encode(), how) == (row, [])
    assert take(b'"id","zone"\n1,"a,b"\n', how) == (row, [])
    told = reading(FIELDS[0], FIELDS[2], dialect=Dialect(delimiter="^", quote="'", has_header=False, nulls=("NA",)))
    assert take(b"1^'a,b'\n2^NA\n3^'NA'", told) == ([*row, {"id": 2, "zone": None}, {"id": 3, "zone": "NA"}], [])
    bare = reading(FIELDS[0], FIELDS[2], dialect=Dialect(quote=None))
    assert take(b'id,zone\n1,"a\n', bare) == ([{"id": 1, "zone": '"a'}], [])


def test_a_quoted_empty_text_is_no_null():
    rows, rejected = take(b'id,zone\n1,""\n2,\n"",x\n', reading(FIELDS[0], FIELDS[2]))
    assert rows == [{"id": 1, "zone": ""}, {"id": 2, "zone": None}]
    assert [one.line for one in rejected] == [4]


def test_columns_are_matched_by_name_and_the_policies_decide_on_others():
    fields = [*FIELDS[:3], pa.field("_source", pa.string())]
    data = b"zone,tip,id\nJFK,\xc3\xa9,1\n"
    with pytest.raises(SchemaMismatch, match=r"trips, line 1: the table has no column tip"):
        take(data, reading(*fields))
    ignoring = reading(*fields, new_columns="ignore", source_column="_source")
    assert take(data, ignoring) == ([{"id": 1, "fare": None, "zone": "JFK", "_source": "trips"}], [])
    with pytest.raises(SchemaMismatch, match="id is missing"):
        take(b"zone\nJFK\n", reading(*fields))
    with pytest.raises(SchemaMismatch, match="none of its columns is in the table"):
        take(b"tip\n1\n", reading(("fare", pa.float64()), new_columns="ignore"))
    with pytest.raises(SchemaMismatch, match="id occurs twice"):
        take(b"id,id\n1,1\n", reading(*fields))
    assert take(b"ID,Zone\n1,JFK\n", reading(*fields[:3])) == ([{"id": 1, "fare": None, "zone": "JFK"}], [])
    with pytest.raises(SchemaMismatch, match="Did you mean id"):  # both could be meant
        take(b"ID,Id\n1,2\n", reading(*fields))
    with pytest.raises(SchemaMismatch, match="Did you mean id"):  # it has that column already
        take(b"id,ID\n1,2\n", reading(*fields))
    with pytest.raises(Unsupported, match="nested"):
        take(b"a\n1\n", reading(("a", pa.list_(pa.int8()))))


def test_a_source_without_the_header_that_it_needs_is_unreadable():
    for data in (b"", b"\n\r\n", b"\xef\xbb\xbf"):
        with pytest.raises(SourceUnreadable, match="is empty: a CSV file begins with a header"):
            take(data, reading(*FIELDS))
    with pytest.raises(SourceUnreadable, match=r"line 1, byte 3: the header is not UTF-8.*--encoding"):
        take("id,é\n1,2\n".encode("latin-1"), reading(*FIELDS))
    assert take(b"id,zone\n", reading(FIELDS[0], FIELDS[2])) == ([], [])
    assert take(b"", reading(FIELDS[0], dialect=Dialect(has_header=False))) == ([], [])


def test_a_header_that_does_not_end_or_is_none_is_unreadable():
    rows = b"1,2\n" * 50_000
    for first, problem in (
        (b'"id,zone\n', "a quote in the header is never closed"),
        (b"id," + b"x" * 200_000 + b"\n", "field larger"),
    ):
        with pytest.raises(SourceUnreadable, match=problem):
            take(first + rows, reading(FIELDS[0], FIELDS[2]))


def test_a_quote_within_a_name_is_text_and_does_not_have_all_lines_looked_at_again_and_again():
    rows = b"1,x\n" * 200_000
    found, rejected = take(b'"id",5" zone\n' + rows, reading(FIELDS[0], ('5" zone', pa.string())))
    assert (len(found), rejected) == (200_000, [])


@pytest.mark.parametrize(
    ("type_", "bad", "good"),
    [
        (pa.int64(), ["-", "x", "bad", "0x"], ["-1", " 7 ", "0xbad"]),
        (pa.float64(), ["NA", "n.a.", "-", "."], ["nan", "-.5", "inf", " 1e5"]),
        (pa.decimal128(9, 2), ["-", ".", "e"], ["-.5", "+1"]),
        (pa.date32(), ["-", "31-12-2024", "20241231"], ["2024-12-31"]),
        (pa.bool_(), ["0a", "ture"], ["true", "0"]),
    ],
)
def test_many_texts_that_only_look_like_values_are_found_without_trying_each(
    type_: pa.DataType, bad: list[str], good: list[str]
):
    texts = [*bad, None, *good] * 50_000
    wrong = np.flatnonzero(np.isin(np.arange(len(texts)) % (len(bad) + 1 + len(good)), range(len(bad))))
    assert bad_texts(pa.array(texts), type_).tolist() == wrong.tolist()


def test_a_delimiter_or_quote_that_is_no_ascii_character_is_refused():
    for marks in ({"delimiter": "||"}, {"delimiter": "§"}, {"quote": ""}, {"quote": "\n"}, {"delimiter": '"'}):
        with pytest.raises(InvalidRequest):
            Dialect(**marks)


def test_texts_stand_for_bytes_uuids_times_and_decimals_as_in_append():
    kinds = (pa.binary(), pa.uuid(), pa.time64("us"), pa.decimal128(4, 1), pa.float16(), pa.timestamp("ms", "UTC"))
    fields = [pa.field(f"c{at}", kind) for at, kind in enumerate(kinds)]
    good = "00ff,00000000-0000-0000-0000-000000000001,10:00:01,123.4,1.5,2024-01-01T00:00:00+01:00"
    bad = ("xyz", "1", "25:00:00", "1e3", "1e9", "2024-01-01")
    lines = [
        good,
        *(",".join([*good.split(",")[:at], text, *good.split(",")[at + 1 :]]) for at, text in enumerate(bad)),
    ]
    rows, rejected = take("\n".join(["c0,c1,c2,c3,c4,c5", *lines]).encode(), reading(*fields))
    assert [row["c0"] for row in rows] == [b"\x00\xff"]
    assert [one.reason.split(":")[0] for one in rejected] == [f"column c{at}" for at in range(6)]
