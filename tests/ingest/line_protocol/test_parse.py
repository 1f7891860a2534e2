"""Line protocol: every rule, each fault with its place, and the fast parser against a slow one."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from influxdb_client.client.write.point import Point
from influxdb_client.domain.write_precision import WritePrecision

from tests.ingest.line_protocol.plain import PlainParser, Refused
from underlay.errors import InvalidRequest
from underlay.ingest.line_protocol.parse import ParsedLines, parse_lines
from underlay.ingest.line_protocol.values import Flavour, Form

INFLUXDB, QUESTDB = Flavour.INFLUXDB, Flavour.QUESTDB
BOTH = pytest.mark.parametrize("flavour", list(Flavour))


def one_row(line: bytes, flavour: Flavour = INFLUXDB) -> tuple[str, dict[str, object]]:
    found = parse_lines(line, flavour)
    assert not found.problems, found.problems
    ((measurement, (alike,)),) = found.measurements.items()
    (row,) = alike.rows.to_pylist()
    return measurement, row


def faults(body: bytes, flavour: Flavour = INFLUXDB) -> list[tuple[int, int]]:
    found = parse_lines(body, flavour)
    return [(one.line, one.column) for one in found.problems]


@BOTH
def test_names_tags_and_fields_have_their_types(flavour: Flavour) -> None:
    line = rb'cpu,host=a\ b,re\,gion=x\=y f=1.5,i=7i,u=8u,b=T,s="say \"hi\" \\, now" 9'
    assert one_row(line, flavour) == (
        "cpu",
        {"host": "a b", "re,gion": "x=y", "f": 1.5, "i": 7, "u": 8, "b": True, "s": 'say "hi" \\, now'},
    )


def test_a_backslash_is_itself_for_influxdb_and_an_escape_for_questdb() -> None:
    assert one_row(rb'C:\x,p=C:\new s="C:\new"', INFLUXDB) == (r"C:\x", {"p": r"C:\new", "s": r"C:\new"})
    assert one_row(rb't,p=C:\new s="C:\new"', QUESTDB) == ("t", {"p": "C:new", "s": "C:new"})


def test_a_text_has_line_ends_which_questdb_escapes() -> None:
    assert one_row(b'm s="a\nb"', INFLUXDB)[1] == {"s": "a\nb"}
    assert one_row(b'm s="a\\\nb"', QUESTDB)[1] == {"s": "a\nb"}
    assert faults(b'm s="a\nb"', QUESTDB)[0] == (1, 5)


@pytest.mark.parametrize(
    ("precision", "second"),
    [("n", 10**9), ("ns", 10**9), ("u", 10**6), ("us", 10**6), ("ms", 1000), ("s", 1)],
)
def test_precision_says_the_unit_of_times(precision: str, second: int) -> None:
    found = parse_lines(f"m f=1 {second * 3}".encode(), INFLUXDB, precision)
    times = found.measurements["m"][0].times
    assert times is not None
    assert times.cast(pa.timestamp("s", "UTC")).to_pylist() == [datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC)]


@pytest.mark.parametrize(("precision", "seconds"), [("m", 60), ("h", 3600)])
def test_minutes_and_hours_are_seconds(precision: str, seconds: int) -> None:
    times = parse_lines(b"m f=1 2", INFLUXDB, precision).measurements["m"][0].times
    assert times is not None
    assert times.cast(pa.int64()).to_pylist() == [2 * seconds]


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="unknown precision"):
        parse_lines(b"m f=1 1", INFLUXDB, "days")


def test_questdb_times_say_their_own_unit() -> None:
    found = parse_lines(b"t a=5t,b=6n 7t\n", QUESTDB, "ms").measurements["t"][0]
    assert found.times is not None
    assert found.times.type == pa.timestamp("us", "UTC")
    assert [str(one.type) for one in found.rows.columns] == ["timestamp[us, tz=UTC]", "timestamp[ns, tz=UTC]"]
    assert found.forms == {"a": Form.MICROSECONDS, "b": Form.NANOSECONDS}


def test_questdb_binary_values() -> None:
    array = b"=\x0e\x0a\x02" + struct.pack("<II", 2, 2) + struct.pack("<4d", 1, 2, 3, 4)
    line = b"t d==\x10" + struct.pack("<d", 1e300) + b",a=" + array + b",n==\x0e\x21,x==\x17\x03\x0209 5\n"
    assert one_row(line, QUESTDB) == (
        "t",
        {"d": 1e300, "a": [[1.0, 2.0], [3.0, 4.0]], "n": None, "x": Decimal("12.345")},
    )


def test_binary_values_may_hold_any_byte_and_are_read_alike_fast_and_slowly() -> None:
    numbers = [struct.unpack("<d", bytes((at,) * 6) + b"\x10\x40")[0] for at in range(256)]
    body = b"".join(b"t d==\x10" + struct.pack("<d", one) + b" 5n\n" for one in numbers)
    found = parse_lines(body, QUESTDB)
    assert not found.problems
    values = np.concatenate([one.rows.column("d").to_numpy() for one in found.measurements["t"]])
    assert values.tolist() == numbers


@pytest.mark.parametrize("cut", range(3, 22))
def test_a_binary_value_that_is_cut_short_is_a_fault(cut: int) -> None:
    line = b"t a==\x0e\x0a\x01" + struct.pack("<I", 1) + struct.pack("<d", 1.0) + b"  "
    assert faults(line[: len(line) - cut], QUESTDB)


def test_an_array_that_claims_to_be_huge_is_a_fault() -> None:
    assert faults(b"t a==\x0e\x0a\x20" + b"\xff" * 200 + b" 1\n", QUESTDB)[0] == (1, 5)


@BOTH
def test_comments_blank_lines_and_line_ends_of_windows(flavour: Flavour) -> None:
    body = b"# m f=1\r\n\r\n  \n\t# x\nm f=1 1\r\n  m f=2 2\r\nm f=3\r\n# end"
    found = parse_lines(body, flavour)
    assert not found.problems
    assert [value for one in found.measurements["m"] for value in one.rows.column("f").to_pylist()] == [1.0, 2.0, 3.0]


@BOTH
@pytest.mark.parametrize(
    ("line", "column"),
    [
        (b"m", 2),
        (b"m ", 2),
        (b",a=b f=1", 1),
        (b"m,a f=1", 4),
        (b"m,=b f=1", 3),
        (b"m,a=b=c f=1", 6),
        (b"m f", 4),
        (b"m f=", 5),
        (b"m f=abc", 5),
        (b"m f=1x", 5),
        (b"m f=1__0", 5),
        (b"m f=0x10", 5),
        (b"m f=1,", 7),
        (b"m f=1 12x", 7),
        (b"m f=1 5 6", 8),
        (b"m f=1 99999999999999999999", 7),
        (b'm f="abc', 5),
        (b'm f="a"b', 5),
        (b'm f="\xff"', 5),
        (b"m,a=\xff f=1", 5),
        (b"m\xff f=1", 1),
        (b"m f=1e999", 5),
        (b"m f=9223372036854775808i", 5),
        (b"m f=18446744073709551616u", 5),
        (b"m f=-1u", 5),
        (b"m,a=1,a=2 f=1", 7),
        (b"m f=1,g=2,f=3", 11),
        (b"m,f=1 f=1", 7),
    ],
)
def test_a_fault_has_line_and_column(flavour: Flavour, line: bytes, column: int) -> None:
    """Also between good lines, which stay good."""
    assert faults(line, flavour) == [(1, column)]
    if not line.startswith(b'm f="abc'):
        found = parse_lines(b"ok f=1 1\n" * 5 + line + b"\n" + b"ok f=1 1\n" * 5, flavour)
        assert [(one.line, one.column) for one in found.problems] == [(6, column)]
        assert sum(len(one.starts) for one in found.measurements["ok"]) == 10


@pytest.mark.parametrize(
    "line", [b"m f=NaN", b"m f=inf", b"m f==\x10abcdefgh", b"m f=1t", b"m f=1n", b"m,a= f=1", b"m f=1 1n"]
)
def test_what_only_questdb_knows_is_a_fault_for_influxdb(line: bytes) -> None:
    assert faults(line, INFLUXDB)
    assert not faults(line, QUESTDB)


@BOTH
@pytest.mark.parametrize("bad", [b"m f=9223372036854775808i 1\n", b"m f=1i 9223372036854775808\n"])
def test_a_value_beyond_its_type_is_found_among_lines_alike(flavour: Flavour, bad: bytes) -> None:
    assert [line for line, _ in faults(b"m f=1i 1\n" * 9 + bad + b"m f=1i 1\n", flavour)] == [10]


@BOTH
@pytest.mark.parametrize(
    "body",
    [
        b"m f=" + b"1" * (2 << 20),
        b'm f="' + b"a" * (10 << 20) + b'"',
        b"m" * (2 << 20),
        b"m f=1" + b" " * (2 << 20),
        b"m,a=" + b"\\" * (2 << 20) + b" f=1",
        b"m " + b"f=1," * (1 << 19),
    ],
    ids=["number", "text", "name", "blanks", "backslashes", "fields"],
)
def test_a_line_of_megabytes_is_a_fault(flavour: Flavour, body: bytes) -> None:
    found = parse_lines(body + b"\nm f=1 1\n", flavour)
    assert [one.line for one in found.problems] == [1]
    assert found.row_count == 1
    assert len(found.problems[0].text) <= 200


def test_problems_are_bounded() -> None:
    assert len(parse_lines(b"m\n" * 100_000, INFLUXDB).problems) == 100


def test_lines_keep_their_order_across_groups() -> None:
    body = b"".join(b"m f=%d\n" % at if at % 3 else b"m f=%di\n" % at for at in range(50))
    found = parse_lines(body, INFLUXDB).measurements["m"]
    rows = sorted(
        (start, value)
        for one in found
        for start, value in zip(one.starts, one.rows.column("f").to_pylist(), strict=True)
    )
    assert [value for _, value in rows] == list(range(50))


WRITABLE = st.characters(codec="utf-8", exclude_characters="\\", exclude_categories=["Cc"])
NAMES = st.text('ab ,=\\"#é1', min_size=1, max_size=4)
TOKENS = st.lists(
    st.sampled_from(
        [
            *(bytes((one,)) for one in b'm,= \n"\\#\rtf1in.eu-'),
            b"=\x10abcdefgh",
            b'"x"',
            b"m f=1 1\n",
            b"\xff",
            b" ",
            b"=",
            b"1i",
        ]
    ),
    max_size=14,
).map(b"".join)


Row = tuple[str, tuple[tuple[str, str], ...], int | None]


def plain_rows(body: bytes, flavour: Flavour) -> list[Row] | None:
    try:
        lines = PlainParser(body, is_questdb=flavour is QUESTDB).lines()
    except Refused:
        return None
    found: list[Row] = []
    for line in lines:
        values = tuple(sorted((name, repr(value)) for name, value in [*line.tags.items(), *line.fields.items()]))
        found.append((line.measurement, values, None if line.time is None else line.time[0]))
    return found


def fast_rows(found: ParsedLines) -> list[Row] | None:
    if found.problems:
        return None
    rows: list[tuple[int, Row]] = []
    kinds = {Form.FLOAT: "float", Form.BINARY_FLOAT: "float", Form.INTEGER: "integer", Form.UNSIGNED: "unsigned"}
    kinds |= {Form.MICROSECONDS: "us", Form.NANOSECONDS: "ns"}
    for measurement, groups in found.measurements.items():
        for alike in groups:
            columns: dict[str, list[object]] = {}
            for name, form in alike.forms.items():
                column = alike.rows.column(name)
                whole = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
                columns[name] = [(kinds[form], value) if form in kinds else value for value in whole.to_pylist()]
            times = [None] * len(alike.starts) if alike.times is None else alike.times.cast(pa.int64()).to_pylist()
            for at, start in enumerate(alike.starts):
                values = tuple(sorted((name, repr(column[at])) for name, column in columns.items()))
                rows.append((start, (measurement, values, times[at])))
    return [row for _, row in sorted(rows, key=lambda one: one[0])]


@BOTH
@given(body=TOKENS, repeats=st.integers(1, 3))
def test_the_fast_parser_and_a_slow_one_agree(flavour: Flavour, body: bytes, repeats: int) -> None:
    """Repeated bodies make the fast parser use its patterns."""
    body = (body + b"\n") * repeats
    assert fast_rows(parse_lines(body, flavour)) == plain_rows(body, flavour), body


@st.composite
def good_lines(draw: st.DrawFn) -> bytes:
    def bare(text: str) -> bytes:
        return "".join(f"\\{one}" if one in ", =" else one for one in text.replace("\\", "")).encode() or b"x"

    lines = []
    shapes = draw(st.lists(st.lists(NAMES, min_size=2, max_size=4, unique=True), min_size=1, max_size=3))
    for _ in range(draw(st.integers(1, 12))):
        names = draw(st.sampled_from(shapes))
        values = [b"1.5", b"-7i", b"t", b'"a \\" b, c=d"', b".5e3", b"0i", b'""', b"9u"]
        fields = [bare(name) + b"=" + draw(st.sampled_from(values)) for name in names[1:]]
        time = draw(st.sampled_from([b"", b" 5", b"  -17 ", b" 1700000000000000000"]))
        lines.append(bare(names[0].lstrip("#")) + b",tag=" + bare(draw(NAMES)) + b" " + b",".join(fields) + time)
    return b"\n".join(lines)


@BOTH
@given(body=good_lines())
def test_the_fast_parser_and_a_slow_one_agree_on_lines_as_senders_write_them(flavour: Flavour, body: bytes) -> None:
    assert fast_rows(parse_lines(body, flavour)) == plain_rows(body, flavour), body


@given(
    name=st.text(WRITABLE, min_size=1, max_size=5),
    tag=st.text(WRITABLE, min_size=1, max_size=5),
    text=st.text(st.characters(codec="utf-8"), max_size=9),
    number=st.integers(-(2**63), 2**63 - 1),
    real=st.floats(allow_nan=False, allow_infinity=False),
)
def test_what_the_client_of_influxdb_writes_is_read_back(
    name: str, tag: str, text: str, number: int, real: float
) -> None:
    if name.startswith("#"):
        return  # the client does not escape it, so it is a comment
    point: Any = Point(name)  # type: ignore[no-untyped-call]  # its client has no types
    point = point.tag("k", tag).field("s", text).field("i", number).field("r", real).field("b", number > 0)
    line = point.time(17, WritePrecision.NS).to_line_protocol().encode()
    expected = {"k": tag, "s": text, "i": number, "r": pytest.approx(real), "b": number > 0}
    assert one_row(line) == (name, expected)
