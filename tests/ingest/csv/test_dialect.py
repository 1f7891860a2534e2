"""CSV as it is written elsewhere: encodings, numbers, dates, comments, and lines before the header."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.source_reading import reading, take
from underlay.errors import InvalidRequest, SchemaMismatch
from underlay.ingest.rows.reading import Dialect
from underlay.ingest.source.file_format import FileFormat
from underlay.ingest.work.infer_schema import infer_one

ID, NOTE = pa.field("id", pa.int64()), pa.field("note", pa.string())
ENCODINGS = ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "ascii"]


@given(
    st.lists(st.tuples(st.integers(0, 99), st.sampled_from(["a", "é", "€", '"x\ny"', "", "bad,"])), max_size=8),
    st.sampled_from(ENCODINGS),
    st.sampled_from([3, 16, 61, 1 << 20]),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(0, 2),
)
def test_rows_and_lines_are_the_same_in_every_encoding_and_block_size(
    lines: list[tuple[int, str]], encoding: str, block_bytes: int, end: str, skipped: int
):
    def encoded(text: str) -> bool:
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            return False
        return True

    kept = [(id_, note) for id_, note in lines if encoded(note)]
    text = f'skip "{end}' * skipped + f"id,note{end}" + "".join(f"{id_},{note}{end}" for id_, note in kept)
    how = reading(ID, NOTE, dialect=Dialect(encoding=encoding, skip_lines=skipped), block_bytes=block_bytes)
    rows, rejected = take(text.encode(encoding), how)
    expected = [(id_, note.strip('"') or None) for id_, note in kept if note != "bad,"]
    assert [(row["id"], row["note"]) for row in rows] == expected
    places = [2 + skipped + sum("\n" in note for _, note in kept[:at]) + at for at in range(len(kept))]
    assert [one.line for one in rejected] == [
        line for line, (_, note) in zip(places, kept, strict=True) if note == "bad,"
    ]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_byte_order_mark_tells_what_nobody_said(encoding: str):
    assert take("id,note\n1,é\n".encode(encoding), reading(ID, NOTE))[0] == [{"id": 1, "note": "é"}]


def test_what_cannot_be_decoded_rejects_its_record_and_no_other():
    text = "id,note\n1,a\n2,{}\n3,b\n"
    for encoding, bad in (("ascii", b"\xe9"), ("cp1252", b"\x81"), ("utf-16-le", b"\x00\xdc")):
        data = b"%b".join(part.encode(encoding) for part in text.split("{}")) % bad
        rows, rejected = take(data, reading(ID, NOTE, dialect=Dialect(encoding=encoding)))
        assert [row["id"] for row in rows] == [1, 3]
        assert [(one.line, one.reason) for one in rejected] == [(3, f"byte 2 is not {encoding}")]
    rows, rejected = take(
        "id,note\n1,a\n".encode("utf-16-le") + b"2", reading(ID, NOTE, dialect=Dialect(encoding="utf-16-le"))
    )
    assert ([row["id"] for row in rows], [one.line for one in rejected]) == ([1], [3])


NUMBERS = [
    pa.field("i", pa.int64()),
    pa.field("f", pa.float64()),
    pa.field("h", pa.float16()),
    pa.field("d", pa.decimal128(12, 2)),
]


def numbers(text: str, **dialect: str) -> tuple[list[dict[str, object]], list[tuple[int, str]]]:
    how = reading(*NUMBERS, dialect=Dialect(delimiter=";", **dialect))
    rows, rejected = take(f"i;f;h;d\n{text}".encode(), how)
    return rows, [(one.line, one.reason) for one in rejected]


def test_a_decimal_comma_separates_the_fraction_and_a_point_is_no_number():
    rows, rejected = numbers(
        "1;1,5;0,25;-2,50\n2;1.5;;\n3;1e3;;1\n4; 1,5 ;;\n5,0;;;\n6;inf;;nan\n7;1,2,3;;\n", decimal=","
    )
    assert rows == [
        {"i": 1, "f": 1.5, "h": 0.25, "d": Decimal("-2.50")},
        {"i": 3, "f": 1000.0, "h": None, "d": Decimal("1.00")},
        {"i": 4, "f": 1.5, "h": None, "d": None},
    ]
    assert [line for line, _ in rejected] == [3, 6, 7, 8]
    assert rejected[0][1] == "column f: '1.5' is not a valid float64"


def test_thousands_are_groups_of_three():
    good = "1.234.567;1.234,5;;12.345,67\n-1.000;999;;1.000\n"
    bad = "1.23;;;\n12.34.567;;;\n.123;;;\n1.234;1,234.5;;\n;0.001;;\n"
    rows, rejected = numbers(good + bad, decimal=",", thousands=".")
    assert [(row["i"], row["f"], row["d"]) for row in rows] == [
        (1234567, 1234.5, Decimal("12345.67")),
        (-1000, 999.0, Decimal("1000.00")),
    ]
    assert [line for line, _ in rejected] == [4, 5, 6, 7, 8]
    for mark in (" ", "'", "\u00a0"):
        assert numbers(f"1{mark}234;;;\n", thousands=mark)[0][0]["i"] == 1234


TIMES = [pa.field("day", pa.date32()), pa.field("at", pa.timestamp("ms")), pa.field("utc", pa.timestamp("us", "UTC"))]


def test_dates_and_times_have_the_format_that_is_given_and_exist():
    dialect = Dialect(date_format="%d.%m.%Y", timestamp_format="%d/%m/%y %H:%M:%S.%f")
    lines = (
        "29.02.2024,29/02/24 10:00:00.5",
        "29.02.2023,",
        "2024-02-29,",
        ",31/04/24 10:00:00.0",
        ",2024-02-29 10:00:00",
        ",01/02/24 10:00:00.0005",  # finer than the column
        " 01.02.2024 ,",
    )
    rows, rejected = take("\n".join(["day,at", *lines]).encode(), reading(*TIMES[:2], dialect=dialect))
    assert rows == [
        {"day": date(2024, 2, 29), "at": datetime(2024, 2, 29, 10, 0, 0, 500000)},
        {"day": date(2024, 2, 1), "at": None},
    ]
    assert [one.line for one in rejected] == [3, 4, 5, 6, 7]
    assert "column day: '29.02.2023' is not a valid date" in rejected[0].reason


def test_a_zone_is_there_exactly_where_the_column_has_one():
    zoned = Dialect(timestamp_format="%Y%m%d %H%M %z")
    rows, rejected = take(b"utc\n20240101 1000 +0200\n", reading(TIMES[2], dialect=zoned))
    assert (rows, rejected) == ([{"utc": datetime(2024, 1, 1, 8, tzinfo=UTC)}], [])
    assert len(take(b"at\n20240101 1000 +0200\n", reading(TIMES[1], dialect=zoned))[1]) == 1
    plain = Dialect(timestamp_format="%Y%m%d %H%M")
    assert len(take(b"utc\n20240101 1000\n", reading(TIMES[2], dialect=plain))[1]) == 1


@pytest.mark.parametrize("block_bytes", [8, 40, 1 << 20])
def test_comments_are_no_records_and_quotes_in_them_are_text(block_bytes: int):
    text = ('# made by "us, on\n#\n\nid,note\n1,a\n# a,"b\n2,"# in\n# quotes"\n#\xff\nx,bad\n3,#c\n#last "').encode(
        "latin-1"
    )
    how = reading(ID, NOTE, dialect=Dialect(comment="#"), block_bytes=block_bytes)
    rows, rejected = take(text, how)
    assert [(row["id"], row["note"]) for row in rows] == [(1, "a"), (2, "# in\n# quotes"), (3, "#c")]
    assert [(one.line, one.raw) for one in rejected] == [(10, b"x,bad")]


def test_lines_before_the_header_are_left_out_even_when_there_are_no_others():
    how = reading(ID, NOTE, dialect=Dialect(skip_lines=3))
    assert take(b'a "\rb\r\n\nid,note\n1,n\n', how)[0] == [{"id": 1, "note": "n"}]
    with pytest.raises(SchemaMismatch, match="line 4"):
        take(b"a\nb\nc\nno,such\n1,n\n", how)
    headerless = reading(ID, NOTE, dialect=Dialect(skip_lines=3, has_header=False))
    assert take(b"a\nb", headerless) == ([], [])


def test_a_source_without_a_header_has_the_columns_that_are_named():
    how = reading(ID, NOTE, pa.field("more", pa.int8()), dialect=Dialect(columns=("note", "id")))
    assert take(b"a,1\n", how)[0] == [{"id": 1, "note": "a", "more": None}]
    with pytest.raises(SchemaMismatch, match="the table has no column other"):
        take(b"a,1\n", reading(ID, NOTE, dialect=Dialect(columns=("note", "other"))))
    with pytest.raises(SchemaMismatch, match="occurs twice"):
        take(b"a,1\n", reading(ID, NOTE, dialect=Dialect(columns=("id", "id"))))


def test_columns_are_inferred_by_how_the_dialect_writes_them():
    text = "kopf\n# c\n1.234;1,5;2.5;31.12.2024;31.12.2024 10:00;x;true;\n"
    dialect = Dialect(
        columns=tuple("abcdefgh"),
        skip_lines=1,
        comment="#",
        decimal=",",
        thousands=".",
        date_format="%d.%m.%Y",
        timestamp_format="%d.%m.%Y %H:%M",
        encoding="utf-16",
    )
    found = infer_one("a.csv", FileFormat.CSV, io.BytesIO(text.encode("utf-16")), dialect)
    types = [pa.int64(), pa.float64(), pa.string(), pa.date32(), pa.timestamp("us"), pa.string(), pa.bool_(), pa.null()]
    assert found.types == types


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"encoding": "klingon"}, "not an encoding"),
        ({"encoding": "base64"}, "not an encoding"),
        ({"decimal": ",", "thousands": ","}, "are the same"),
        ({"decimal": "5"}, "must be one character"),
        ({"thousands": "::"}, "must be one character"),
        ({"date_format": "%H:%M"}, "not a format"),
        ({"timestamp_format": "soon"}, "not a format"),
        ({"skip_lines": -1}, "negative"),
        ({"comment": "//"}, "one ASCII character"),
        ({"comment": "#", "delimiter": "#"}, "its delimiter"),
        ({"columns": "abc"}, "lists"),
    ],
)
def test_what_makes_no_dialect_is_refused(given: dict[str, object], problem: str):
    with pytest.raises(InvalidRequest, match=problem):
        Dialect(**given)


@pytest.mark.parametrize("block_bytes", [4, 64, 1 << 20])
def test_a_record_that_is_too_long_is_rejected_wherever_it_stands(block_bytes: int):
    lines = ["id,note", "1,a", f"2,{'x' * 19}", f'3,"{"y" * 10}\n{"y" * 10}"', "4,b", f"5,{'z' * 18}"]
    how = reading(ID, NOTE, block_bytes=block_bytes, record_bytes=20)
    rows, rejected = take("\n".join(lines).encode(), how)
    assert [row["id"] for row in rows] == [1, 4, 5]
    assert [one.line for one in rejected] == [3, 4]
    assert all("longer than 20 bytes" in one.reason for one in rejected)
