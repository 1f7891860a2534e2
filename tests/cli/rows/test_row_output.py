"""Formats, and files that appear whole."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from tests.cli.command import underlay
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.cli.rows import row_writer

ORDERED = "select * from taxi.trips order by id"


def test_a_file_has_the_format_that_its_name_tells(taxi: Table, place: Path):
    rows = taxi.to_arrow()
    for name in ("a.csv", "a.json", "a.ndjson", "a.parquet", "a.arrow", "a.arrows", "a.md"):
        run = underlay("sql", ORDERED, "--output", name)
        assert (run.code, run.output, run.words) == (0, b"", f"{name}: 3 rows\n")
    assert pyarrow.csv.read_csv(place / "a.csv").num_rows == 3
    assert [row["id"] for row in json.loads((place / "a.json").read_text())] == [1, 2, 3]
    assert [json.loads(line)["id"] for line in (place / "a.ndjson").read_text().splitlines()] == [1, 2, 3]
    assert pq.read_table(place / "a.parquet").equals(rows)
    assert pyarrow.feather.read_table(place / "a.arrow").equals(rows)
    assert pa.ipc.open_stream((place / "a.arrows").read_bytes()).read_all().equals(rows)
    assert (place / "a.md").read_text().splitlines()[:2] == [
        "| id | pickup | zone | fare | note |",
        "| ---: | --- | --- | ---: | --- |",
    ]
    assert sorted(path.name for path in place.glob("*a.*")) == sorted(
        ["a.csv", "a.json", "a.ndjson", "a.parquet", "a.arrow", "a.arrows", "a.md"]
    )


def test_a_file_takes_what_is_for_people_too(taxi: Table, place: Path):
    for format in ("table", "vertical"):
        printed = underlay("sql", ORDERED, "--format", format)
        run = underlay("sql", ORDERED, "--format", format, "--output", "rows.txt")
        assert (run.code, run.output, run.words) == (0, b"", printed.words)
        assert (place / "rows.txt").read_bytes() == printed.output
    underlay("sql", f"explain {ORDERED}", "--output", "rows.txt")
    assert "taxi.trips, version 1: reads 2 of 2 blocks in 2 of 2 files\n" in (place / "rows.txt").read_text()


def test_a_format_that_is_given_wins_over_the_name(taxi: Table, place: Path):
    assert underlay("scan", "taxi.trips", "--format", "csv", "-o", "rows.txt", "--limit", 1).code == 0
    assert (place / "rows.txt").read_text().startswith('"id","pickup"')


def test_parquet_goes_through_a_pipe(taxi: Table):
    output = underlay("scan", "taxi.trips", "--format", "parquet").output
    assert pq.read_table(pa.BufferReader(output)).equals(taxi.to_arrow())


def test_a_failure_leaves_the_older_file_and_nothing_else(taxi: Table, place: Path):
    (place / "out.csv").write_text("older")
    run = underlay("sql", "select case when id = 3 then error('no') else 'x' end from taxi.trips", "-o", "out.csv")
    assert run.code != 0
    assert (place / "out.csv").read_text() == "older"
    assert [path.name for path in place.iterdir() if "out" in path.name] == ["out.csv"]


def test_a_file_is_replaced_and_keeps_its_permissions_and_its_link(taxi: Table, place: Path):
    (place / "real.csv").write_text("older")
    (place / "real.csv").chmod(0o640)
    (place / "link.csv").symlink_to("real.csv")
    assert underlay("scan", "taxi.trips", "--columns", "id", "-o", "link.csv").code == 0
    assert (place / "link.csv").is_symlink()
    assert (place / "real.csv").read_text() == '"id"\n1\n2\n3\n'
    assert stat.S_IMODE((place / "real.csv").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("name", "problem"),
    [("rows.xyz", "the format cannot be told"), ("folder.csv", "this is a folder"), ("no/rows.csv", "no such file")],
)
def test_a_file_that_cannot_be(taxi: Table, place: Path, name: str, problem: str):
    (place / "folder.csv").mkdir()
    run = underlay("scan", "taxi.trips", "-o", name)
    assert run.code != 0
    assert problem in run.words
    assert run.output == b""


def test_a_device_is_written_to_and_not_replaced(taxi: Table):
    assert underlay("scan", "taxi.trips", "--format", "csv", "-o", os.devnull).code == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_rows_are_written_as_they_come(taxi: Table, place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_writer, "_GROUP_ROWS", 100)
    assert underlay("sql", "select * from range(1000)", "-o", "r.parquet").code == 0
    assert pq.read_table(place / "r.parquet").num_rows == 1000


def test_what_parquet_cannot_hold_is_refused(taxi: Table, place: Path):
    run = underlay("sql", "select interval 1 day as i", "-o", "i.parquet")
    assert run.code != 0
    assert "Parquet cannot hold" in run.words
    assert not list(place.glob("*i.parquet*"))


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("1e-8::decimal(38,8)", "0.00000001"),
        ("0::decimal(38,8)", "0.00000000"),
        ("123456789012345678901234567890.12345678::decimal(38,8)", "123456789012345678901234567890.12345678"),
        ("9223372036854775807", "9223372036854775807"),
        ("0.1::float", "0.1"),
        ("0.1 + 0.2::double", "0.30000000000000004"),
        ("interval '1 month 2 days 3.000001 seconds'", "P1M2DT3.000001S"),
        ("interval '-1 day'", "P0M-1DT0S"),
        ("true", "true"),
        ("'NULL'", "NULL"),
        ("null", "–"),
        ("''", ""),
    ],
)
def test_no_digit_is_lost_and_null_is_not_a_text(taxi: Table, expression: str, shown: str):
    assert underlay("sql", f"select {expression} as v").text.splitlines()[1].strip() == shown


def test_csv_of_an_interval_is_a_text(taxi: Table):
    assert underlay("sql", "select interval 1 day as i", "--format", "csv").text == '"i"\n"P0M1DT0S"\n'


def test_markdown_escapes_what_would_end_a_cell(taxi: Table):
    run = underlay("sql", "select 'a|b' as x, 'c\nd' as y, null as z", "--format", "markdown")
    assert run.text.splitlines()[2] == "| a\\|b | c<br>d | – |"


def test_an_array_without_rows_is_one(lake: Lake):
    assert json.loads(underlay("sql", "select 1 as n where false", "--format", "json").output) == []
