"""append and register."""

from __future__ import annotations

import gzip
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command import underlay
from underlay.api.lake import Lake
from underlay.api.table import Table


def test_csv_rows_are_added_by_the_table_s_types(taxi: Table):
    run = underlay("append", "taxi.trips", "trips.csv")
    assert (run.code, run.output) == (0, b"")
    assert run.words == "taxi.trips: version 2, 3 rows added in 2 files\n"
    rows = taxi.to_arrow()
    assert rows.slice(3).equals(rows.slice(0, 3))


def test_a_token_is_appended_once(taxi: Table):
    first = underlay("append", "taxi.trips", "trips.csv", "--token", "t", "--json").objects
    assert first == [{"table": "taxi.trips", "version": 2, "rows": 3, "files": 2, "is_repeat": False}]
    again = underlay("append", "taxi.trips", "trips.csv", "--token", "t", "--json").objects
    assert again == [{"table": "taxi.trips", "version": 2, "rows": 0, "files": 0, "is_repeat": True}]
    assert (
        "version 2 has the rows of this token already"
        in underlay("append", "taxi.trips", "trips.csv", "--token", "t").words
    )
    assert taxi.count() == 6


def test_files_of_every_kind_make_one_version(lake: Lake, place: Path):
    table = lake.create_table("a.b", "n bigint, s string")
    rows = pa.table({"n": [1], "s": ["parquet"]})
    pq.write_table(rows, place / "1.parquet")
    (place / "2.csv").write_text("s,n\ncsv,2\n")
    (place / "3.tsv").write_text("n\ts\n3\ttsv\n")
    (place / "4.jsonl").write_text('{"n": 4, "s": "json"}\n')
    with pa.ipc.new_file(place / "5.feather", rows.schema) as writer:
        writer.write_table(rows)
    with pa.ipc.new_stream(place / "6.arrow", rows.schema) as writer:
        writer.write_table(rows)
    (place / "7.csv.gz").write_bytes(gzip.compress(b"n,s\n7,gz\n"))
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, rows.schema) as writer:
        writer.write_table(rows)
    files = sorted(path.name for path in place.iterdir() if path.name[0].isdigit())
    run = underlay("append", "a.b", *files, "-", stdin=stream.getvalue().to_pybytes())
    assert (run.code, run.words) == (0, "a.b: version 1, 8 rows added in 1 file\n")
    assert sorted(table.to_arrow()["n"].to_pylist()) == [1, 1, 1, 1, 2, 3, 4, 7]


def test_every_type_has_a_form_in_csv_and_json(lake: Lake, place: Path):
    table = lake.create_table(
        "a.b",
        "b boolean, i int8, u uint64, f float, h float16, d decimal(10, 2), s string, y binary, x fixed(2), g uuid,"
        " t date, c time, n timestamp, z timestamptz",
    )
    uuid = "00112233-4455-6677-8899-aabbccddeeff"
    times = "2024-02-29,10:00:00.5,2024-02-29 10:00:00.123456,2024-02-29 10:00:00+02:00"
    (place / "1.csv").write_text(
        f"b,i,u,f,h,d,s,y,x,g,t,c,n,z\ntrue,-5,18446744073709551615,1.5,0.5,1.25,NA,00ff,0a0b,{uuid},{times}\n,,,,,,,,,,,,,\n"
    )
    day, clock, naive, aware = times.split(",")
    (place / "2.json").write_text(
        '{"b":true,"i":-5,"u":18446744073709551615,"f":1.5,"h":0.5,"d":"1.25","s":"NA","y":"00ff","x":"0a0b",'
        f'"g":"{uuid}","t":"{day}","c":"{clock}","n":"{naive}","z":"{aware}"}}\n{{}}\n'
    )
    run = underlay("append", "a.b", "1.csv", "2.json")
    assert (run.code, run.words) == (0, "a.b: version 1, 4 rows added in 1 file\n")
    csv, empty, json, nothing = table.to_arrow().to_pylist()
    assert csv == json
    assert set(empty.values()) == set(nothing.values()) == {None}
    assert (csv["s"], csv["y"], csv["x"], str(csv["g"])) == ("NA", b"\x00\xff", b"\x0a\x0b", uuid)
    assert csv["n"] == datetime(2024, 2, 29, 10, 0, 0, 123456)
    assert csv["z"].isoformat() == "2024-02-29T08:00:00+00:00"


