"""`underlay pm show`, `pm dump` and `pm versions`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import underlay
from tests.cli.conftest import Pair
from tests.pm.examples import patched, sidecar_bytes, version
from underlay.pm.dump import dump
from underlay.pm.file import read_sidecar
from underlay.pm.format.encode import append
from underlay.pm.format.sidecar import decode


def test_show_has_columns_and_row_groups(trips: Pair):
    run = underlay("pm", "show", trips.sidecar)
    assert (run.code, run.words) == (0, "")
    lines = run.text.splitlines()
    assert lines[0] == f"{trips.sidecar}: {trips.sidecar.stat().st_size} B, 4 row groups, 20 rows"
    assert f"{trips.data.stat().st_size} bytes" in lines[1]
    assert [line.split()[1] for line in lines if "def 1 rep 0" in line] == ["n", "zone", "pickup"]


def test_show_column_has_its_statistics(trips: Pair):
    text = underlay("pm", "show", trips.sidecar, "--column", "n").text
    rows = [line.split()[:5] for line in text[text.index("statistics of n:") :].splitlines()[2:6]]
    assert rows == [[str(g), "5", "0", str(5 * g), str(5 * g + 4)] for g in range(4)]


def test_show_json_has_every_column_or_the_chosen(trips: Pair):
    (everything,) = underlay("pm", "show", trips.sidecar, "--json").objects
    assert [column["name"] for column in everything["columns"]] == trips.table.column_names
    assert (everything["row_groups"], everything["rows"]) == (4, 20)
    assert everything["parquet_size"] == trips.data.stat().st_size
    (chosen,) = underlay("pm", "show", trips.sidecar, "--json", "--column", "zone").objects
    assert [chunk["null_count"] for chunk in chosen["columns"][0]["chunks"]] == [1, 1, 1, 1]


def test_show_takes_many_files_and_reports_the_bad_one(trips: Pair, tmp_path: Path):
    run = underlay("pm", "show", trips.sidecar, tmp_path / "none.pm", trips.sidecar, "--json")
    assert run.code == 3
    assert len(run.objects) == 2


def test_dump_prints_offset_field_and_value(trips: Pair):
    run = underlay("pm", "dump", trips.sidecar)
    lines = [line.split("\t") for line in run.text.splitlines()]
    expected = dump(read_sidecar(trips.sidecar))
    assert [(int(offset), field) for offset, field, _ in lines] == [(line.offset, line.field) for line in expected]
    assert underlay("pm", "dump", trips.sidecar, "--json").objects == [line._asdict() for line in expected]


def test_versions_lists_the_chain_newest_first(fixtures: Path):
    folder = fixtures / "questdb" / "10.0.0" / "chain3"
    states = json.loads((folder / "case.json").read_text())["snapshots"]
    run = underlay("pm", "versions", folder / "_pm", "--json")
    assert [(row["parquet_size"], row["rows"]) for row in run.objects] == [
        (state["txn_partition"]["word3"], state["txn_partition"]["rows"]) for state in states[::-1]
    ]
    assert {row["file"] for row in run.objects} == {str(folder / "_pm")}
    assert len(underlay("pm", "versions", folder / "_pm").text.splitlines()) == 1 + len(states)


@pytest.mark.parametrize("command", ["show", "dump", "versions"])
def test_what_is_no_sidecar_is_said_without_a_traceback(trips: Pair, tmp_path: Path, command: str):
    cut, empty = tmp_path / "cut", tmp_path / "empty"
    cut.write_bytes(trips.sidecar.read_bytes()[:100])
    empty.touch()
    cases = {tmp_path / "none": 3, tmp_path: 3, cut: 4, empty: 4, trips.data: 2}
    for path, code in cases.items():
        run = underlay("pm", command, path)
        assert (run.code, run.output) == (code, b"")
        assert run.words.startswith(f"error: {path}: ")
        assert "Traceback" not in run.words
    assert "this is a Parquet file, not a sidecar" in run.words


def test_an_unknown_column_or_version_is_said(trips: Pair):
    run = underlay("pm", "show", trips.sidecar, "--column", "nope")
    assert (run.code, run.output) == (2, b"")
    assert "there is no column nope. Columns: n, zone, pickup." in run.words
    run = underlay("pm", "dump", trips.sidecar, "--version-size", 5)
    assert run.code == 3
    assert f'"underlay pm versions {trips.sidecar}" lists them.' in run.words


def test_an_older_version_is_reached_behind_one_that_cannot_be_read(tmp_path: Path):
    data = sidecar_bytes()
    tail = append(decode(data), [0, 1, 2], version(900, seq_txn=1))
    future = patched(data + tail.data, len(data) + 32, "Q", 1 << 40)
    path = tmp_path / "_pm"
    path.write_bytes(patched(future, 0, "Q", tail.size))
    assert underlay("pm", "show", path).code == 5
    assert underlay("pm", "show", path, "--version-size", "708").code == 0
    assert underlay("pm", "dump", path, "--version-size", "708").code == 0
    run = underlay("pm", "versions", path, "--json")
    newest, first = (json.loads(line) for line in run.output.splitlines())
    assert (run.code, newest["rows"], first["rows"]) == (0, None, 9)
    assert "does not know" in newest["error"]
    assert b"cannot be read" in underlay("pm", "versions", path).output
