from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay as ul
from tests.change.interrupting import table_of
from tests.end_to_end.lakes import NAME, SCHEMA, ids, memory, quick, rows
from tests.table.checker import Checker
from underlay.change.update import merge as merging
from underlay.errors import InvalidRequest, SchemaMismatch, UnknownColumn
from underlay.store import Store


def merge(table: ul.Table, source: object, condition: str = "t.id = s.id", **options):
    return table.merge(source, condition, source_alias="s", target_alias="t", **options)


def changes(*numbers: int) -> pa.Table:
    """A row for each number, with another value."""
    found = rows(numbers)
    return found.set_column(2, "value", pa.array([-float(n) for n in numbers]))


def found_rows(table: ul.Table, where: str | None = None) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.scan(where=where).to_arrow().to_pylist())


def small(schema: str, data: dict[str, list[object]], **options) -> ul.Table:
    table = quick(memory()).create_table("a.b", schema, **options)
    table.append(pa.table(data, table.schema))
    return table


def test_rows_that_match_are_updated_and_others_inserted(store: Store):
    done = (
        merge(table_of(store), changes(3, 550, 1000)).when_matched_update_all().when_not_matched_insert_all().execute()
    )
    assert (done.version, done.rows_matched, done.rows_updated, done.rows_inserted, done.rows_deleted) == (
        3,
        2,
        2,
        1,
        0,
    )
    assert (done.blocks_read, done.blocks_rewritten, done.blocks_total) == (2, 0, 6)
    table = table_of(store)
    assert found_rows(table, "value < 0") == [
        (3, "name 3", -3.0),
        (550, "name 550", -550.0),
        (1000, "name 1000", -1000.0),
    ]
    assert sorted(table.to_arrow()["id"].to_pylist()) == [*range(600), 1000]
    newest = next(table.history())
    assert (newest.operation, newest.counts["rows_updated"], newest.counts["rows_inserted"]) == ("merge", 2, 1)
    Checker(store).check()


def test_every_kind_of_clause_in_one_merge(store: Store):
    source = pa.table(
        {"id": [1, 2, 3, 700, 701], "value": [10.0, 20.0, 30.0, 40.0, 50.0], "gone": [False, True, False, False, True]}
    )
    done = (
        merge(table_of(store), source)
        .when_matched_delete("s.gone")
        .when_matched_update({"t.value": "t.value + s.value", "name": "upper(t.name)"}, predicate="s.id > 1")
        .when_not_matched_insert({"id": "s.id", "name": ul.lit("new"), "value": "s.value * 2"}, predicate="NOT s.gone")
        .when_not_matched_by_source_delete("t.id >= 10")
        .when_not_matched_by_source_update({"value": "-t.value"}, predicate="t.id >= 5")
        .execute()
    )
    assert found_rows(table_of(store)) == [
        (0, "name 0", 0.0), (1, "name 1", 0.5), (3, "NAME 3", 31.5), (4, "name 4", 2.0), (5, "name 5", -2.5),
        (6, "name 6", -3.0), (7, "name 7", -3.5), (8, "name 8", -4.0), (9, "name 9", -4.5), (700, "new", 80.0),
    ]  # fmt: skip
    assert (done.rows_matched, done.rows_updated, done.rows_inserted, done.rows_deleted) == (3, 6, 1, 591)
    Checker(store).check()


def test_the_first_clause_that_holds_counts(store: Store):
    source = pa.table({"id": [0, 1, 2, 3, 700, 701]})
    (
        merge(table_of(store), source)
        .when_matched_update({"name": "'first'"}, "t.id < 1")
        .when_matched_update({"name": "'second'"}, "t.id < 2")
        .when_matched_delete("t.id < 3")
        .when_not_matched_insert({"id": "s.id", "name": "'first'"}, "s.id < 701")
        .when_not_matched_insert({"id": "s.id", "name": "'second'"})
        .execute()
    )
    named = {row[0]: row[1] for row in found_rows(table_of(store), "id < 4 or id >= 600")}
    assert named == {0: "first", 1: "second", 3: "name 3", 700: "first", 701: "second"}


def test_a_predicate_that_is_null_does_not_hold(store: Store):
    source = pa.table({"id": [1, 700], "flag": pa.array([None, None], pa.bool_())})
    done = (
        merge(table_of(store), source).when_matched_delete("s.flag").when_not_matched_insert({"id": "s.id"}, "s.flag")
    )
    assert done.execute().version == 2