def test_text_that_means_null_is_said(lake: Lake, place: Path):
    table = lake.create_table("a.b", "n int, s string")
    (place / "d.csv").write_text('n,s\nNA,NA\n1,"NA"\n')
    assert underlay("append", "a.b", "d.csv").code == 2
    assert underlay("append", "a.b", "d.csv", "--null", "NA").code == 0
    assert table.to_arrow().to_pylist() == [{"n": None, "s": None}, {"n": 1, "s": "NA"}]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (
            "d.csv",
            "n,t\n1,2024-01-01\n2,x\n",
            "d.csv, row 3 (the header is row 1), column t: invalid value 'x' (expected",
        ),
        ("d.csv", "n\n1\n2.5\n", "d.csv, row 3 (the header is row 1), column n: invalid value '2.5' (expected int64)"),
        ("d.csv", "z\n2024-01-01 00:00:00\n", "column z: expected a zone offset in '2024-01-01 00:00:00'"),
        ("d.csv", "n,s\n1\n", "d.csv: CSV parse error: Row #2: Expected 2 columns, got 1: 1"),
        ("d.csv", "m\n1\n", "d.csv: the table has no column m"),
        ("d.csv", "y\n00\nxyz\n", "d.csv: y: a value in data row 2 does not convert (expected binary, found 'xyz')"),
        ("d.csv", "l\n[1]\n", "d.csv: the column l cannot be read from this kind of file"),
        ("d.csv", "", "d.csv: Empty CSV file"),
        ("d.jsonl", '{"n":1}\n{"n":"x"}\n', "d.jsonl, line 2: column n holds a string (expected a number)"),
        ("d.jsonl", '{"n":1}\n{"n":1.5}\n', "d.jsonl, line 2: Failed to convert JSON to int64, couldn't parse:1.5"),
        ("d.jsonl", '{"n":1}\n{n\n', "d.jsonl, line 2: "),
        ("d.jsonl", '{"t":"2024-01-01"}\n{"t":"2024-01-01T00:00:00Z"}\n', "d.jsonl: t: a value in data row 2 does not"),
        ("d.parquet", "text", "d.parquet: Parquet file size is 4 bytes"),
        ("d.arrow", "text", "d.arrow: "),
    ],
)
def test_a_value_that_does_not_convert_is_named_and_nothing_is_added(lake: Lake, place: Path, name, text, problem):
    table = lake.create_table("a.b", "n bigint, s string, t timestamp, z timestamptz, y binary, l array<int>")
    (place / "good.csv").write_text("n\n1\n")
    (place / name).write_text(text)
    run = underlay("append", "a.b", "good.csv", name)
    assert run.code in (2, 4, 5)
    assert problem in run.words
    assert table.version == 0


def test_a_row_is_counted_from_the_file_s_beginning(lake: Lake, place: Path):
    lake.create_table("a.b", "n bigint not null")
    with pa.ipc.new_file(place / "d.arrow", pa.schema([("n", pa.int64())])) as writer:
        writer.write_batch(pa.record_batch({"n": [1, 2, 3]}))
        writer.write_batch(pa.record_batch({"n": pa.array([4, None], pa.int64())}))
    run = underlay("append", "a.b", "d.arrow")
    assert run.code == 2
    assert "d.arrow: n: a required column holds null in data row 5" in run.words


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (["none.csv"], "none.csv: no such file"),
        (["trips.csv", "none.csv"], "none.csv: no such file"),
        (["."], "is a directory"),
        (["trips.xlsx"], "does not say what it holds"),
        (["-", "-"], "stdin can be read once"),
        (["s3://bucket/x.csv"], "reads files of this machine"),
        (["folder.csv"], "folder.csv: is a directory"),
    ],
)
def test_a_file_that_cannot_be_read(taxi: Table, place: Path, files: list[str], problem: str):
    (place / "folder.csv").mkdir()
    (place / "trips.xlsx").touch()
    run = underlay("append", "taxi.trips", *files)
    assert run.code in (2, 3)
    assert problem in run.words
    assert taxi.version == 1


def test_a_file_without_rows_makes_no_version(taxi: Table, place: Path):
    (place / "none.csv").write_text("id\n")
    assert underlay("append", "taxi.trips", "none.csv").words == "taxi.trips: no rows, so still version 1\n"


def test_files_are_registered_where_they_are(lake: Lake, place: Path):
    table = lake.create_table("a.b", "n bigint")
    for number in range(3):
        pq.write_table(pa.table({"n": [number], "more": ["x"]}), place / f"d{number}.parquet")
    refused = underlay("register", "a.b", "d*.parquet")
    assert refused.code == 2
    assert "3 of 3 files do not match the table" in refused.words
    run = underlay("register", "a.b", "d*.parquet", "--ignore-surplus", "--json")
    assert run.objects == [{"table": "a.b", "version": 1, "rows": 3, "files": 3}]
    assert table.to_arrow()["n"].to_pylist() == [0, 1, 2]
    again = underlay("register", "a.b", "d0.parquet", "--ignore-surplus")
    assert again.code == 2
    assert "already part of the table" in again.words
    assert underlay("register", "a.b", "none*.parquet").code == 3
