from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay as ul
from tests.change.interrupting import interrupted, table_of
from tests.end_to_end.lakes import NAME, SCHEMA, data_keys, ids, memory, quick, rows
from tests.table.checker import Checker
from underlay import col
from underlay.errors import BadPredicate, CommitConflict, InvalidRequest, SchemaMismatch, UnknownColumn
from underlay.store import Store


def values(store: Store, *numbers: int) -> list[tuple[object, ...]]:
    """The rows with these ids, in their order."""
    found = table_of(store).scan(where=col("id").is_in(numbers)).to_arrow().sort_by("id")
    return [tuple(row.values()) for row in found.to_pylist()]


def test_columns_get_values_made_of_the_row_as_it_was(store: Store):
    done = table_of(store).update({"VALUE": "value * 2 + id", "name": "name || '!'"}, where="id between 5 and 6")
    assert values(store, 4, 5, 6) == [(4, "name 4", 2.0), (5, "name 5!", 10.0), (6, "name 6!", 12.0)]
    assert (done.version, done.rows_matched, done.rows_updated) == (3, 2, 2)
    assert (done.rows_inserted, done.rows_deleted, done.blocks_read, done.blocks_rewritten) == (0, 0, 1, 0)
    assert table_of(store).count() == 600
    newest = next(table_of(store).history())
    assert (newest.operation, newest.counts["rows_updated"], newest.counts.get("rows_inserted", 0)) == ("update", 2, 0)
    Checker(store).check()


def test_values_of_two_columns_change_places(store: Store):
    table = quick(store).create_table("a.b", "x bigint, y bigint")
    table.append(pa.table({"x": [1, 2], "y": [10, 20]}))
    table.update({"x": "y", "y": "x"})
    assert table.to_arrow().to_pylist() == [{"x": 10, "y": 1}, {"x": 20, "y": 2}]


def test_all_rows_are_updated_without_a_condition(store: Store):
    done = table_of(store).update({"value": "id / 2 + 1"})
    assert (done.rows_updated, done.version, table_of(store).count()) == (600, 3, 600)
    assert values(store, 0, 599) == [(0, "name 0", 1.0), (599, "name 599", 300.5)]
    Checker(store).check()


def test_only_blocks_with_a_row_that_matches_are_read_in_full(store: Store):
    narrow = table_of(store).update({"value": "0"}, where="value = 3.5 or value = 4", dry_run=True)
    wide = table_of(store).update({"value": "0"}, where="value >= 0", dry_run=True)
    assert (narrow.blocks_read, narrow.rows_updated) == (1, 2)
    assert narrow.bytes_read * 3 < wide.bytes_read
    assert table_of(store).version == 2


def test_blocks_that_match_in_full_are_looked_at_once(store: Store):
    done = table_of(store).update({"value": "value + 1"}, where="id >= 100 and id < 350", dry_run=True)
    assert (done.rows_updated, done.blocks_read) == (250, 3)


def test_a_block_of_which_most_rows_change_is_rewritten(store: Store):
    done = table_of(store).update({"name": "'x'"}, where="id between 110 and 180")
    assert (done.rows_updated, done.blocks_rewritten, done.rows_deleted) == (71, 1, 0)
    assert table_of(store).count() == 600
    assert table_of(store).count("name = 'x'") == 71
    Checker(store).check()


def test_rows_that_match_nothing_make_no_version(store: Store):
    assert table_of(store).update({"name": "'x'"}, where="id < 0").version == 2


@pytest.mark.parametrize(
    ("where", "found"),
    [("id % 100 = 7", 6), (col("id") < 5, 5), ("name = $name", 1), (None, 600), ("value is null", 0)],
    ids=str,
)
def test_conditions_are_those_of_scans(store: Store, where, found):
    params = {"name": "name 3", "to": "x"} if where == "name = $name" else {"to": "x"}
    assert table_of(store).update({"name": "$to"}, where=where, params=params).rows_updated == found
    assert table_of(store).count("name = 'x'") == found


def test_parameters_without_a_name_are_counted_through_values_and_condition(store: Store):
    done = table_of(store).update({"value": "value + ?", "name": "?"}, where="id = ? or id = ?", params=[1, "x", 2, 3])
    assert done.rows_updated == 2
    assert values(store, 2, 3) == [(2, "x", 2.0), (3, "x", 2.5)]
    with pytest.raises(InvalidRequest, match="some given values are not used"):
        table_of(store).update({"value": "?"}, params=[1, 2])
    with pytest.raises(InvalidRequest, match="no value is given"):
        table_of(store).update({"value": "$a"}, where="id = $b", params={"a": 1})