def test_columns_that_the_source_lacks_stay_as_they_are_and_get_their_default_in_new_rows(store: Store):
    source = pa.table({"id": [1, 700], "VALUE": [9.0, 8.0]})
    merge(table_of(store), source).when_matched_update_all().when_not_matched_insert_all().execute()
    assert found_rows(table_of(store), "id = 1") == [(1, "name 1", 9.0)]
    assert table_of(store).scan(where="id = 700").to_arrow().to_pylist() == [{"id": 700, "name": None, "value": 8.0}]


def test_columns_can_be_left_out_of_all(store: Store):
    source = pa.table({"id": [1, 700], "name": ["x", "y"], "note": ["a", "b"]})
    with pytest.raises(UnknownColumn, match=r"the source: there is no column note.*except_cols=\[\"note\"\]"):
        merge(table_of(store), source).when_matched_update_all().execute()
    builder = merge(table_of(store), source).when_matched_update_all(except_cols=["note", "name"])
    builder.when_not_matched_insert_all(except_cols=["NOTE"]).execute()
    assert found_rows(table_of(store), "id = 1") == [(1, "name 1", 0.5)]
    assert table_of(store).count("id = 700 and name = 'y'") == 1


def test_only_blocks_that_may_match_are_read(store: Store):
    by_key = merge(table_of(store), changes(3, 5), dry_run=True).when_matched_update_all().execute()
    assert (by_key.blocks_read, by_key.rows_updated) == (1, 2)
    computed = merge(table_of(store), pa.table({"half": [100, 101]}), "2 * s.half = t.id", dry_run=True)
    assert computed.when_matched_delete().execute().blocks_read == 1
    many = merge(table_of(store), changes(*range(250, 550)), dry_run=True).when_matched_delete().execute()
    assert (many.blocks_read, many.rows_deleted) == (4, 300)
    apart = merge(table_of(store), changes(*range(40), *range(560, 640)), dry_run=True).when_matched_delete().execute()
    assert (apart.blocks_read, apart.rows_deleted) == (2, 80)
    by_target = merge(table_of(store), changes(3, 250), "t.id = s.id AND t.value < 50", dry_run=True)
    assert by_target.when_matched_delete().execute().blocks_read == 1
    alone = merge(table_of(store), changes(3), dry_run=True).when_not_matched_by_source_delete("t.id >= 500")
    assert alone.execute().blocks_read == 2
    unbound = merge(table_of(store), changes(3), "t.value + s.value = 0", dry_run=True).when_matched_delete()
    assert unbound.execute().blocks_read == 6
    assert table_of(store).version == 2


def test_columns_that_all_get_new_values_are_not_read(store: Store):
    whole = merge(table_of(store), changes(3, 350), dry_run=True).when_matched_update_all().execute()
    part = merge(table_of(store), changes(3, 350), dry_run=True).when_matched_update({"value": "s.value"}).execute()
    keys = merge(table_of(store), changes(3, 350), dry_run=True).when_matched_delete().execute()
    assert (whole.rows_updated, part.rows_updated, keys.rows_deleted) == (2, 2, 2)
    assert whole.bytes_read == keys.bytes_read < part.bytes_read


def test_values_that_do_not_fit_are_named_by_the_source_where_no_column_is_read(store: Store):
    source = changes(1, 3).set_column(0, "id", pa.array([1.0, 3.5]))
    with pytest.raises(SchemaMismatch, match=r"^id: .*in row 1 of the source \(expected int64, found 3.5\)"):
        merge(table_of(store), source, "t.id = floor(s.id)").when_matched_update_all().execute()


@pytest.mark.parametrize(
    ("condition", "matched"),
    [
        ("t.id = s.id AND t.name = s.name", [3]),
        ("t.id = s.id + 1", [4, 6]),
        ("s.id = t.id OR t.name = s.name", [3, 5, 9]),
        ("t.id < s.id AND s.name = 'name 3'", [0, 1, 2]),
        ("t.id = s.id AND s.name LIKE '%9'", [5]),
        ("name = s.other", [7]),
        ("lower(t.name) = lower(s.other)", [7]),
        ("t.id IS NOT DISTINCT FROM s.id", [3, 5]),
        ("t.id IN (s.id, s.id + 1) AND t.id <> 4", [3, 5, 6]),
        ("t.id = $id AND s.id = 3", [8]),
        ("t.\"id\" = s.`id`", [3, 5]),
        ("T.ID = S.ID", [3, 5]),
        ("t.id = s.id -- only these", [3, 5]),
        ("false", []),
    ],
)  # fmt: skip
def test_a_condition_is_any_that_sql_has(store: Store, condition: str, matched: list[int]):
    source = pa.table({"id": [3, 5], "name": ["name 3", "name 9"], "other": ["name 7", None]})
    if condition == "name = s.other":
        source = source.drop_columns(["name"])
    params = {"id": 8} if "$id" in condition else None
    merge(table_of(store), source, condition, params=params).when_matched_delete().execute()
    assert ids(table_of(store)) == sorted(set(range(600)) - set(matched))


