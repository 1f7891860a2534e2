"""`with table.evolve() as change:`: one commit, all by field id, or a clear error and nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

import underlay as ul
from tests.change.define.conftest import rows
from tests.gate import some
from underlay.change.define.evolution import Evolution
from underlay.errors import (
    BadPredicate,
    InvalidRequest,
    SchemaMismatch,
    UnderlayError,
    UnknownColumn,
    Unsupported,
)


def test_all_changes_are_one_version(table: ul.Table):
    before = table.version
    with table.evolve() as change:
        change.add_column("tip", "double", default=0.5, comment="given", after="id")
        change.rename_column("name", "title")
        change.drop_column("fare")
        change.widen_column("id", "bigint")
        change.move_column("seen")
        change.set_comment("all of them")
        change.set_property("codec", "snappy")
        assert table.version == before
    assert change.result is not None
    assert (change.result.version, table.version) == (before + 1, before + 1)
    assert next(table.history()).operation == "evolve"
    assert table.schema.names == ["seen", "id", "tip", "title", "day", "price", "pos", "tags"]
    assert table.schema.field("id").type == pa.int64()
    assert table.definition.comment == "all of them"
    assert table.definition.properties["codec"] == "snappy"
    assert table.definition.schema.fields[2].comment == "given"
    assert table.scan(["id", "tip", "title"], "id = 7").to_arrow().to_pylist() == [{"id": 7, "tip": 0.5, "title": "n7"}]


EVOLUTIONS: dict[str, tuple[Callable[[Evolution], object], list[str]]] = {
    "integers": (lambda c: c.widen_column("id", "bigint"), ["id = 7", "id = 4294967303", "id > 100", "id in (3, 111)"]),
    "integers to doubles": (
        lambda c: (c.set_key([]), c.set_sort_by([]), c.set_partition_by([]), c.widen_column("id", "double")),
        ["id = 7", "id = 7.5", "id < 3.5"],
    ),
    "floats": (lambda c: c.widen_column("fare", "double"), ["fare = 7.5", "fare = 0.1", "fare > 1", "fare <= 0"]),
    "decimals": (
        lambda c: c.widen_column("price", "decimal(20, 4)"),
        ["price = 1.25", "price = 1.2500", "price = 1.2501", "price > 27", "price is null"],
    ),
    "dates": (
        lambda c: (c.set_partition_by(["day(day)"]), c.widen_column("day", "timestamp")),
        [
            "day = '1970-03-12'",
            "day = '1970-03-12 00:00:01'",
            "day >= '1970-03-12 12:00:00' and day < '1970-04-01'",
            "day is null",
        ],
    ),
    "timestamps": (
        lambda c: c.widen_column("seen", "timestamp(us)"),
        ["seen = '2020-01-08 07:00:00.007'", "seen = '2020-01-08 07:00:00.007001'", "seen > '2020-01-20'"],
    ),
    "a default": (
        lambda c: c.add_column("new", "int", default=42),
        ["new = 42", "new is null", "new > 42", "new < 42"],
    ),
    "a text default": (lambda c: c.add_column("new", "string", default="é"), ["new = 'é'", "new is null", "new > 'z'"]),
    "a default in a struct": (
        lambda c: c.add_column("pos.new", "int", default=42),
        ["pos.new = 42", "pos.new is null", "pos.new <> 42"],
    ),
    "a name": (lambda c: c.rename_column("name", "title"), ["title = 'n5'", "title > 'n1'", "title is null"]),
    "a name in a struct": (lambda c: c.rename_column("pos.x", "long"), ["pos.long = 5", "pos.long is null"]),
    "a type in a struct": (lambda c: c.widen_column("pos.x", "bigint"), ["pos.x = 5", "pos.x = 4294967301"]),
    "dropped and added": (
        lambda c: (c.drop_column("name"), c.add_column("name", "string")),
        ["name = 'n5'", "name is null"],
    ),
    "dropped and added with a default": (
        lambda c: (c.drop_column("price"), c.add_column("price", "decimal(9, 2)", default=Decimal("1.50"))),
        ["price = 1.25", "price = 1.5", "price is null"],
    ),
    "swapped": (
        lambda c: (c.rename_column("name", "z"), c.add_column("name", "string", default="n5"), c.drop_column("z")),
        ["name = 'n5'", "name = 'n6'"],
    ),
    "partitions": (
        lambda c: c.set_partition_by(["truncate(10, id)", "bucket(5, name)"]),
        ["id = 7", "name = 'n105'", "day = '1970-03-12'", "id > 103 and name = 'n104'"],
    ),
    "no partitions": (lambda c: c.set_partition_by([]), ["id = 7", "day = '1970-03-12'"]),
    "widened partitions": (
        lambda c: (c.widen_column("day", "timestamp"), c.widen_column("id", "bigint")),
        ["id = 7", "id = 107", "day = '1970-03-12'", "day > '1970-03-12 00:00:00'", "id = 4294967303"],
    ),
}


@pytest.mark.parametrize("name", some(list(EVOLUTIONS), 3))
def test_pruned_is_a_full_scan_after_each_evolution(lake: ul.Lake, table: ul.Table, name: str):
    """T7, T8, T32, T33: statistics and bloom filters are of the old types, partition values of the old spec."""
    evolve, wheres = EVOLUTIONS[name]
    data = {file.location for file in table.snapshot().files()}
    with table.evolve() as change:
        evolve(change)
    assert {file.location for file in table.snapshot().files()} == data
    table.append(_rows_now(table.schema))
    _assert_pruned(lake, table, wheres)
    table.rollback(version=table.version - 1)
    _assert_pruned(lake, table, wheres)
    assert not lake.verify(deep=True).findings


def _rows_now(schema: pa.Schema) -> pa.Table:
    """More rows, with the columns that there are still."""
    given = rows(50)
    kept = [name for name in given.schema.names if name in schema.names and name not in ("pos", "tags")]
    return pa.table([given.column(name).cast(schema.field(name).type) for name in kept], names=kept)


def _assert_pruned(lake: ul.Lake, table: ul.Table, wheres: list[str]) -> None:
    whole = table.to_arrow()
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("set disabled_optimizers = 'filter_pushdown'")  # Arrow has another rule for NaN
        connection.register("whole", whole)
        full = [connection.execute(f"select id from whole where {where}").fetchall() for where in wheres]
    for where, expected in zip(wheres, full, strict=True):
        wanted = sorted(expected)
        assert sorted(table.scan(["id"], where).to_arrow().column(0).to_pylist()) == [n for (n,) in wanted], where
        assert table.count(where) == len(wanted), where
        assert sorted(lake.sql(f"select id from t.rows where {where}").fetchall()) == wanted, where
    assert whole.num_rows == len(table)


def test_each_version_reads_as_it_was(lake: ul.Lake, table: ul.Table):
    kept = {table.version: str(table.to_arrow().to_pylist())}
    for evolve, _ in list(EVOLUTIONS.values())[:12:2]:
        with table.evolve() as change:
            evolve(change)
        kept[table.version] = str(table.to_arrow().to_pylist())
    table.rollback(version=2)
    assert str(table.to_arrow().to_pylist()) == kept[2]
    with table.evolve() as change:
        change.widen_column("id", "bigint")
        change.set_partition_by(["bucket(3, id)"])
    assert table.count("id = 7") == 1
    for version, expected in kept.items():
        assert str(lake.table("t.rows", version=version).to_arrow().to_pylist()) == expected


REFUSED: dict[str, tuple[Callable[[Evolution], object], type[UnderlayError], str]] = {
    "unknown": (lambda c: c.rename_column("nam", "x"), UnknownColumn, "nam"),
    "unknown in a struct": (lambda c: c.drop_column("pos.z"), UnknownColumn, r"pos\.z"),
    "name taken": (lambda c: c.rename_column("name", "id"), SchemaMismatch, "same name"),
    "name alike": (lambda c: c.add_column("NAME", "int"), InvalidRequest, "differ only in case"),
    "no name": (lambda c: c.rename_column("name", ""), SchemaMismatch, "no name"),
    "not a name": (lambda c: c.add_column("a b", "int"), InvalidRequest, "not the name"),
    "owned by ingest": (lambda c: c.add_column("_source", "string"), InvalidRequest, "ingest"),
    "becomes owned": (lambda c: c.rename_column("name", "_source"), InvalidRequest, "ingest"),
    "key": (lambda c: (c.set_partition_by([]), c.set_sort_by([]), c.drop_column("id")), InvalidRequest, "key"),
    "order": (lambda c: (c.set_key([]), c.set_partition_by([]), c.drop_column("id")), InvalidRequest, "order"),
    "partition": (lambda c: c.drop_column("day"), InvalidRequest, "partitioning"),
    "narrower": (lambda c: c.widen_column("seen", "timestamp(s)"), InvalidRequest, "wider type"),
    "other kind": (lambda c: c.widen_column("name", "int"), InvalidRequest, "wider type"),
    "zone": (lambda c: c.widen_column("seen", "timestamp(us, UTC)"), InvalidRequest, "wider type"),
    "fewer digits": (lambda c: c.widen_column("price", "decimal(9, 4)"), InvalidRequest, "wider type"),
    "struct": (lambda c: c.widen_column("pos", "string"), InvalidRequest, "wider type"),
    "inside a scalar": (lambda c: c.add_column("id.x", "int"), InvalidRequest, "not a struct"),
    "inside a list": (lambda c: c.add_column("tags.x", "int"), InvalidRequest, r"\.element"),
    "last field": (lambda c: (c.drop_column("pos.x"), c.drop_column("pos.y")), InvalidRequest, "at least one field"),
    "no type": (lambda c: c.add_column("x", "nonsense"), InvalidRequest, "type"),
    "two types": (lambda c: c.add_column("x", "int, y int"), InvalidRequest, "not a type"),
    "type of Python": (lambda c: c.add_column("x", int), Unsupported, "not a type"),
    "bad default": (lambda c: c.add_column("x", "int", default=1.5), InvalidRequest, "default"),
    "nested default": (lambda c: c.add_column("x", "list<int>", default=1), InvalidRequest, "nested"),
    "after nothing": (lambda c: c.add_column("x", "int", after="nam"), UnknownColumn, "move it after"),
    "nulls": (lambda c: c.make_required("name"), SchemaMismatch, "2 nulls"),
    "nulls in a struct": (lambda c: c.make_required("pos.y"), SchemaMismatch, "pos.y"),
    "required without a default": (lambda c: c.add_column("x", "int not null"), SchemaMismatch, "nulls"),
    "check fails": (lambda c: c.add_check("few", "id < 100"), SchemaMismatch, "12 rows contradict the check few"),
    "check of nothing": (lambda c: c.add_check("odd", "nam = 1"), UnknownColumn, "odd"),
    "check of many rows": (lambda c: c.add_check("odd", "id > (select 1)"), BadPredicate, "odd"),
    "no condition": (lambda c: c.add_check("odd", " "), InvalidRequest, "condition"),
    "no check": (lambda c: c.drop_check("odd"), InvalidRequest, "no check"),
    "unknown property": (lambda c: c.set_property("colour", "red"), InvalidRequest, "unknown property"),
    "property not there": (lambda c: c.drop_property("codec"), InvalidRequest, "does not have"),
    "key twice": (lambda c: c.set_key(["id", "id"]), InvalidRequest, "twice"),
    "key as text": (lambda c: c.set_key("id"), InvalidRequest, "list of columns"),
    "no transform": (lambda c: c.set_partition_by(["week(day)"]), InvalidRequest, "transform"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_and_nothing_changed(steady: ul.Table, name: str):
    evolve, error, words = REFUSED[name]
    version, definition = steady.version, steady.definition
    with pytest.raises(error, match=words), steady.evolve() as change:
        evolve(change)
    assert (steady.version, steady.definition) == (version, definition)


def test_an_error_in_the_block_commits_nothing(table: ul.Table):
    version = table.version
    change = table.evolve().begin()

    def fail_inside() -> None:
        with change:
            change.add_column("tip", "double")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert table.version == version
    assert change.result is None
    with pytest.raises(InvalidRequest, match="over"):
        change.drop_column("name")


def test_nothing_to_change_is_no_version(table: ul.Table):
    version = table.version
    with table.evolve() as change:
        change.rename_column("name", "x")
        change.rename_column("x", "name")
    assert table.version == version
    assert change.result is not None
    assert change.result.version == version


def test_a_table_of_one_version_does_not_evolve(lake: ul.Lake, table: ul.Table):
    with pytest.raises(InvalidRequest, match="never changes"):
        lake.table("t.rows", version=1).evolve()


def test_required_columns_are_proved_and_kept(table: ul.Table):
    with table.evolve() as change:
        change.make_required("id")
        change.add_column("state", "string not null", default="new")
    with pytest.raises(SchemaMismatch, match="required"):
        table.append(pa.table({"id": pa.array([None], pa.int32())}))
    table.append(pa.table({"id": pa.array([7], pa.int32())}))
    assert set(table.scan(["state"]).to_arrow().column(0).to_pylist()) == {"new"}
    with table.evolve() as change:
        change.make_nullable("id")
    table.append(pa.table({"id": pa.array([None], pa.int32())}))
    assert table.count("id is null") == 1


def test_values_too_far_for_a_finer_unit_are_found(lake: ul.Lake):
    far = lake.create_table("t.far", pa.schema([("at", pa.timestamp("s"))]))
    far.append(pa.table({"at": pa.array([0, 2**40], pa.timestamp("s"))}))
    with pytest.raises(SchemaMismatch, match="does not fit"), far.evolve() as change:
        change.widen_column("at", "timestamp(ns)")
    with far.evolve() as change:
        change.widen_column("at", "timestamp(us)")
    assert far.count("at > '9999-01-01'") == 1


def test_parts_of_lists_and_maps_evolve_by_path(lake: ul.Lake):
    things = lake.create_table("t.things", "id int, list list<struct<x: int>>, map map<string, struct<y: int>>")
    things.append(
        pa.table({"id": pa.array([1], pa.int32()), "list": [[{"x": 1}]], "map": [[("k", {"y": 2})]]}, things.schema)
    )
    with things.evolve() as change:
        change.add_column("list.element.new", "string", default="d")
        change.rename_column("map.value.y", "z")
        change.widen_column("list.element.x", "bigint")
    assert things.to_arrow().to_pylist() == [{"id": 1, "list": [{"x": 1, "new": "d"}], "map": [("k", {"z": 2})]}]
    with pytest.raises(InvalidRequest, match="not a struct"), things.evolve() as change:
        change.rename_column("map.key", "other")
    with pytest.raises(InvalidRequest, match="never null"), things.evolve() as change:
        change.make_nullable("map.key")


def test_bloom_filters_follow_their_columns(table: ul.Table):
    with table.evolve() as change:
        change.rename_column("name", "a title")
        change.drop_column("price")
    assert table.definition.properties["bloom"] == 'id,"a title",day,seen,pos.x'
    table.append(pa.table({"id": pa.array([7], pa.int32()), "a title": ["b"]}))
    assert table.count("\"a title\" = 'b'") == 1


@pytest.mark.parametrize("path", ["tip", "pos.z"])
def test_a_type_that_is_none_is_refused_with_the_column_that_was_to_have_it(table: ul.Table, path: str):
    with pytest.raises(InvalidRequest, match=f"^{path}: no such type .found frob."):
        table.evolve().begin().add_column(path, "frob")


def test_a_change_outside_a_block_is_refused_since_nothing_would_commit_it(table: ul.Table):
    with pytest.raises(InvalidRequest, match=r"made in a block.*with table\.evolve"):
        table.evolve().add_column("x", "int")
