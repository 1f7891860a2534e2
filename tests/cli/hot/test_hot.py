"""`underlay hot`, in words and as JSON, on hot tables and on QuestDB's."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import pyarrow as pa
import pytest

from tests.cli.command import underlay
from tests.hot.questdb.tables import genuine_states, make_table, together
from tests.hot.trips import Place, ids, trips, writing
from underlay.hot.txn.file import TXN_NAME, read_txn, slot_of

DAY = 86_400


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path)
    table = place.create()
    with writing(table) as hot:
        hot.append(trips([1, 2, DAY, DAY + 1, 2 * DAY]))
        hot.append(trips([3], 5))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "underlay.toml").write_text('lake = "lake"\nregistry = "none"\nhot = "hot"\n')
    return place


def test_status_lists_partitions_rows_and_dead_bytes(place: Place):
    run = underlay("hot", "status")
    assert run.code == 0
    assert [line.split()[:4] for line in run.text.splitlines()[1:]] == [
        ["taxi.trips", "2024-01-01.2", "3", "1"],
        ["taxi.trips", "2024-01-02.2", "2", "1"],
        ["taxi.trips", "2024-01-03.2", "1", "1"],
    ]
    assert "6 hot rows" in run.words
    assert "no writer" in run.words
    with writing(place.table()):
        (found,) = underlay("hot", "status", "taxi.trips", "--json").objects
    assert found["writer"] is True
    assert found["rows"] == 6
    assert found["partitions"][0]["dead"] > 0


def test_sql_and_scan_see_hot_rows_where_the_configuration_names_them(place: Place):
    assert "6" in underlay("sql", "select count(*) from taxi.trips").text
    found = underlay("scan", "taxi.trips", "--columns", "id", "--format", "csv").text
    assert sorted(found.split()) == ['"id"', *"012345"]
    assert "hot partitions of" in underlay("plan", "taxi.trips").text


def test_seal_says_what_became_files(place: Place):
    run = underlay("hot", "seal", "taxi.trips", "--before", "2024-01-03")
    assert "sealed 2024-01-01, 2024-01-02: 5 rows in 2 files" in run.text
    assert underlay("hot", "seal", "taxi.trips", "--all", "--json").objects[0]["rows"] == 1
    assert "no hot partition has ended" in underlay("hot", "seal", "taxi.trips").text
    assert ids(place.table(with_hot=False)) == [0, 1, 2, 3, 4, 5]
    assert "no hot rows" in underlay("hot", "status").words


def test_compact_drops_dead_bytes(place: Place):
    found = underlay("hot", "compact", "taxi.trips", "--json").objects[0]
    assert found["bytes_after"] < found["bytes_before"]
    assert len(ids(place.table())) == 6


def test_a_writer_elsewhere_is_an_error_that_says_so(place: Place):
    with writing(place.table()):
        run = underlay("hot", "seal", "taxi.trips", "--all")
    assert run.code > 0
    assert "another writer has the hot partitions" in run.words


def test_show_and_read_need_no_lake(place: Place):
    shown = underlay("hot", "show", place.partitions)
    assert "version 3 by Underlay" in shown.words
    assert len(shown.text.splitlines()) == 4
    found = underlay("hot", "show", place.partitions / TXN_NAME, "--json").objects[0]
    assert found["is_ours"] is True
    assert found["partitions"][0]["row_count"] == 3
    rows = list(csv.DictReader(io.StringIO(underlay("hot", "read", place.partitions).text)))
    assert [int(row["id"]) for row in rows] == [0, 1, 5, 2, 3, 4]
    arrow = underlay(
        "hot", "read", place.partitions, "--partition", "2024-01-02", "--columns", "id", "--format", "arrow"
    )
    assert pa.ipc.open_stream(arrow.output).read_all().to_pydict() == {"id": [2, 3]}


def test_verify_finds_what_is_damaged(place: Place):
    assert underlay("hot", "verify", place.partitions, "--deep").code == 0
    sidecar = place.partitions / "2024-01-02.2" / "_pm"
    sidecar.write_bytes(sidecar.read_bytes()[:-9] + b"\0" * 9)
    (place.partitions / "2024-01-03.2" / "_pm").unlink()
    data = place.partitions / "2024-01-01.2" / "data.parquet"
    os.truncate(data, 100)
    run = underlay("hot", "verify", place.partitions, "--json")
    assert run.code == 1
    assert [one["ok"] for one in run.objects] == [False, False, False]
    assert "next writer makes the sidecar anew" in run.objects[1]["problems"][0]


def test_a_directory_without_txn_and_a_table_without_hot_rows_are_errors(place: Place, tmp_path: Path):
    assert "there is no _txn here" in underlay("hot", "show", tmp_path).words
    place.lake().create_table("a.b", trips([]).schema)
    assert "has no hot partitions here" in underlay("hot", "seal", "a.b").words
    assert not (place.hot / "a").exists(), "a command makes none"
    assert underlay("hot", "status", "taxi.nothing").code > 0


def test_a_torn_txn_is_an_error_with_its_place(place: Place):
    path = place.partitions / TXN_NAME
    data = bytearray(path.read_bytes())
    data[slot_of(data, int.from_bytes(data[:8], "little")).offset + 30] ^= 0xFF
    path.write_bytes(data)
    run = underlay("sql", "select count(*) from taxi.trips")
    assert run.code > 0
    assert "torn" in run.words
    assert str(path) in run.words


def test_rows_of_questdb_are_read_through_its_own_txn_and_sidecars(tmp_path: Path):
    states = [one for one in genuine_states() if one.folder.name == "chain_dead_tail"]
    assert len(states) >= 8
    for number, state in enumerate(states):
        path = make_table(tmp_path / f"db{number}", together(state))
        run = underlay("hot", "read", path, "--columns", "id")
        partition = next(one for one in read_txn(path / TXN_NAME).partitions if one.size_bytes is not None)
        assert len(run.text.splitlines()) == 1 + partition.row_count
        assert "left out" in run.words
    assert underlay("hot", "verify", path).code == 0
    assert "by QuestDB" in underlay("hot", "show", path).words