def test_null_matches_nothing():
    table = small("k bigint, v bigint", {"k": [1, None], "v": [1, 2]})
    source = pa.table({"k": pa.array([None, 1], pa.int64()), "v": [7, 8]})
    done = merge(table, source, "t.k = s.k").when_matched_update_all().when_not_matched_insert_all().execute()
    assert (done.rows_updated, done.rows_inserted) == (1, 1)
    assert sorted(table.to_arrow()["v"].to_pylist()) == [2, 7, 8]


@pytest.mark.parametrize("type_", ["double", "float"])
def test_nan_equals_nan_and_zero_minus_zero(type_: str):
    table = small(f"k {type_}, v bigint", {"k": [math.nan, 0.0, 1.0], "v": [1, 2, 3]})
    source = pa.table({"k": [math.nan, -0.0], "v": [10, 20]})
    done = merge(table, source, "t.k = s.k").when_matched_update({"v": "s.v"}).when_not_matched_insert_all().execute()
    assert (done.rows_updated, done.rows_inserted) == (2, 0)
    assert sorted(table.to_arrow()["v"].to_pylist()) == [3, 10, 20]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.int32(), pa.float64(), pa.decimal128(22, 2), pa.string()])
def test_keys_of_another_type_are_compared_as_sql_compares_them(store: Store, kind: pa.DataType):
    source = pa.table({"id": pa.array([3, 5]).cast(kind)})
    assert merge(table_of(store), source).when_matched_delete().execute().rows_deleted == 2


def test_a_row_that_two_rows_of_the_source_would_change_is_refused(store: Store):
    source = pa.concat_tables([changes(1, 3), changes(3)])
    with pytest.raises(InvalidRequest, match=r"the row with id = 3 matches more than one .*rows 1 and 2 of the source"):
        merge(table_of(store), source).when_matched_update_all().execute()
    mixed = pa.table({"id": [1, 1], "go": [True, False]})
    with pytest.raises(InvalidRequest, match="matches more than one"):
        merge(table_of(store), mixed).when_matched_delete("s.go").when_matched_update({"name": "'x'"}).execute()
    assert ids(table_of(store)) == [*range(600)]


def test_a_row_of_which_the_clauses_leave_one_match_is_changed(store: Store):
    source = pa.concat_tables([changes(1, 3), rows([3])])
    done = merge(table_of(store), source).when_matched_update_all("s.value < 0").execute()
    assert (done.rows_matched, done.rows_updated) == (2, 2)
    assert found_rows(table_of(store), "id = 3") == [(3, "name 3", -3.0)]


def test_a_row_that_all_matches_delete_is_deleted_once(store: Store):
    source = pa.concat_tables([changes(1, 3), changes(3), changes(3)])
    done = merge(table_of(store), source).when_matched_delete().execute()
    assert (done.rows_matched, done.rows_deleted) == (2, 2)
    assert table_of(store).count() == 598


def test_duplicates_in_the_source_that_match_nothing_are_all_inserted(store: Store):
    merge(table_of(store), rows([700, 700])).when_not_matched_insert_all().execute()
    assert ids(table_of(store), "id >= 600") == [700, 700]


def test_a_source_without_rows_and_a_table_without_rows(store: Store):
    assert merge(table_of(store), rows([])).when_matched_delete().when_not_matched_insert_all().execute().version == 2
    done = merge(table_of(store), rows([])).when_not_matched_by_source_delete("t.id < 599").execute()
    assert (done.rows_deleted, done.blocks_rewritten) == (599, 1)
    table_of(store).truncate()
    done = merge(table_of(store), rows([1, 2])).when_matched_delete().when_not_matched_insert_all().execute()
    assert done.rows_inserted == 2
    assert ids(table_of(store)) == [1, 2]


