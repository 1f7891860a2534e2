"""upsert, delete, update, alter and changes."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command import underlay
from underlay.api.lake import Lake
from underlay.api.table import Table

ROWS = pa.table({"id": [1, 2, 3, 4], "zone": ["JFK", "LGA", None, "JFK"], "fare": [10.0, 20.0, 30.0, 4.0]})


@pytest.fixture
def trips(lake: Lake) -> Table:
    return lake.create_table("a.trips", data=ROWS, key=["id"], properties={"block_rows": 2})


def fares(table: Table) -> dict[int, float]:
    rows = table.to_arrow()
    return dict(sorted(zip(rows["id"].to_pylist(), rows["fare"].to_pylist(), strict=True)))


def test_upsert_keeps_columns_that_the_file_lacks(trips: Table, place: Path):
    (place / "fixes.csv").write_text("fare,id\n11,1\n50,5\n")
    run = underlay("upsert", "a.trips", "fixes.csv")
    assert (run.code, run.output) == (0, b"")
    assert run.words.startswith("a.trips: version 2, 1 row inserted and 1 row updated; ")
    assert fares(trips) == {1: 11.0, 2: 20.0, 3: 30.0, 4: 4.0, 5: 50.0}
    assert trips.scan(["zone"], "id = 1").to_arrow()["zone"].to_pylist() == ["JFK"]


def test_upsert_by_another_key_and_once_for_a_token(trips: Table, place: Path):
    pq.write_table(pa.table({"zone": ["LGA"], "fare": [1.0], "id": [2]}), place / "a.parquet")
    for is_repeat in (False, True):
        (done,) = underlay("upsert", "a.trips", "a.parquet", "--key", "zone", "--token", "t", "--json").objects
        assert (done["version"], done["is_repeat"], done["is_done"]) == (2, is_repeat, not is_repeat)
    assert fares(trips)[2] == 1.0


@pytest.mark.parametrize(
    ("arguments", "counts"),
    [
        (("upsert", "a.trips", "fixes.csv"), {"rows_updated": 1, "rows_inserted": 1}),
        (("delete", "a.trips", "--where", "id = 1"), {"rows_deleted": 1, "rows_matched": 1, "blocks_total": 2}),
        (("delete", "a.trips", "--rows", "fixes.csv"), {"rows_deleted": 1}),
        (("delete", "a.trips"), {"rows_deleted": 4}),
        (("update", "a.trips", "--set", "fare=0", "--where", "id = 1"), {"rows_updated": 1, "blocks_read": 1}),
        (("update", "a.trips", "--set", "fare=0"), {"rows_updated": 4}),
    ],
)
def test_a_dry_run_counts_and_changes_nothing(trips: Table, place: Path, arguments, counts):
    (place / "fixes.csv").write_text("fare,id\n11,1\n50,5\n")
    (found,) = underlay(*arguments, "--dry-run", "--json").objects
    assert found | counts == found
    assert (found["table"], found["is_done"], found["version"]) == ("a.trips", False, 1)
    words = underlay(*arguments, "--dry-run").words
    assert words.startswith("a.trips, version 1: would have ")
    assert "blocks read" in words
    assert trips.version == 1


def test_delete_by_condition_with_parameters(trips: Table):
    run = underlay("delete", "a.trips", "--where", "zone = $zone and fare > 5", "--param", "zone=JFK")
    assert run.words.startswith("a.trips: version 2, 1 row deleted; ")
    assert list(fares(trips)) == [2, 3, 4]


def test_delete_by_the_keys_of_a_file(trips: Table, place: Path):
    (place / "gone.csv").write_text("zone\nJFK\nSFO\n")
    assert underlay("delete", "a.trips", "--rows", "gone.csv", "--key", "zone").code == 0
    assert list(fares(trips)) == [2, 3]


def test_other_columns_of_a_file_with_keys_are_ignored(trips: Table, place: Path):
    (place / "gone.csv").write_text("ID,fare,why\n1,not a number,late\n")
    assert underlay("delete", "a.trips", "--rows", "gone.csv").code == 0
    assert list(fares(trips)) == [2, 3, 4]
    (place / "fixes.csv").write_text("ID,Fare\n2,7\n")
    assert underlay("upsert", "a.trips", "fixes.csv").code == 0
    assert fares(trips)[2] == 7


GERMAN = ("--delimiter", ";", "--encoding", "latin-1", "--decimal", ",", "--skip-lines", "1", "--null", "-")


def test_upsert_reads_csv_as_append_does(trips: Table, place: Path):
    (place / "fixes.csv").write_bytes("Beträge\nid;zone;fare\n1;Zürich;11,5\n5;-;0,5\n".encode("latin-1"))
    assert underlay("upsert", "a.trips", "fixes.csv", *GERMAN).code == 0
    assert fares(trips) == {1: 11.5, 2: 20.0, 3: 30.0, 4: 4.0, 5: 0.5}
    assert trips.scan(["zone"], "id in (1, 5)").to_arrow()["zone"].to_pylist() == ["Zürich", None]


def test_rows_without_a_header_have_the_table_s_columns_or_those_named(trips: Table, place: Path):
    (place / "fixes.csv").write_text("1,EWR,11\n")
    assert underlay("upsert", "a.trips", "fixes.csv", "--no-header").code == 0
    assert underlay("upsert", "a.trips", "-", "--columns", "fare, id", stdin=b"12,2\n").code == 0
    assert fares(trips) == {1: 11.0, 2: 12.0, 3: 30.0, 4: 4.0}
    assert trips.scan(["zone"], "id <= 2").to_arrow()["zone"].to_pylist() == ["EWR", "LGA"]
    (place / "gone.csv").write_text("3,any,not a number\n")
    assert underlay("delete", "a.trips", "--rows", "gone.csv", "--no-header").code == 0
    assert underlay("delete", "a.trips", "--rows", "-", "--columns", "id", stdin=b"4\n").code == 0
    assert list(fares(trips)) == [1, 2]


def test_rows_of_folders_with_values_have_them_unless_folders_are_left_alone(trips: Table, place: Path):
    folder = place / "zone=SFO"
    folder.mkdir()
    (folder / "a.csv").write_text("1,9\n")
    assert underlay("upsert", "a.trips", "zone=SFO/a.csv", "--no-header").code == 0
    assert trips.scan(["zone", "fare"], "id = 1").to_arrow().to_pylist() == [{"zone": "SFO", "fare": 9.0}]
    assert underlay("upsert", "a.trips", "zone=SFO/a.csv", "--columns", "id,fare", "--no-hive").code == 0
    (folder / "gone.csv").write_text("id\n1\n2\n")
    assert underlay("delete", "a.trips", "--rows", "zone=SFO/gone.csv", "--key", "id,zone").code == 0
    assert list(fares(trips)) == [2, 3, 4]


def test_a_record_longer_than_allowed_and_options_without_a_file_are_refused(trips: Table, place: Path):
    (place / "fixes.csv").write_text("id,zone\n1," + "x" * 2000 + "\n")
    run = underlay("upsert", "a.trips", "fixes.csv", "--max-record", "1KiB")
    assert run.code != 0
    assert "the record is longer than 1024 bytes" in run.words
    assert underlay("upsert", "a.trips", "fixes.csv", "--max-record", "4KiB").code == 0
    run = underlay("delete", "a.trips", "--delimiter", ";", "--where", "id = 1")
    assert "are for --rows" in run.words
    run = underlay("upsert", "a.trips", "fixes.csv", "--format", "json", "--delimiter", ";")
    assert "options of CSV and --format json" in run.words
    assert trips.version == 2


def test_update_with_expressions(trips: Table):
    run = underlay("update", "a.trips", "--set", "fare = fare * 2", "--set", "zone='x=y'", "--where", "id <= 2")
    assert run.words.startswith("a.trips: version 2, 2 rows updated; ")
    assert fares(trips) == {1: 20.0, 2: 40.0, 3: 30.0, 4: 4.0}
    assert trips.count("zone = 'x=y'") == 2


@pytest.mark.parametrize("arguments", [("delete", "a.trips"), ("update", "a.trips", "--set", "fare=0")])
def test_all_rows_are_changed_only_when_that_is_confirmed(trips: Table, arguments):
    run = underlay(*arguments)
    assert run.code == 2
    assert "a.trips: all 4 rows would be " in run.words
    assert "add --yes to do it" in run.words
    assert trips.version == 1
    assert underlay(*arguments, "--yes").code == 0
    assert trips.version == 2


def test_alter(trips: Table):
    run = underlay("alter", "a.trips", "add column tip double default 0.5", "rename column zone to area")
    assert (run.code, run.words) == (
        0,
        "a.trips: version 2; add column tip double default 0.5; rename column zone to area\n",
    )
    assert trips.schema.names == ["id", "area", "fare", "tip"]
    (found,) = underlay("alter", "a.trips", "drop column tip", "--dry-run", "--json").objects
    assert found == {
        "table": "a.trips",
        "is_done": False,
        "version": 2,
        "what": "a.trips, version 2: one commit would drop column tip; no data file is rewritten",
    }
    run = underlay("alter", "a.trips", "drop column tip")
    assert (run.code, trips.version) == (2, 2)
    assert "drop column tip" in run.words
    assert underlay("alter", "a.trips", "drop column tip", "--yes", "--json").objects == [
        {"table": "a.trips", "is_done": True, "version": 3}
    ]
    assert trips.schema.names == ["id", "area", "fare"]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        (["add column tip doubel"], "line 1, column 1: tip: no such type"),
        (["bogus column x"], "line 1, column 1: not SQL"),
        (["drop column nothing"], "line 1, column 13: there is no column nothing"),
        (["drop column"], "line 1, column 12: the statement ends too early"),
        (["drop\n column nothing"], "line 2, column 9: there is no column nothing"),
        (["add column a int", "drop column nothing"], "change 2, line 1, column 13: there is no column nothing"),
        (["add column\na int", "drop x y", "drop column z"], "change 2, line 1, column 8: not SQL"),
        (["add constraint c check (nofield > 1)"], "line 1, column 25: check c: there is no column nofield"),
    ],
)
def test_errors_of_alter_have_their_place_in_what_was_typed(trips: Table, changes: list[str], found: str):
    run = underlay("alter", "a.trips", *changes, "--yes")
    assert run.code == 2
    assert run.words.startswith(f"error: {found}"), run.words


def test_changes_between_versions(trips: Table):
    trips.update({"fare": "fare + 1"}, "id = 1")
    trips.delete("id = 2")
    found = underlay("changes", "a.trips", "1", "--columns", "id,fare", "--json").objects
    assert [(one["_version"], one["_change"], one["id"], one["fare"]) for one in found] == [
        (2, "delete", 1, 10.0),
        (2, "insert", 1, 11.0),
        (3, "delete", 2, 20.0),
    ]
    assert len(underlay("changes", "a.trips", "1", "2", "--json").objects) == 2
    assert (
        underlay("changes", "a.trips", "1", "--dry-run").text
        == "3 rows inserted or deleted after version 1, up to version 3\n"
    )
    assert underlay("changes", "a.trips", "1", "2", "--dry-run", "--json").objects == [
        {"table": "a.trips", "from": 1, "to": 2, "rows": 2}
    ]


def parquet_of(rows: pa.Table) -> bytes:
    file = BytesIO()
    pq.write_table(rows, file)
    return file.getvalue()


@pytest.mark.parametrize(
    "piped",
    [
        b"fare,id\n11,1\n50,5\n",
        b'{"id": 1, "fare": 11}\n{"id": 5, "fare": 50}\n',
        parquet_of(pa.table({"id": [1, 5], "fare": [11.0, 50.0]})),
    ],
    ids=["csv", "json", "parquet"],
)
def test_rows_come_from_stdin_too(trips: Table, place: Path, piped: bytes):
    assert underlay("upsert", "a.trips", "-", stdin=piped).words.startswith("a.trips: version 2, 1 row inserted and 1 ")
    assert fares(trips) == {1: 11.0, 2: 20.0, 3: 30.0, 4: 4.0, 5: 50.0}
    assert trips.scan(["zone"], "id = 1").to_arrow()["zone"].to_pylist() == ["JFK"]
    (done,) = underlay("delete", "a.trips", "--rows", "-", "--json", stdin=piped).objects
    assert (done["rows_deleted"], fares(trips)) == (2, {2: 20.0, 3: 30.0, 4: 4.0})


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("update", "a.trips", "--set", "fare", "--where", "id = 1"), 2, "not a column and its value"),
        (("update", "a.trips", "--set", "fare=1", "--set", "fare=2"), 2, "a column is set twice"),
        (("update", "a.trips", "--set", "nope=1", "--yes"), 2, "there is no column nope"),
        (("update", "a.trips", "--where", "id = 1"), 2, "--set"),
        (("delete", "a.trips", "--where", "nope = 1"), 2, "there is no column nope"),
        (("delete", "a.trips", "--key", "id", "--yes"), 2, "--key, --format and the options of files are for --rows"),
        (("delete", "a.trips@1", "--yes"), 2, "a version never changes"),
        (("upsert", "a.trips", "twice.csv"), 2, "id"),
        (("upsert", "a.trips", "-"), 4, "stdin: is empty"),
        (("upsert", "a.trips", "nope.csv"), 3, "nope.csv"),
        (("alter", "a.trips", "drop column nope", "--yes"), 2, "there is no column nope"),
        (("alter", "a.trips", "shrink it"), 2, "not SQL that is understood"),
        (("alter", "a.trips", "add", "column", "tip", "double"), 2, "Put each in quotes"),
        (("alter", "a.trips", "add column tip foo"), 2, "tip: no such type (found foo)"),
        (("alter", "a.trips", "drop column id", "--yes"), 2, "in SQL DROP PRIMARY KEY"),
        (("changes", "a.trips", "7"), 2, ""),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(trips: Table, place: Path, arguments, code, words):
    (place / "twice.csv").write_text("id,fare\n1,1\n1,2\n")
    run = underlay(*arguments)
    assert run.code == code or (code, words) == (2, "")
    assert run.code != 0
    assert words in run.words
    assert trips.version == 1


def test_sql_changes_tables_and_prints_the_counts(trips: Table):
    run = underlay("sql", "update a.trips set fare = 0 where id = $id", "--param", "id=1")
    names = "num_affected_rows num_updated_rows num_deleted_rows num_inserted_rows version"
    assert run.text.split() == [*names.split(), "1", "1", "0", "0", "2"]
    many = "delete from a.trips where id = 1; insert into a.trips (id) values (9); select count(*) as n from a.trips"
    assert underlay("sql", many, "--json").objects[-1] == {"n": 4}
    assert "would have 1 row deleted" in underlay("sql", "explain delete from a.trips where id = 9").text
    refused = underlay("sql", "delete from a.trips where nope = 1")
    assert (refused.code, trips.count()) == (2, 4)
    assert "line 1, column 27: there is no column nope" in refused.words
