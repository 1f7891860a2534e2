"""append and register."""

from __future__ import annotations

import gzip
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command import underlay
from tests.store.servers import S3Server
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
    (place / "7.csv.gz").write_bytes(gzip.compress(b"n,s\n7,gz\n", mtime=0))
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
            "d.csv, line 3: column t: 'x' is not a valid timestamp(us)",
        ),
        ("d.csv", "n\n1\n2.5\n", "d.csv, line 3: column n: '2.5' is not a valid int64"),
        (
            "d.csv",
            "z\n2024-01-01 00:00:00\n",
            "line 2: column z: '2024-01-01 00:00:00' is not a valid timestamp(us, UTC)",
        ),
        ("d.csv", "n,s\n1\n", "d.csv, line 2: expected 2 fields, found 1"),
        ("d.csv", "m\n1\n", "d.csv, line 1: the table has no column m"),
        ("d.csv", "y\n00\nxyz\n", "d.csv, line 3: column y: 'xyz' is not a valid binary"),
        ("d.csv", "l\n[1]\n", "d.csv: l: CSV has no nested columns"),
        ("d.csv", "", "d.csv: is empty: a CSV file begins with a header"),
        ("d.jsonl", '{"n":1}\n{"n":"x"}\n', "d.jsonl, line 2: column n: expected int, found str"),
        ("d.jsonl", '{"n":1}\n{"n":1.5}\n', "d.jsonl, line 2: column n: expected int, found float"),
        ("d.jsonl", '{"n":1}\n{n\n', "d.jsonl, line 2: "),
        (
            "d.jsonl",
            '{"t":"2024-01-01"}\n{"t":"2024-01-01T00:00:00Z"}\n',
            "d.jsonl, line 2: column t: '2024-01-01T00:00:00Z' is not",
        ),
        ("d.parquet", "text", "d.parquet: not a readable Parquet file (found Parquet file size is 4 bytes"),
        ("d.arrow", "text", "d.arrow: not a readable Arrow IPC file or stream"),
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


