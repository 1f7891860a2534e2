"""scan, sql and plan."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tests.cli.command import underlay
from underlay.api.lake import Lake
from underlay.api.table import Table


def test_scan_prints_a_table_for_people(taxi: Table):
    run = underlay("scan", "taxi.trips", "--columns", "id,pickup,fare,note", "--where", "zone = 'JFK'")
    assert run.code == 0
    assert run.text.splitlines() == [
        "id  pickup               fare  note",
        " 1  2024-01-01 00:10:00  52.5  –",
        " 3  2024-02-01 09:00:00     –",
    ]
    assert run.words == "(2 rows)\n"


def test_scan_as_csv_can_be_appended_again(taxi: Table, place: Path):
    (place / "again.csv").write_bytes(underlay("scan", "taxi.trips", "--format", "csv").output)
    assert underlay("append", "taxi.trips", "again.csv").code == 0
    rows = taxi.to_arrow()
    assert rows.slice(3).equals(rows.slice(0, 3))


def test_scan_as_an_arrow_stream_can_be_appended_again(taxi: Table):
    stream = underlay("scan", "taxi.trips", "--format", "arrow").output
    assert pa.ipc.open_stream(stream).read_all().equals(taxi.to_arrow())
    assert underlay("append", "taxi.trips", "-", stdin=stream).code == 0
    assert taxi.count() == 6


def test_scan_as_json_lines(taxi: Table):
    run = underlay("scan", "taxi.trips", "--json", "--limit", 1)
    assert run.objects == [{"id": 1, "pickup": "2024-01-01T00:10:00.000000", "zone": "JFK", "fare": 52.5, "note": None}]
    assert run.words == ""
    assert underlay("scan", "taxi.trips", "--format", "ndjson", "--limit", 1).objects == run.objects
    assert json.loads(underlay("scan", "taxi.trips", "--format", "json", "--limit", 1).output) == run.objects


def test_values_of_every_kind_in_json(lake: Lake):
    schema = (
        "y binary, d decimal(10, 2), f double, t date, s struct<at: timestamp, y: binary>, l array<date>,"
        " m map<string, int>"
    )
    rows = pa.table(
        {
            "y": [b"\x00\xff"],
            "d": pa.array(["1.50"]).cast(pa.decimal128(10, 2)),
            "f": [float("nan")],
            "t": pa.array([0], pa.date32()),
            "s": pa.array([{"at": 0, "y": b"\x01"}], pa.struct([("at", pa.timestamp("us")), ("y", pa.binary())])),
            "l": pa.array([[1, None]], pa.list_(pa.date32())),
            "m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
        }
    )
    lake.create_table("a.b", schema).append(rows)
    expected = {
        "y": "00ff",
        "d": "1.50",
        "f": "NaN",
        "t": "1970-01-01",
        "s": {"at": "1970-01-01T00:00:00.000000", "y": "01"},
        "l": ["1970-01-02", None],
        "m": {"a": 1},
    }
    assert underlay("scan", "a.b", "--json").objects == [expected]
    assert json.dumps(expected["s"]) in underlay("scan", "a.b").text


def test_count_is_one_number(taxi: Table):
    assert underlay("scan", "taxi.trips", "--count").output == b"3\n"
    assert underlay("scan", "taxi.trips", "--count", "--where", "fare > 40").output == b"1\n"
    assert underlay("scan", "taxi.trips@0", "--count", "--json").objects == [
        {"table": "taxi.trips", "version": 0, "count": 0}
    ]
    assert underlay("scan", "taxi.trips", "--count", "--limit", 1).code == 2


def test_a_long_table_is_cut_and_the_rest_counted(lake: Lake):
    lake.create_table("a.b", "n bigint").append(pa.table({"n": range(1_200)}))
    run = underlay("scan", "a.b")
    assert len(run.text.splitlines()) == 51
    assert run.words == "(the first 50 of 1,200 rows; --limit N shows more, --format csv, json or arrow all)\n"
    more = underlay("scan", "a.b", "--limit", 60)
    assert (len(more.text.splitlines()), more.words) == (61, "(60 rows)\n")
    assert underlay("scan", "a.b", "--limit", 0).text == "n\n"
    assert len(underlay("scan", "a.b", "--format", "csv").text.splitlines()) == 1_201
    assert len(underlay("scan", "a.b", "--json", "--limit", 70).objects) == 70
    exact = underlay("scan", "a.b", "--where", "n < 50")
    assert (len(exact.text.splitlines()), exact.words) == (51, "(50 rows)\n")


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["--columns", "nope"], 2, "there is no column nope. Columns: id, pickup, zone, fare, note."),
        (["--columns", ""], 2, "--columns takes names"),
        (["--where", "nope = 1"], 2, "there is no column nope"),
        (["--where", "fare >"], 2, "not a SQL condition"),
        (["--where", "fare = 'x'"], 2, "cannot be compared"),
        (["--version", "9"], 3, "taxi.trips: there is no version 9. Versions are 0 to 1."),
        (["--tag", "x"], 3, "taxi.trips has no tag x"),
        (["--as-of", "2001-01-01"], 3, "no version from that time (found 2001-01-01)"),
        (["--as-of", "soon"], 2, "not a date or time"),
        (["--as-of", "2001-01-01", "--tag", "x"], 2, "more than one version"),
        (["--json", "--format", "csv"], 2, "--json and --format disagree"),
    ],
)
def test_a_scan_that_cannot_be(taxi: Table, arguments: list[str], code: int, problem: str):
    run = underlay("scan", "taxi.trips", *arguments)
    assert (run.code, run.output) == (code, b"")
    assert problem in run.words


def test_sql_over_tables(taxi: Table):
    run = underlay("sql", "select zone, count(*) n, max(fare) top from taxi.trips group by zone order by zone")
    assert run.code == 0
    assert run.text.splitlines() == ["zone  n   top", "JFK   2  52.5", "LGA   1  30.0"]
    assert run.words == "(2 rows)\n"


def test_sql_of_an_older_version(taxi: Table):
    assert underlay("sql", "select count(*) n from taxi.trips version as of 0", "--json").objects == [{"n": 0}]


def test_sql_from_stdin(taxi: Table):
    assert underlay("sql", "-", "--format", "csv", stdin=b"select 1 as one").output == b'"one"\n1\n'


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        ("select id from taxi.trips where fare > ? and zone = ?", ["40", "JFK"]),
        ("select id from taxi.trips where fare > $low and zone = $zone", ["low=40", "zone=JFK"]),
        ("select id from taxi.trips where fare > $low and zone = $zone", ["low=4e1", 'zone="JFK"']),
    ],
)
def test_sql_with_parameters(taxi: Table, query: str, parameters: list[str]):
    options = [word for value in parameters for word in ("--param", value)]
    assert underlay("sql", query, *options, "--json").objects == [{"id": 1}]


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["selec 1"], 2, "SELEC"),
        (["select nope from taxi.trips"], 2, '"nope" not found'),
        (["select * from taxi.tripz"], 3, "there is no table taxi.tripz. Did you mean taxi.trips?"),
        (["drop view taxi.trips"], 2, "not SQL that is understood"),
        (["select ?", "--param", "1", "--param", "a=1"], 2, "either NAME=VALUE or VALUE for all"),
    ],
)
def test_sql_that_cannot_be(taxi: Table, arguments: list[str], code: int, problem: str):
    run = underlay("sql", *arguments)
    assert (run.code, run.output) == (code, b"")
    assert problem in run.words
    assert "Traceback" not in run.words


def test_columns_of_one_name_are_both_written(lake: Lake):
    run = underlay("sql", "select 1 as a, 2 as a", "--format", "csv")
    assert run.text.splitlines()[1] == "1,2"
    refused = underlay("sql", "select 1 as a, 2 as a", "--json")
    assert (refused.code, refused.output) == (2, b"")
    assert "found two columns named a" in refused.words


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("interval '1 month 2 days 3 seconds'", "P1M2DT3S"),
        ("[interval 1 day]", ["P0M1DT0S"]),
        ("'a'::enum('a', 'b')", "a"),
        ("1::hugeint", "1"),
        ("null", None),
        ("time '10:00:00'", "10:00:00.000000"),
        ("timestamptz '2024-01-01 00:00:00+01'", "2023-12-31T23:00:00.000000Z"),
        ("timestamp_ns '2024-01-01 00:00:00.123456789'", "2024-01-01T00:00:00.123456789"),
        ("timestamp '290000-01-01'", "<value out of range: 9089348860800000000>"),
        ("{'a': 1, 'b': [date '2024-01-01']}", {"a": 1, "b": ["2024-01-01"]}),
        ("map {1: 'x'}", [[1, "x"]]),
        ("'infinity'::double", "Infinity"),
    ],
)
def test_values_that_only_sql_makes_have_a_form_everywhere(lake: Lake, expression: str, shown: object):
    query = f"select {expression} as value"
    assert underlay("sql", query, "--json").objects == [{"value": shown}]
    assert underlay("sql", query).code == 0
    assert underlay("sql", query, "--format", "csv").code == 0


def test_plan_says_what_is_left_out_and_why(taxi: Table):
    run = underlay("plan", "taxi.trips", "--where", "pickup < '2024-01-15'", "--columns", "id")
    assert run.code == 0
    assert "1 of 2 files dropped by partition" in run.text
    [plan] = underlay("plan", "taxi.trips", "--where", "pickup < '2024-01-15'", "--json").objects
    assert (plan["name"], plan["version"], plan["table"]["files"], plan["kept"]["files"]) == ("taxi.trips", 1, 2, 1)
    assert plan["steps"][0]["level"] == "partition"
    assert underlay("plan", "taxi.trips@0").code == 0
    assert underlay("plan", "taxi.trips", "--where", "nope = 1").code == 2


def test_vertical_rows_have_a_line_for_each_value(taxi: Table):
    run = underlay("scan", "taxi.trips", "--where", "id = 2", "--format", "vertical")
    assert run.text == (
        "row 1\n  id      2\n  pickup  2024-01-02 01:00:00\n  zone    LGA\n  fare    30.0\n  note    hello, there\n"
    )
    assert run.words == "(1 row)\n"


@pytest.mark.parametrize("comment", ["-- a comment\n", "--a comment\n"])
def test_sql_may_begin_with_a_comment(taxi: Table, comment: str):
    query = f"{comment}select count(*) as n from taxi.trips where id <> ?"
    assert underlay("sql", query, "--param", "-- not a query", "--json").code == 2
    assert underlay("sql", query, "--param", "1", "--json").objects == [{"n": 2}]
    assert underlay("sql", "--param=7", "--json", query).objects == [{"n": 3}]


def test_an_unknown_option_of_sql_is_still_an_error(taxi: Table):
    run = underlay("sql", "select 1", "--fromat", "csv")
    assert run.code == 2
    assert "No such option: --fromat" in run.words


def test_an_unknown_column_among_many_is_answered_with_the_nearest_names(lake: Lake):
    lake.create_table("a.wide", ", ".join(f"column_{i} bigint" for i in range(300)))
    run = underlay("scan", "a.wide", "--columns", "colum_17")
    assert (run.code, run.words.count("column_")) == (2, 3)
    assert "Did you mean column_17 or " in run.words
    assert "There are 300 columns." in run.words


def test_sql_of_a_file_is_run_statement_by_statement(taxi: Table, place: Path):
    (place / "two.sql").write_text("-- first; of two\nselect 1 as a;\n\nselect ';' as b;\n")
    run = underlay("sql", "-f", "two.sql")
    assert run.code == 0
    assert run.text == "a\n1\n\nb\n;\n"
    assert underlay("sql", "select 1 as a; select 2 as a", "--json").objects == [{"a": 1}, {"a": 2}]


def test_the_first_statement_that_fails_ends_it(taxi: Table):
    run = underlay("sql", "select 1 as a; select nothing; select 3 as c")
    assert run.code == 2
    assert run.text == "a\n1\n\n"
    assert "nothing" in run.words


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["select 1; select 2", "-o", "x.csv"], "one statement"),
        (["select 1; select 2", "--format", "parquet"], "one statement"),
        (["select ?; select 2", "--param", "1"], "one statement"),
        (["select 1", "-f", "a.sql"], "a statement and a file"),
        (["-f", "missing.sql"], "no such file"),
        ([], "the text has no statement"),
    ],
)
def test_statements_that_cannot_be(taxi: Table, arguments: list[str], problem: str):
    run = underlay("sql", *arguments)
    assert run.code != 0
    assert problem in run.words


def test_without_a_terminal_statements_come_from_stdin(taxi: Table):
    assert underlay("sql", stdin=b"select 1 as a;\nselect 2 as b").text == "a\n1\n\nb\n2\n"


def test_a_named_parameter_is_given_to_the_statements_that_use_it(taxi: Table):
    run = underlay(
        "sql", "select $a as x; select $b as y; select 3 as z", "--param", "a=1", "--param", "b=two", "--json"
    )
    assert run.objects == [{"x": 1}, {"y": "two"}, {"z": 3}]


@pytest.mark.parametrize(
    ("condition", "value", "count"),
    [("pickup >= $v", "2024-01-02", 2), ("fare > $v", "40", 1), ("zone = $v", "JFK", 2), ("id = $v", '"2"', 1)],
)
def test_a_parameter_is_cast_to_what_it_is_compared_with(taxi: Table, condition: str, value: str, count: int):
    run = underlay("sql", f"select count(*) as n from taxi.trips where {condition}", "--param", f"v={value}", "--json")
    assert run.words == ""
    assert run.objects == [{"n": count}]


def test_explain_is_printed_as_a_drawing(taxi: Table):
    run = underlay("sql", "explain select * from taxi.trips where fare > 40")
    assert run.code == 0
    assert "taxi.trips, version 1: reads 1 of 2 blocks" in run.text
    assert "\\n" not in run.text


def test_values_for_a_condition_are_given_beside_it(taxi: Table):
    named = ("--where", "zone = $zone and id > $least", "--param", "zone=JFK", "--param", "least=1")
    assert underlay("scan", "taxi.trips", "--count", *named).text == "1\n"
    assert underlay("scan", "taxi.trips", "--columns", "id", "--json", *named).objects == [{"id": 3}]
    assert underlay("plan", "taxi.trips", "--where", "zone = ?", "--param", "JFK").code == 0
    missing = underlay("scan", "taxi.trips", "--where", "zone = $zone")
    assert missing.code == 2
    assert "zone" in missing.words