TYPES = pa.schema(
    [
        ("i", pa.int32()), ("d", pa.decimal128(10, 2)), ("t", pa.timestamp("us", "UTC")),
        ("ns", pa.timestamp("ns", "UTC")),
        ("day", pa.date32()), ("u", pa.uuid()), ("b", pa.binary(4)), ("h", pa.float16()), ("ok", pa.bool_()),
        ("l", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.int32())),
        ("s", pa.struct([("a", pa.int32()), ("b", pa.string())])), ("text", pa.string()),
    ]
)  # fmt: skip
SOME_UUID = UUID("12345678-1234-5678-1234-567812345678")


@pytest.fixture
def typed() -> ul.Table:
    table = quick(memory()).create_table("some.types", TYPES)
    moment = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    row = {
        "i": 5, "d": Decimal("1.25"), "t": moment, "ns": moment, "day": date(2024, 5, 6), "u": SOME_UUID.bytes,
        "b": b"abcd",
        "ok": True, "l": [1, 2], "m": [("a", 1)], "s": {"a": 1, "b": "x"}, "text": "some",
    }  # fmt: skip
    table.append(pa.Table.from_pylist([row, {"i": 6}], TYPES))
    return table


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("i", "i + 1", 6), ("i", "CAST(d * 100 AS INTEGER)", 125), ("i", ul.lit(9), 9), ("i", "NULL", None),
        ("i", "9.0", 9),
        ("d", "d * 2", Decimal("2.50")), ("d", ul.lit(Decimal("3.5")), Decimal("3.50")), ("d", "i", Decimal("5.00")),
        ("d", "'7.25'", Decimal("7.25")),
        ("t", "t + INTERVAL 1 DAY", datetime(2024, 5, 7, 7, 8, 9, 123456, tzinfo=UTC)),
        ("t", "'2024-01-02 03:04:05Z'", datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("day", "'2024-01-31'", date(2024, 1, 31)), ("day", ul.lit(date(2020, 2, 29)), date(2020, 2, 29)),
        ("day", "CAST(t AS DATE) + 1", date(2024, 5, 7)),
        ("u", "coalesce(u, NULL)", SOME_UUID), ("u", ul.lit(SOME_UUID), SOME_UUID), ("u", f"'{SOME_UUID}'", SOME_UUID),
        ("b", ul.lit(b"1234"), b"1234"), ("b", "b", b"abcd"), ("b", "'wxyz'", b"wxyz"), ("h", "i / 2", 2.5),
        ("h", ul.lit(None), None), ("ok", "i > 5", False), ("ok", "'false'", False),
        ("l", "[i, 7]", [5, 7]), ("l", ul.lit([3]), [3]), ("l", "l", [1, 2]), ("l", ul.lit([]), []),
        ("m", "MAP {'k': i}", [("k", 5)]), ("m", ul.lit([("z", 1)]), [("z", 1)]),
        ("s", "{'a': i, 'b': NULL}", {"a": 5, "b": None}), ("s", ul.lit({"b": "q"}), {"a": None, "b": "q"}),
        ("s.a", "s.a + i", {"a": 6, "b": "x"}), ("S.B", ul.lit("q"), {"a": 1, "b": "q"}),
        ("text", "s.b", "x"), ("text", "CASE WHEN i > 100 THEN 'a' END", None), ("text", "text || text", "somesome"),
        ("ns", "ns", datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)),
    ],
    ids=str,
)  # fmt: skip
def test_a_value_of_each_type_is_written_exactly(typed: ul.Table, column: str, value, expected):
    before = typed.to_arrow()
    assert typed.update({column: value}, where="i = 5").rows_updated == 1
    name = column.split(".")[0].lower()
    after = typed.to_arrow()
    place = after["i"].to_pylist().index(6)
    assert after.column(name)[1 - place].as_py() == expected
    assert after.drop_columns([name]).slice(1 - place, 1).equals(before.drop_columns([name]).slice(0, 1))
    assert after.slice(place, 1).equals(before.slice(1, 1)), "the other row changed"