def test_rows_move_to_the_partition_of_their_new_value():
    table = small("id bigint, zone string", {"id": [*range(6)], "zone": ["a", "b", "c"] * 2}, partition_by=["zone"])
    source = pa.table({"id": [0, 3, 9], "zone": ["b", "c", "a"]})
    merge(table, source).when_matched_update_all().when_not_matched_insert_all().execute()
    by_zone = {
        zone: sorted(table.scan(["id"], where=f"zone = '{zone}'").to_arrow()["id"].to_pylist()) for zone in "abc"
    }
    assert by_zone == {"a": [9], "b": [0, 1, 4], "c": [2, 3, 5]}


def test_rows_of_registered_files_and_of_files_with_deletions_are_merged(tmp_path: Path):
    pq.write_table(rows(range(600, 700)), tmp_path / "more.parquet")
    table = ul.connect(tmp_path / "lake").create_table(NAME, SCHEMA, key=["id"])
    table.append(rows(range(600)))
    table.register(tmp_path / "more.parquet")
    table.delete("id % 7 = 0")
    done = merge(table, changes(7, 8, 609, 610)).when_matched_update_all().when_not_matched_insert_all().execute()
    assert (done.rows_updated, done.rows_inserted) == (2, 2)
    assert sorted(table.to_arrow()["id"].to_pylist()) == sorted([*(n for n in range(700) if n % 7), 7, 609])
    assert sorted(row[0] for row in found_rows(table, "value < 0")) == [7, 8, 609, 610]


@pytest.mark.parametrize("form", ["table", "batch", "reader", "polars", "scan", "table of the lake"])
def test_a_source_is_anything_that_speaks_arrow(store: Store, form: str):
    given = changes(1, 700)
    other = quick(store).create_table("other.rows", SCHEMA)
    other.append(given)
    sources = {
        "table": given,
        "batch": given.to_batches()[0],
        "reader": given.to_reader(),
        "scan": other.scan(),
        "table of the lake": other,
    }
    if form == "polars":
        sources["polars"] = pytest.importorskip("polars").from_arrow(given)
    done = merge(table_of(store), sources[form]).when_matched_update_all().when_not_matched_insert_all().execute()
    assert (done.rows_updated, done.rows_inserted) == (1, 1)


def test_groups_of_rows_are_joined_one_after_the_other(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(merging, "GROUP_ROWS", 150)
    source = changes(*range(0, 700, 50))
    done = merge(table_of(store), source).when_matched_update_all().when_not_matched_insert_all().execute()
    assert (done.rows_updated, done.rows_inserted) == (12, 2)
    assert sorted(row[0] for row in found_rows(table_of(store), "name is not null and value <= 0")) == [
        *range(0, 700, 50)
    ]


def test_aliases_are_source_and_target_unless_they_are_given(store: Store):
    done = table_of(store).merge(changes(1), "target.id = source.id").when_matched_delete().execute()
    assert done.rows_deleted == 1


def test_rows_of_files_that_are_older_than_the_columns_are_merged():
    table = small(
        "id int, zone string, fare float", {"id": [0, 1, 2], "zone": ["a", "b", "c"], "fare": [0.5, 1.5, 2.5]}
    )
    with table.evolve() as change:
        change.add_column("tip", "double", default=0.5)
        change.rename_column("zone", "area")
        change.widen_column("id", "bigint")
        change.add_check("not negative", "fare >= 0")
    source = pa.table({"id": [1, 2, 2**40], "area": ["x", "y", "z"], "fare": [9.0, 8.0, 7.0]})
    builder = merge(table, source, "t.id = s.id AND t.tip = 0.5").when_matched_update_all("s.id = 1")
    done = builder.when_matched_update({"tip": "t.tip + 1"}).when_not_matched_insert_all().execute()
    assert (done.rows_updated, done.rows_inserted) == (2, 1)
    assert found_rows(table) == [
        (0, "a", 0.5, 0.5), (1, "x", 9.0, 0.5), (2, "c", 2.5, 1.5), (2**40, "z", 7.0, 0.5),
    ]  # fmt: skip
    for clause in ("when_matched_update", "when_not_matched_insert"):
        with pytest.raises(SchemaMismatch, match="not negative"):
            getattr(merge(table, pa.table({"id": [1, 50]}), "t.id = s.id"), clause)({"fare": "-s.id"}).execute()
    assert table.version == done.version


def test_pairs_stay_together_in_long_tables():
    """Whatever the chunks of the two sides are, and of DuckDB."""
    count = 7000
    table = quick(memory()).create_table("a.b", "id bigint, x bigint", properties={"block_rows": 900})
    table.append(pa.table({"id": range(count), "x": range(count)}))
    table.delete("id % 5 = 0")
    order = [*range(count)][::-1]
    parts = [
        pa.table({"id": order[at : at + 1300], "y": [n * 10 for n in order[at : at + 1300]]})
        for at in range(0, count, 1300)
    ]
    builder = merge(table, pa.concat_tables(parts)).when_matched_update({"x": "t.x + s.y"}, "s.y % 20 = 0")
    done = builder.when_not_matched_insert({"id": "s.id", "x": "-s.y"}).execute()
    assert (done.rows_updated, done.rows_inserted) == (2800, 1400)
    expected = [-10 * n if n % 5 == 0 else 11 * n if n % 2 == 0 else n for n in range(count)]
    assert table.to_arrow().sort_by("id")["x"].to_pylist() == expected


def test_columns_that_duckdb_would_cut_are_copied_whole_and_refused_in_functions():
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("ns", "UTC"))])
    table = quick(memory()).create_table("a.b", schema)
    table.append(pa.table({"id": [1, 2], "at": pa.array([5, 6], schema.field("at").type)}))
    source = pa.table({"id": [2, 3], "at": pa.array([1_000_000_007, 11], schema.field("at").type)})
    merge(table, source).when_matched_update_all().when_not_matched_insert_all().execute()
    assert table.to_arrow().sort_by("id")["at"].cast(pa.int64()).to_pylist() == [5, 1_000_000_007, 11]
    with pytest.raises(InvalidRequest, match=r"^the condition: DuckDB would truncate values of at"):
        merge(table, source, "year(t.at) = year(s.at)").when_matched_delete().execute()


