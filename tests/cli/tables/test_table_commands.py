"""create, show, history, tag, rollback."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command import underlay
from tests.cli.conftest import TRIPS
from underlay.api.lake import Lake
from underlay.api.table import Table


def test_create_from_text_with_all_that_a_table_has(lake: Lake):
    run = underlay(
        *["create", "taxi.trips", "--schema", "id bigint not null comment 'the key', at timestamp, zone string"],
        *["--key", "id", "--sort-by", "at desc nulls last", "--sort-by", "zone", "--partition-by", "month(at)"],
        *["--partition-by", "bucket(16, id)", "--comment", "Cabs", "--property", "codec=snappy", "--json"],
    )
    assert run.code == 0
    [table] = run.objects
    assert table["columns"][0] == {
        "id": 1,
        "name": "id",
        "type": "int64",
        "is_required": True,
        "default": None,
        "comment": "the key",
    }
    assert (table["key"], table["sort_by"]) == (["id"], ["at desc nulls last", "zone"])
    assert (table["partition_by"], table["properties"]) == (["month(at)", "bucket(16, id)"], {"codec": "snappy"})
    assert (table["version"], table["rows"], table["comment"]) == (0, 0, "Cabs")
    assert underlay("show", "taxi.trips", "--json").objects == [table]


def test_show_tells_checks(lake: Lake):
    table = lake.create_table("taxi.trips", "id bigint, fare double")
    with table.evolve() as change:
        change.add_check("not negative", "fare >= 0")
    assert underlay("show", "taxi.trips", "--json").objects[0]["checks"] == {"not negative": "fare >= 0"}
    assert "not negative: fare >= 0" in underlay("show", "taxi.trips").text


def test_create_from_a_file_with_text(lake: Lake, place: Path):
    (place / "trips.sql").write_text("create table x (id bigint not null,\n  tags array<string>);\n")
    assert underlay("create", "a.b", "--schema-file", "trips.sql").words == "a.b: a new table without rows\n"
    assert lake.table("a.b").schema.field("tags").type.value_type == pa.string()
    (place / "bad.sql").write_text("id bigint,,")
    run = underlay("create", "a.c", "--schema-file", "bad.sql")
    assert run.code == 2
    assert run.words.startswith("error: bad.sql: line 1, column 11: not a list of columns")
    assert underlay("create", "a.c", "--schema-file", "none.sql").code == 3


def test_create_from_data_says_what_was_guessed(lake: Lake, place: Path):
    (place / "trips.csv").write_text(TRIPS)
    run = underlay("create", "taxi.trips", "--from", "trips.csv")
    assert (run.code, run.output) == (0, b"")
    assert "  id int64,\n  pickup timestamp(us),\n  zone string,\n  fare float64,\n  note string\n" in run.words
    assert run.words.endswith("Next: underlay append taxi.trips trips.csv\n")
    assert lake.table("taxi.trips").count() == 0


def test_create_from_each_kind_of_data(lake: Lake, place: Path):
    table = pa.table({"n": pa.array([1, 2], pa.int16()), "s": ["a", "b"]})
    pq.write_table(table, place / "d.parquet")
    with pa.ipc.new_file(place / "d.arrow", table.schema) as writer:
        writer.write_table(table)
    (place / "d.jsonl").write_text('{"n": 1, "s": "a", "none": null}\n')
    found = [
        underlay("create", f"a.{suffix}", "--from", f"d.{suffix}", "--json").objects[0]["columns"]
        for suffix in ("parquet", "arrow", "jsonl")
    ]
    assert [[column["type"] for column in columns] for columns in found] == [
        ["int16", "string"],
        ["int16", "string"],
        ["int64", "string", "string"],
    ]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["a.b"], "the columns come from one of"),
        (["a.b", "--schema", "n int", "--from", "x.csv"], "the columns come from one of"),
        (["a.b", "--schema", "n itn"], "itn"),
        (["a.b", "--schema", "n int", "--key", "m"], "there is no column m"),
        (["a.b", "--schema", "n int", "--property", "codec=x"], "unknown codec"),
        (["a.b", "--schema", "n int", "--property", "codec"], "--property takes KEY=VALUE"),
        (["ab", "--schema", "n int"], "not a name for a table"),
        (["taxi.trips", "--schema", "n int"], "there is a table taxi.trips"),
        (["a.b", "--from", "underlay.toml"], "the format cannot be told from the name"),
    ],
)
def test_what_cannot_be_a_table_is_refused(taxi: Table, arguments: list[str], problem: str):
    run = underlay("create", *arguments)
    assert (run.code, run.output) == (2, b"")
    assert problem in run.words


def test_show_for_people(taxi: Table):
    taxi.tag("audit")
    text = underlay("show", "taxi.trips").text
    assert text.startswith("taxi.trips, version 1 of ")
    assert "\nYellow cabs\n" in text
    assert " 2  pickup  timestamp(us)  yes\n" in text
    assert "\npartition_by  month(pickup)\n" in text
    assert "\nrows          3\n" in text
    assert "\ntags          audit (version 1)\n" in text


def test_show_of_an_older_version_by_number_time_and_tag(taxi: Table):
    taxi.tag("empty", 0)
    created = next(v for v in taxi.history() if v.version == 0).committed.isoformat()
    for point in (
        ["taxi.trips@0"],
        ["taxi.trips@empty"],
        ["taxi.trips", "--version", 0],
        ["taxi.trips", "--tag", "empty"],
    ):
        assert underlay("show", *point, "--json").objects[0]["rows"] == 0
    assert underlay("show", "taxi.trips", "--as-of", created, "--json").objects[0]["version"] == 0
    assert underlay("show", "taxi.trips@0", "--tag", "empty").code == 2


def test_history_shows_the_newest_hundred_and_says_how_to_see_all(taxi: Table):
    first = next(taxi.history()).version
    for _ in range(102):
        taxi.rollback(first)
    newest = first + 102
    run = underlay("history", "taxi.trips")
    assert len(run.text.splitlines()) == 101  # and the names of the columns
    assert f"{newest - 99:,} older versions are not shown. Show all with --limit 0." in run.words
    assert len(underlay("history", "taxi.trips", "--json").objects) == 100
    whole = underlay("history", "taxi.trips", "--limit", 0)
    assert len(whole.text.splitlines()) == newest + 2
    assert not whole.words


def test_history_says_what_each_version_did(taxi: Table):
    lines = underlay("history", "taxi.trips").text.splitlines()
    assert "append     2 files added, 3 rows added     3      2" in lines[1]
    assert lines[2].split()[0] == "0"
    objects = underlay("history", "taxi.trips", "--json").objects
    assert [(o["version"], o["operation"], o["rows"], o["counts"].get("rows_added")) for o in objects] == [
        (1, "append", 3, 3),
        (0, "create", 0, None),
    ]
    assert set(objects[0]) == {
        *["version", "committed", "operation", "counts", "rows", "files", "bytes", "writer", "commit_id", "run"]
    }
    assert len(underlay("history", "taxi.trips", "--limit", 1, "--json").objects) == 1


def test_history_says_which_rows_changed_before_the_files_that_this_took(lake: Lake):
    table = lake.create_table("a.words", data=pa.table({"id": [0, 1, 2, 3]}), key=["id"])
    table.upsert(pa.table({"id": [3, 4]}))
    table.upsert(pa.table({"id": [5]}))
    table.delete("id in (1, 2)")
    lines = underlay("history", "a.words").text.splitlines()
    deeds = [" ".join(line.split()[4:-2]) for line in lines[1:4]]
    assert deeds == [
        "2 rows deleted, 1 row rewritten, 1 file added, 1 file removed",
        "1 row inserted, 1 file added",
        "1 row inserted, 1 row updated, 1 file added",
    ]


def test_a_tag_is_given_moved_and_taken_away(taxi: Table):
    assert underlay("tag", "taxi.trips", "audit", "--version", 0).words == "taxi.trips: audit is version 0\n"
    assert underlay("tag", "taxi.trips", "audit").words == "taxi.trips: audit is version 1 (it was version 0)\n"
    assert taxi.tags == {"audit": 1}
    gone = underlay("tag", "taxi.trips", "audit", "--delete", "--json")
    assert gone.objects == [{"table": "taxi.trips", "tag": "audit", "version": None}]
    assert taxi.tags == {}
    assert underlay("tag", "taxi.trips", "audit", "--delete").code == 3
    assert underlay("tag", "taxi.trips", "audit", "--delete", "--version", 1).code == 2
    assert underlay("tag", "taxi.trips", "a b").code == 2


def test_rollback_says_what_would_change_and_does_it_only_when_told(taxi: Table):
    run = underlay("rollback", "taxi.trips", 0)
    assert (run.code, run.output) == (2, b"")
    assert "version 2 would restore version 0: 0 rows in 0 files instead of 3 rows in 2 files" in run.words
    assert taxi.version == 1
    done = underlay("rollback", "taxi.trips", 0, "--yes", "--json")
    assert (done.code, done.objects[0]["is_done"], done.objects[0]["version"]) == (0, True, 2)
    assert taxi.count() == 0


@pytest.mark.parametrize(
    "arguments",
    [["rollback", "taxi.trips", 9, "--yes"], ["tag", "taxi.trips", "x", "--version", 9], ["show", "taxi.trips@9"]],
)
def test_a_version_that_does_not_exist(taxi: Table, arguments: list[object]):
    run = underlay(*arguments)
    assert run.code == 3
    assert run.words == "error: taxi.trips: there is no version 9. Versions are 0 to 1.\n"


@pytest.mark.parametrize(
    "verb", [["rollback", "taxi.trips@1", 0], ["append", "taxi.trips@1", "trips.csv"], ["tag", "taxi.trips@1", "x"]]
)
def test_what_changes_a_table_takes_no_version(taxi: Table, verb: list[object]):
    assert underlay(*verb).words.startswith("error: a version never changes")


def test_history_says_which_version_a_rollback_restored(taxi: Table):
    taxi.append(taxi.to_arrow())
    taxi.tag("audit", version=1)
    assert underlay("rollback", "taxi.trips", "--tag", "audit").code == 2
    run = underlay("rollback", "taxi.trips", "--tag", "audit", "--yes")
    assert run.words == "taxi.trips: version 3 restores version 1, 3 rows in 2 files\n"
    assert "version 1 restored" in underlay("history", "taxi.trips").text.splitlines()[1]
    underlay("rollback", "taxi.trips", 0, "--yes")
    assert "version 0 restored" in underlay("history", "taxi.trips").text.splitlines()[1]


@pytest.mark.parametrize("arguments", [[], ["1", "--tag", "audit"], ["--tag", "nothing"]])
def test_a_rollback_needs_one_version(taxi: Table, arguments: list[str]):
    assert underlay("rollback", "taxi.trips", *arguments).code != 0
    assert taxi.version == 1


def test_a_tag_is_not_a_number(taxi: Table):
    run = underlay("tag", "taxi.trips", "7")
    assert run.code == 2
    assert "a tag cannot be a number" in run.words
    assert taxi.tags == {}


def test_a_tag_is_a_version_in_sql(taxi: Table):
    taxi.tag("audit")
    taxi.append(taxi.to_arrow())
    run = underlay("sql", "select count(*) as n from taxi.trips version as of 'audit'", "--json")
    assert run.objects == [{"n": 3}]
    assert "audit2" in underlay("sql", "select * from taxi.trips version as of 'audit2'").words