def test_a_field_of_a_struct_that_is_null_makes_it_one(typed: ul.Table):
    typed.update({"s.b": "'new'"}, where="i = 6")
    assert typed.scan(["s"], where="i = 6").to_arrow().to_pylist() == [{"s": {"a": None, "b": "new"}}]


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"i": "d"}, SchemaMismatch, r"^i: .* in the row with d = Decimal\('1.25'\) \(expected int32, found Decimal"),
        ({"i": "3000000000"}, SchemaMismatch, "^i: a value does not fit"),
        ({"i": "i + 2147483647"}, InvalidRequest, "^i: .*Overflow"),
        ({"d": "d * 1.1"}, SchemaMismatch, "^d: .*Round or cast it"),
        ({"i": "text"}, SchemaMismatch, "^i: the column has another type"),
        ({"i": "CAST(text AS INTEGER)"}, InvalidRequest, "^i: .*Could not convert string 'some'"),
        ({"i": ul.lit("5")}, SchemaMismatch, "^i: the column has another type"),
        ({"i": ul.lit(1.5)}, SchemaMismatch, "^i: a value does not fit"),
        ({"i": ul.lit(object)}, SchemaMismatch, "^i: the value does not fit the column's type"),
        ({"day": "'2024-02-30'"}, SchemaMismatch, "^day: the text is not exactly a value"),
        ({"day": "'2024-02-20 10:00:00'"}, SchemaMismatch, "^day: the text is not exactly a value"),
        ({"b": "'toolong'"}, SchemaMismatch, "^b: "),
        ({"s": "1"}, SchemaMismatch, "^s: the column has another type"),
        ({"s": "{'a': 1, 'c': 2}"}, SchemaMismatch, "no column s.c"),
        ({"nope": "1"}, UnknownColumn, "no column nope"),
        ({"s.nope": "1"}, UnknownColumn, "no column s.nope"),
        ({"i": "nope + 1"}, UnknownColumn, "^i: line 1, column 1: there is no column nope"),
        ({"text": "JFK"}, UnknownColumn, r"no column JFK.* '.*lit\(\"JFK\"\)"),
        ({"i": "i +\n  + nope(1)"}, InvalidRequest, "^i: line 2, column 5: .*nope"),
        ({"i": "i +"}, InvalidRequest, "^i: line 1, column 3: not an SQL expression"),
        ({"i": "1; 2"}, InvalidRequest, "^i: the expression goes on after a semicolon"),
        ({"i": ""}, InvalidRequest, "^i: not an SQL expression"),
        ({"i": 5}, InvalidRequest, r"^i: not an SQL expression \(found 5\).*ul.lit"),
        ({5: "1"}, InvalidRequest, "must be text"),
        ({}, InvalidRequest, "there are no values"),
        ("i = 1", InvalidRequest, "there are no values"),
        ({"i": "1", "I": "2"}, InvalidRequest, "^i: the column is assigned twice"),
        ({"s": "NULL", "s.a": "2"}, InvalidRequest, "assigned twice"),
        ({"i": "sum(i)"}, InvalidRequest, "^i: line 1, column 1: .*aggregate"),
        ({"i": "row_number() OVER ()"}, InvalidRequest, "^i: .*not an expression of the columns of one row"),
        ({"i": "(SELECT 1)"}, InvalidRequest, "^i: .*not an expression of the columns of one row"),
        ({"i": "unnest([1, 2])"}, InvalidRequest, "^i: "),
        ({"i": "random()"}, InvalidRequest, "^i: the function random is not available"),
        ({"u": "uuid()"}, InvalidRequest, "^u: the function uuid is not available"),
        ({"text": "read_text('/etc/passwd')"}, InvalidRequest, "^text: the function read_text is not available"),
        ({"i": "x.i"}, UnknownColumn, "^i: .*no table or column x here"),
    ],
    ids=str,
)  # fmt: skip
def test_a_bad_value_is_refused_with_its_place_and_changes_nothing(typed: ul.Table, values, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        typed.update(values, where="i = 5")
    assert typed.version == 1


def test_a_clock_tells_one_time_for_all_rows_columns_and_the_condition(typed: ul.Table):
    table = quick(memory()).create_table("a.b", "n bigint, x timestamptz, y timestamptz")
    table.append(pa.table({"n": range(5000)}))
    before = datetime.now(UTC)
    assert table.update({"x": "now()", "y": "current_timestamp"}, where="now() > '2020-01-01'").rows_updated == 5000
    found = table.to_arrow()
    moments = {*found["x"].to_pylist(), *found["y"].to_pylist()}
    assert len(moments) == 1
    assert before <= moments.pop() <= datetime.now(UTC)


def test_a_required_column_takes_no_null(store: Store):
    with pytest.raises(SchemaMismatch, match=r"^id: a required column holds null in the row with id = 3"):
        table_of(store).update({"id": "CASE WHEN id <> 3 THEN id END"}, where="id < 10")
    with pytest.raises(SchemaMismatch, match="a required column holds null"):
        table_of(store).update({"id": "NULL"}, where="id < 10")
    assert ids(table_of(store)) == [*range(600)]


def test_rows_move_to_the_partition_of_their_new_value():
    store = memory()
    table = quick(store).create_table("a.b", "id bigint, zone string", partition_by=["zone"])
    table.append(pa.table({"id": range(6), "zone": ["a", "b", "c"] * 2}))
    assert table.update({"zone": "'b'"}, where="zone = 'a' or id = 2").rows_updated == 3
    found = quick(store).table("a.b")
    assert found.plan(where="zone = 'b'").explain().count("zone") > 0
    by_zone = {
        zone: sorted(found.scan(["id"], where=f"zone = '{zone}'").to_arrow()["id"].to_pylist()) for zone in "abc"
    }
    assert by_zone == {"a": [], "b": [0, 1, 2, 3, 4], "c": [5]}
    assert {file.partition for file in found.snapshot().files()} == {(b"b",), (b"c",)}
    Checker(store).check()


def test_rows_of_registered_files_and_of_files_with_deletions_are_updated(tmp_path: Path, store: Store):
    pq.write_table(rows(range(600, 700)), tmp_path / "more.parquet")
    table = ul.connect(tmp_path / "lake").create_table(NAME, SCHEMA, key=["id"])
    table.append(rows(range(600)))
    table.register(tmp_path / "more.parquet")
    table.delete("id % 7 = 0")
    done = table.update({"value": "-1"}, where="id between 590 and 610")
    assert done.rows_updated == 18
    left = [n for n in range(700) if n % 7]
    found = table.to_arrow().sort_by("id")
    assert found["id"].to_pylist() == left
    assert found["value"].to_pylist() == [-1 if 590 <= n <= 610 else n / 2 for n in left]


def test_a_dry_run_says_the_same_and_changes_nothing(store: Store):
    before = {found.key for found in store.list_objects()}
    dry = table_of(store).update({"value": "1"}, where="id < 60", dry_run=True)
    assert {found.key for found in store.list_objects()} == before
    done = table_of(store).update({"value": "1"}, where="id < 60")
    assert (dry.version, done.version) == (2, 3)
    for name in ("rows_matched", "rows_updated", "blocks_read", "blocks_rewritten", "bytes_read", "bytes_written"):
        assert getattr(dry, name) == getattr(done, name), name


def test_an_update_with_a_token_is_done_once(store: Store):
    first = table_of(store).update({"value": "value + 1"}, where="id = 1", token="a")
    again = table_of(store).update({"value": "value + 1"}, where="id = 1", token="a")
    assert (again.version, again.is_repeat, again.rows_updated) == (first.version, True, 0)
    assert values(store, 1) == [(1, "name 1", 1.5)]


def test_two_updates_of_one_row_are_both_done(store: Store):
    """The second is computed again of what the first wrote."""
    table = interrupted(store, lambda: table_of(store).update({"value": "value + 1"}, where="id = 1"))
    assert table.update({"value": "value * 10"}, where="id < 2").rows_updated == 2
    assert values(store, 0, 1) == [(0, "name 0", 0.0), (1, "name 1", 15.0)]
    Checker(store).check()


def test_updates_of_different_rows_are_both_done_without_a_second_look(store: Store):
    table = interrupted(store, lambda: table_of(store).update({"value": "-1"}, where="id = 150"))
    assert table.update({"value": "-2"}, where="id = 1").version == 4
    assert values(store, 1, 150) == [(1, "name 1", -2.0), (150, "name 150", -1.0)]


def test_rows_that_come_meanwhile_are_updated_too(store: Store):
    table = interrupted(store, lambda: table_of(store).append(rows([1000, 2000])))
    assert table.update({"name": "'x'"}, where="id % 1000 = 0").rows_updated == 3


def test_a_row_that_goes_meanwhile_does_not_come_back(store: Store):
    table = interrupted(store, lambda: table_of(store).delete("id = 1"))
    assert table.update({"name": "'x'"}, where="id < 3").rows_updated == 2
    assert table_of(store).count() == 599
    assert values(store, 0, 1, 2) == [(0, "x", 0.0), (2, "x", 1.0)]


def test_an_update_that_fails_leaves_no_files(store: Store):
    before = data_keys(store)
    with pytest.raises(SchemaMismatch):
        table_of(store).update({"id": "CASE WHEN id = 599 THEN 0.5 ELSE id END"})
    assert data_keys(store) == before


def test_a_version_that_is_pinned_cannot_change(store: Store):
    with pytest.raises(InvalidRequest, match="never changes"):
        table_of(store).at(version=1).update({"name": "'x'"})


def test_the_holder_of_a_job_that_was_taken_over_updates_nothing(store: Store):
    job = table_of(store).job("nightly")
    with table_of(store).job("nightly", take_over=True), pytest.raises(CommitConflict):
        job.table.update({"name": "'x'"}, where="id = 1")


def test_a_condition_that_is_wrong_is_refused(store: Store):
    for where, error in (("id >", BadPredicate), ("nope = 1", UnknownColumn), ("id = 'x'", BadPredicate)):
        with pytest.raises(error):
            table_of(store).update({"name": "'x'"}, where=where)
    with pytest.raises(InvalidRequest):
        table_of(store).update({"name": "'x'"}, where=5)
    assert table_of(store).version == 2


def evolved() -> ul.Table:
    """Rows of files that are older than some of the columns, their names and types, and of one that is not."""
    table = quick(memory()).create_table("a.b", "id int, zone string, old int, fare float", key=["id"])
    table.append(
        pa.table({"id": range(5), "zone": list("abcde"), "old": [1] * 5, "fare": [n / 2 for n in range(5)]}).cast(
            table.schema
        )
    )
    with table.evolve() as change:
        change.add_column("tip", "double", default=0.5)
        change.rename_column("zone", "area")
        change.widen_column("id", "bigint")
        change.drop_column("old")
        change.add_check("not negative", "fare >= 0")
    table.append(pa.table({"id": [2**40], "area": ["z"], "tip": [9.0], "fare": pa.array([7.0], pa.float32())}))
    return table


def test_rows_of_files_that_are_older_than_the_columns_are_updated():
    table = evolved()
    done = table.update({"tip": "tip + id", "area": "area || '!'", "id": "id + 4294967296"}, where="id % 2 = 0")
    assert done.rows_updated == 4
    assert table.to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "area": "b", "fare": 0.5, "tip": 0.5},
        {"id": 3, "area": "d", "fare": 1.5, "tip": 0.5},
        {"id": 2**32, "area": "a!", "fare": 0.0, "tip": 0.5},
        {"id": 2**32 + 2, "area": "c!", "fare": 1.0, "tip": 2.5},
        {"id": 2**32 + 4, "area": "e!", "fare": 2.0, "tip": 4.5},
        {"id": 2**40 + 2**32, "area": "z!", "fare": 7.0, "tip": 2.0**40 + 9},
    ]