def stream_of(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()


def file_of(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()


def parquet_of(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    return sink.getvalue().to_pybytes()


ROWS = pa.table({"n": [1, 2], "s": ["a", None]})
MANY = "".join(f"{n},x\n" for n in range(100_000))


@pytest.mark.parametrize(
    ("data", "options", "count"),
    [
        (stream_of(ROWS), [], 2),
        (stream_of(ROWS), ["--format", "arrow"], 2),
        (file_of(ROWS), [], 2),
        (parquet_of(ROWS), [], 2),
        (parquet_of(ROWS), ["--format", "parquet"], 2),
        (b"n,s\n1,a\n2,\n", [], 2),
        (b"n;s\n1;a\n2;\n", [], 2),
        (b"n\ts\n1\ta\n", ["--format", "tsv"], 1),
        (b'{"n": 1}\n{"s": "a"}\n', [], 2),
        (b'\n {"n": 1}\n', ["--format", "json"], 1),
        (gzip.compress(b"n,s\n1,a\n", mtime=0), ["--format", "csv"], 1),
        (b"n,s\n" + MANY.encode(), [], 100_000),
    ],
)
def test_stdin_is_read_as_its_first_bytes_or_the_option_say(lake: Lake, data: bytes, options: list[str], count: int):
    table = lake.create_table("a.b", "n bigint, s string")
    run = underlay("append", "a.b", "-", *options, stdin=data)
    assert run.code == 0, run.words
    assert table.count() == count


@pytest.mark.parametrize(
    ("data", "options", "problem"),
    [
        (b"n,s\n1,a\nx,b\n", [], "stdin, line 3: column n: 'x' is not a valid int64"),
        (b"", [], "stdin: is empty: a CSV file begins with a header"),
        (b"\x00\x01", [], "the format of stdin cannot be detected"),
        (gzip.compress(b"n,s\n1,a\n", mtime=0), [], "Name it with --format."),
        (b"PAR1....", [], "stdin: not a readable Parquet file"),
        (b"n,s\n", ["--format", "parquet"], "stdin: not a readable Parquet file"),
        (b"ARROW1..", ["--format", "arrow"], "stdin: not a readable Arrow IPC file or stream"),
        (stream_of(ROWS)[:-20], [], "stdin: not a readable Arrow IPC file or stream"),
        (b"n,s\n1,a\n", ["--format", "arrow"], "stdin: not a readable Arrow IPC file or stream"),
    ],
)
def test_stdin_that_cannot_be_read_adds_nothing(lake: Lake, data: bytes, options: list[str], problem: str):
    table = lake.create_table("a.b", "n bigint, s string")
    run = underlay("append", "a.b", "-", *options, stdin=data)
    assert run.code in (2, 4, 5)
    assert problem in run.words
    assert table.version == 0


def test_append_and_ingest_read_the_same_rows_of_a_file(lake: Lake, place: Path):
    schema = "n bigint, s string, t timestamp"
    (place / "d.csv").write_text('s;n;t\n"a;b"; 7 ;2024-01-01\n;0x1F;2024-01-01T10:00:00\n\n"";;\n')
    lake.create_table("a.b", schema)
    assert underlay("append", "a.b", "d.csv").code == 0
    assert underlay("ingest", "a.c", "d.csv", "--schema", schema).code == 0
    assert lake.table("a.b").to_arrow().equals(lake.table("a.c").to_arrow())


def test_a_pattern_stands_for_all_its_files_and_a_format_for_any_name(lake: Lake, place: Path):
    table = lake.create_table("a.b", "n bigint")
    for number in range(3):
        (place / f"d{number}.txt").write_text(f"n\n{number}\n")
    assert underlay("append", "a.b", "d*.txt", "--format", "csv").words.startswith("a.b: version 1, 3 rows added")
    assert sorted(table.to_arrow()["n"].to_pylist()) == [0, 1, 2]


def test_a_row_is_counted_from_the_file_s_beginning(lake: Lake, place: Path):
    lake.create_table("a.b", "n bigint not null")
    with pa.ipc.new_file(place / "d.arrow", pa.schema([("n", pa.int64())])) as writer:
        writer.write_batch(pa.record_batch({"n": [1, 2, 3]}))
        writer.write_batch(pa.record_batch({"n": pa.array([4, None], pa.int64())}))
    run = underlay("append", "a.b", "d.arrow")
    assert run.code == 2
    assert "d.arrow, row 5: column n: null in a required column" in run.words


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (["none.csv"], "none.csv: no such file"),
        (["trips.csv", "none.csv"], "none.csv: no such file"),
        (["."], ".: is a folder, not a file"),
        (["trips.xlsx"], "trips.xlsx: the format cannot be told from the name"),
        (["-", "-"], "stdin can be read only once"),
        (["none*.csv"], "none*.csv: no source matches"),
        (["folder.csv"], "folder.csv: is a folder, not a file"),
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


def test_known_files_are_skipped_refreshed_and_unregistered(lake: Lake, place: Path):
    table = lake.create_table("a.b", "n bigint, year int")
    (place / "in" / "year=2024").mkdir(parents=True)
    for number in range(2):
        pq.write_table(pa.table({"n": [number]}), place / "in" / "year=2024" / f"{number}.parquet")
    assert underlay("register", "a.b", "in/**/0.parquet").code == 0
    run = underlay("register", "a.b", "in", "--skip-known")
    assert "1 file with 1 row registered; 1 file known already" in run.words
    pq.write_table(pa.table({"n": [7, 8]}), place / "in" / "year=2024" / "0.parquet")
    refreshed = underlay("register", "a.b", "in", "--refresh", "--json")
    assert refreshed.objects == [{"table": "a.b", "version": 3, "rows": 2, "files": 1, "known": 1, "replaced": 1}]
    assert "nothing to register" in underlay("register", "a.b", "in", "--refresh").words
    assert sorted(table.to_arrow()["n"].to_pylist()) == [1, 7, 8]
    assert set(table.to_arrow()["year"].to_pylist()) == {2024}
    (place / "in" / "year=2024" / "0.parquet").unlink()
    gone = underlay("unregister", "a.b", "in/year=2024/0.parquet", "--json")
    assert gone.objects == [{"table": "a.b", "version": 4, "rows": 2, "files": 1}]
    assert underlay("unregister", "a.b", "in/year=2024/0.parquet").code == 3
    assert "1 file with 1 row unregistered" in underlay("unregister", "a.b", "in").words
    assert underlay("register", "a.b", "in", "--no-hive").code == 0
    assert table.to_arrow()["year"].to_pylist() == [None]


def test_a_table_that_is_made_from_files_has_the_columns_of_their_paths(lake: Lake, place: Path):
    (place / "in" / "year=2024" / "zone=a%20b").mkdir(parents=True)
    (place / "in" / "year=2024" / "zone=a%20b" / "x.csv").write_text("n\n1\n")
    assert underlay("create", "a.b", "--from", "in/**/*.csv").code == 0
    assert underlay("append", "a.b", "in/**/*.csv").code == 0
    assert lake.table("a.b").to_arrow().to_pylist() == [{"n": 1, "year": 2024, "zone": "a b"}]
    assert underlay("append", "a.b", "in/**/*.csv", "--no-hive").code == 0
    assert lake.table("a.b").to_arrow().to_pylist()[1] == {"n": 1, "year": None, "zone": None}


def test_the_store_of_files_has_options_of_its_own(lake: Lake, place: Path):
    lake.create_table("a.b", "n bigint")
    run = underlay("append", "a.b", "s3://bucket/x.csv", "--source-option", "endpoint=nowhere", "--source-option", "no")
    assert (run.code, lake.table("a.b").version) == (2, 0)
    assert "--source-option" in run.words
    run = underlay("append", "a.b", "s3://bucket/x.csv", "--source-option", "no_such_option=1")
    assert (run.code, lake.table("a.b").version) == (2, 0)
    assert "no_such_option" in run.words


def test_tables_are_made_of_objects_and_take_their_rows(
    seaweedfs: S3Server, place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("UNDERLAY_REGISTRY", "none")
    store = seaweedfs.open()
    store.put("in.csv", b"n,s\n1,a\n2,b\n")
    options = [text for name, value in seaweedfs.options.items() for text in ("--option", f"{name}={value}")]
    lake = ["--lake", f"{store.url}/lake", *options]
    assert underlay("init", f"{store.url}/lake", *options).code == 0
    assert underlay("create", "a.b", "--from", f"{store.url}/in.csv", *lake).code == 0
    assert underlay("append", "a.b", f"{store.url}/in.csv", *lake).code == 0
    assert underlay("sql", "select sum(n) as n from a.b", "--format", "csv", *lake).text == '"n"\n3\n'