def test_a_value_that_the_condition_cannot_convert_has_its_place(store: Store):
    with pytest.raises(InvalidRequest, match=r"^the condition: .*Could not convert string 'q'"):
        merge(table_of(store), pa.table({"id": ["q"]})).when_matched_delete().execute()


def test_text_that_is_an_alias_is_text(store: Store):
    dry = merge(table_of(store), changes(3), "t.id = s.id AND s.name <> 't' AND s.name <> 's'", dry_run=True)
    plain = merge(table_of(store), changes(3), dry_run=True).when_matched_delete().execute()
    assert dry.when_matched_delete().execute().bytes_read == plain.bytes_read


def test_fields_of_structs_are_compared_and_assigned():
    table = small("id bigint, pos struct<x: int, y: int>", {"id": [1, 2], "pos": [{"x": 1, "y": 2}, {"x": 5, "y": 6}]})
    source = pa.table({"x": [5, 7], "new": [50, 70]})
    done = merge(table, source, "t.pos.x = s.x").when_matched_update({"pos.y": "s.new", "t.id": "t.id * 10"})
    done.when_not_matched_insert({"id": "0", "pos.x": "s.x"}).execute()
    assert found_rows(table) == [(0, {"x": 7, "y": None}), (1, {"x": 1, "y": 2}), (20, {"x": 5, "y": 50})]


def test_an_alias_that_is_a_column_too_means_the_table():
    table = small("s bigint, v bigint", {"s": [1, 2], "v": [10, 20]})
    source = pa.table({"s": [2, 3], "v": [200, 300]})
    merge(table, source, "t.s = s.s").when_matched_update({"v": "s.v + t.v"}).when_not_matched_insert_all().execute()
    assert found_rows(table) == [(1, 10), (2, 220), (3, 300)]


def test_names_in_backticks_are_those_of_delta_rs():
    table = small("x bigint, `1y` bigint", {"x": [1, 2, 3], "1y": [4, 5, 6]})
    source = pa.table({"x": [2, 3, 5], "1y": [5, 8, 8], "deleted": [False, True, None]})
    builder = table.merge(source=source, predicate="target.x = source.x", source_alias=None, target_alias=None)
    builder.when_matched_delete(predicate="source.deleted = true")
    builder.when_matched_update(updates={"target.x": "source.x", "`1y`": "source.`1y` + target.`1y`"}, predicate=None)
    builder.when_not_matched_insert(updates={"x": "source.x", "target.`1y`": "source.`1y`"})
    builder.when_not_matched_by_source_update(predicate="`1y` > 3", updates={"`1y`": "0"})
    builder.execute()
    assert found_rows(table) == [(1, 0), (2, 10), (5, 8)]