def test_changed_rows_must_pass_the_checks():
    table = evolved()
    with pytest.raises(SchemaMismatch, match="not negative"):
        table.update({"fare": "fare - 1"}, where="id < 4")
    assert table.version == 3
    assert table.update({"fare": "fare - 1"}, where="id = 4").rows_updated == 1


def test_a_table_without_rows_stays_as_it_is():
    table = quick(memory()).create_table("a.b", "x bigint")
    assert (table.update({"x": "1"}).version, table.update({"x": "1"}, where="x > 0").rows_updated) == (0, 0)


def test_columns_that_get_a_value_without_the_old_one_are_not_read(store: Store):
    plain = table_of(store).update({"name": "'x'"}, where="id = 7", dry_run=True)
    used = table_of(store).update({"name": "name || 'x'"}, where="id = 7", dry_run=True)
    assert plain.bytes_read < used.bytes_read


def test_all_columns_can_get_one_value():
    table = quick(memory()).create_table("a.b", "x bigint, y string")
    table.append(pa.table({"x": [1, 2, 3], "y": ["a", "b", None]}))
    assert table.update({"x": ul.lit(7), "y": "'q'"}, where="x > 1").rows_updated == 2
    assert table.to_arrow().sort_by("x").to_pylist() == [{"x": 1, "y": "a"}, {"x": 7, "y": "q"}, {"x": 7, "y": "q"}]
    assert table.update({"x": "1 + 1", "y": "'q'"}).rows_updated == 3
    assert table.to_arrow()["x"].to_pylist() == [2, 2, 2]
