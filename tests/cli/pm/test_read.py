"""`underlay pm read`: rows through the sidecar, as CSV and as Arrow."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command import installed, underlay
from tests.cli.conftest import Pair
from tests.genuine import GENERATIONS, fixtures, label
from underlay.cli.pm.read import as_csv_column, csv_type


def chain_states() -> list[tuple[Path, int, int]]:
    """(folder, state, Parquet size) of every committed version that the last sidecar of a case still has."""
    found = []
    for version in GENERATIONS:
        for folder in sorted(p.parent for p in (fixtures() / "questdb" / version).glob("*/_pm.1")):
            states = json.loads((folder / "case.json").read_text())["snapshots"]
            for number, state in enumerate(states):
                if state["directory"] == states[-1]["directory"] and "set back" not in state.get("note", ""):
                    found.append((folder, number, state["txn_partition"]["word3"]))
    return found


# Every version of every chain is read in pm/test_genuine.py.
SOME_STATES = chain_states()[::12]


@pytest.mark.parametrize(
    ("folder", "state", "size"), SOME_STATES, ids=lambda v: label(v) if hasattr(v, "parts") else str(v)
)
def test_each_version_of_a_chain_has_the_rows_it_had(folder: Path, state: int, size: int):
    run = underlay(
        "pm", "read", folder / "_pm", "--parquet", folder / "data.parquet", "--version-size", size, "--format", "arrow"
    )
    assert run.code == 0
    table = pa.ipc.open_stream(run.output).read_all()
    expected = json.loads((folder / f"rows.{state}.json").read_text())
    for index, column in enumerate(expected["columns"]):
        values = table[column["name"]]
        if column["type"] == "TIMESTAMP":
            values = [text.replace(" ", "T") for text in values.cast(pa.string()).to_pylist()]
        else:
            values = values.to_pylist()
        assert values == [row[index] for row in expected["rows"]]


def test_arrow_output_is_the_table(trips: Pair):
    run = installed("pm", "read", trips.sidecar, "--parquet", trips.data, "--format", "arrow")
    assert run.returncode == 0
    assert pa.ipc.open_stream(run.stdout).read_all().equals(trips.table)


def test_csv_tells_null_from_empty_text(trips: Pair):
    run = underlay("pm", "read", trips.sidecar, "--parquet", trips.data, "--columns", "zone,n", "--row-groups", "1")
    assert run.code == 0
    assert run.text == '"zone","n"\n"a",5\n,6\n"",7\n"d",8\n"e""f",9\n'


def test_row_groups_come_in_the_order_asked_for(trips: Pair):
    run = underlay("pm", "read", trips.sidecar, "--parquet", trips.data, "--columns", "n", "--row-groups", "3,0")
    assert run.text.split()[1:] == [str(n) for n in (*range(15, 20), *range(5))]


def test_types_that_the_sidecar_cannot_tell_are_noted_on_stderr(trips: Pair):
    run = underlay("pm", "read", trips.sidecar, "--parquet", trips.data)
    assert "read as their physical type" in run.words
    assert ": n (" in run.words
    run = underlay("pm", "read", trips.sidecar, "--parquet", trips.data, "--schema-from", trips.data)
    assert (run.code, run.words) == (0, "")


SAME_IN_JSON = {"BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "SYMBOL", "STRING", "VARCHAR", "UUID", "DECIMAL"}


@pytest.mark.parametrize("case", ["all_types", "all_types_nulls"])
@pytest.mark.parametrize("version", list(GENERATIONS))
def test_questdbs_types_are_written_as_the_server_prints_them(version: str, case: str):
    folder = fixtures() / "questdb" / version / case
    run = underlay("pm", "read", folder / "_pm", "--parquet", folder / "data.parquet")
    assert run.code == 0
    header, *rows = csv.reader(io.StringIO(run.text, newline=""))
    expected = json.loads((folder / "rows.json").read_text())
    assert len(rows) == len(expected["rows"])
    compared = 0
    for index, column in enumerate(expected["columns"]):
        if column["type"].partition("(")[0] in SAME_IN_JSON:
            at = header.index(column["name"])
            assert [row[at] for row in rows] == [as_json_shows(row[index]) for row in expected["rows"]], column
            compared += 1
    assert compared >= 14


def as_json_shows(value: object) -> str:
    return "" if value is None else json.dumps(value) if isinstance(value, bool) else str(value)


NANOS = 1_700_000_000_123_456_789
KINDS = [
    (pa.array([b"\x00\xff", b"", None]), ["00ff", "", None]),
    (pa.array([b"ab", None], pa.binary(2)), ["6162", None]),
    (pa.array([b"a", None], pa.binary_view()), ["61", None]),
    (pa.array(["a", None], pa.string_view()), ["a", None]),
    (pa.array([UUID(int=5).bytes, None], pa.uuid()), [str(UUID(int=5)), None]),
    (pa.array([[1, None], [], None]), ["[1, null]", "[]", None]),
    (pa.array([{"a": "é", "b": b"\x01"}]), ['{"a": "é", "b": "01"}']),
    (pa.array([[NANOS]], pa.list_(pa.timestamp("ns"))), ['["2023-11-14 22:13:20.123456789"]']),
    (pa.array([{"t": 2**62}], pa.struct([("t", pa.timestamp("us"))])), None),
    (pa.array([[("k", Decimal("1.50"))]], pa.map_(pa.string(), pa.decimal128(5, 2))), ['[["k", "1.50"]]']),
    (pa.array([[[UUID(int=5).bytes]]], pa.list_(pa.list_(pa.binary(16)))), [f'[["{UUID(int=5).hex}"]]']),
    (pa.array(["x", None, "x"]).dictionary_encode(), ["x", None, "x"]),
    (pa.array([b"x", None]).dictionary_encode(), ["78", None]),
    (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), None),
    (pa.array([1.5], pa.float16()), [1.5]),
    (pa.array([Decimal("0.10")], pa.decimal256(76, 2)), [Decimal("0.10")]),
]


@pytest.mark.parametrize(("values", "expected"), KINDS, ids=[str(values.type) for values, _ in KINDS])
def test_every_arrow_type_has_a_csv_form(values: pa.Array, expected: list | None, tmp_path: Path):
    kind = csv_type(values.type)
    column = as_csv_column(values, kind)
    assert column.type == kind
    if expected is not None:
        assert column.to_pylist() == expected
    pa.csv.write_csv(pa.table([column], ["x"]), tmp_path / "x.csv")


def test_a_nested_file_is_written_with_the_schema_of_its_footer(tmp_path: Path):
    table = pa.table({"l": [[1, 2], None], "s": [{"a": 1, "b": "x"}, None]})
    data, sidecar = tmp_path / "n.parquet", tmp_path / "n.pm"
    pq.write_table(table, data)
    assert underlay("pm", "build", data).code == 0
    run = underlay("pm", "read", sidecar, "--parquet", data, "--schema-from", data)
    rows = list(csv.reader(io.StringIO(run.text)))
    assert rows == [["l", "s"], ["[1, 2]", '{"a": 1, "b": "x"}'], ["", ""]]


def test_a_name_with_a_comma_is_chosen_in_quotes(tmp_path: Path):
    data = tmp_path / "c.parquet"
    pq.write_table(pa.table({"a,b": ["x"], "c": ["y"]}), data)
    assert underlay("pm", "build", data).code == 0
    run = underlay("pm", "read", tmp_path / "c.pm", "--parquet", data, "--columns", 'c,"a,b"')
    assert run.text == '"c","a,b"\n"y","x"\n'


def test_what_cannot_be_read_is_said_without_a_traceback(trips: Pair, tmp_path: Path):
    empty, zeros = tmp_path / "empty", tmp_path / "zeros"
    empty.touch()
    zeros.write_bytes(bytes(trips.data.stat().st_size))
    of = ["--parquet", trips.data]
    cases = [
        (2, "no such row group (expected 0 to 3, found 4)", [*of, "--row-groups", "4"]),
        (2, "no such row group", [*of, "--row-groups", "-1"]),
        (2, "--row-groups takes numbers", [*of, "--row-groups", "0,,1"]),
        (2, "--row-groups takes numbers", [*of, "--row-groups", ""]),
        (2, "there is no column nope", [*of, "--columns", "n,nope"]),
        (2, "--columns takes names", [*of, "--columns", ","]),
        (3, "no version of 5 bytes", [*of, "--version-size", "5"]),
        (2, "is not one of", [*of, "--format", "xml"]),
        (3, "no such file or directory", ["--parquet", tmp_path / "none"]),
        (7, "is a directory", ["--parquet", tmp_path]),
        (4, "shorter than the version", ["--parquet", empty]),
        (4, "shorter than the version", ["--parquet", trips.sidecar]),
        (4, "does not decode", ["--parquet", zeros]),
        (4, "this is not a Parquet file", [*of, "--schema-from", trips.sidecar]),
    ]
    for code, words, arguments in cases:
        run = underlay("pm", "read", trips.sidecar, *arguments)
        assert words in run.words
        assert "Traceback" not in run.words
        assert run.code == code
