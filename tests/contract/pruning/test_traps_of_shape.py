"""The traps of pruning by statistics, by their numbers in TRAPS.md: order, nulls, nesting, names, change."""

from __future__ import annotations

import struct
from datetime import date
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.contract.pruning.test_traps import assert_genuine, from_testing, with_bounds
from tests.contract.pruning.traps import assert_safe, by_scan, by_sql, fresh, numbered, own, patched, registered
from tests.contract.worlds import add_column, delete_positions, drop_column
from tests.index import patching
from tests.parquet.footers import written
from underlay import col
from underlay.errors import BadPredicate, Replaced, UnderlayError, UnknownColumn
from underlay.parquet.thrift.encode import I64
from underlay.scan.blooms.sidecars import SidecarRebuilt


@pytest.mark.parametrize(("type_", "large"), [(pa.uint32(), 2147483653), (pa.uint64(), 9223372036854775813)])
def test_t21_unsigned_integers(type_, large):
    data = numbered(pa.array([1, large, None], type_))
    assert_safe(data, "c > 2147483647", "c < 2", f"c = {large}", f"c >= {large}", "c < 0", "c <> 1")


@pytest.mark.parametrize("digits", [4, 9, 18, 20, 38])
def test_t22_decimals(digits):
    values = [Decimal("-1.00"), Decimal("1.00"), None, Decimal("-99.99")]
    data = numbered(pa.array(values, pa.decimal128(digits, 2)))
    wheres = ["c < 0", "c > 0", "c = 1.000", "c > -0.995", "c >= 0.995", "c = -1", "c < -99.989", "c <> 1"]
    assert_safe(data, *wheres)
    as_integers = written(data, store_decimal_as_integer=True)
    assert_safe(data, *wheres, given=[registered(data.schema, as_integers)])


@pytest.mark.parametrize("name", ["byte_array_decimal", "fixed_length_decimal", "int32_decimal"])
def test_t22_genuine_decimals(name):
    assert_genuine(name, "value", "{} = 1.000", "{} > 23.5", "{} < 2", "{} <> 7", "{} >= 24")


def test_t23_inverted_bounds():
    data = numbered(pa.array([100, 900], pa.int64()))
    file = patched(written(data), with_bounds(struct.pack("<q", 900), struct.pack("<q", 100)))
    assert_safe(data, "c < 500", "c = 100", "c > 500", "c <> 100", given=[registered(data.schema, file)])


def test_t24_nulls():
    data = numbered(pa.array([5, None, 5, None], pa.int64()))
    wheres = [
        "c <> 5",
        "c = 5",
        "NOT (c IS NOT DISTINCT FROM 5)",
        "c IS DISTINCT FROM 5",
        "c IS NULL",
        "c NOT IN (5, NULL)",
        "c IN (NULL)",
        "c IN (5, NULL)",
        "NOT (c = 5 OR c IS NULL)",
        "c = NULL",
        "c IS NOT NULL",
    ]
    assert_safe(data, *wheres)
    for count in (None, I64(-1), I64(9)):
        file = patched(written(data), lambda f, count=count: patching.with_statistics(f, 0, {patching.NULLS: count}))
        assert_safe(data, *wheres, given=[registered(data.schema, file)])


def test_t25_nested_columns():
    lists = pa.array([[1, 2], [], None, [None, 9]], pa.list_(pa.int64()))
    structs = pa.array([{"x": 1}, None, {"x": None}, {"x": 9}], pa.struct([("x", pa.int64())]))
    maps = pa.array([[(1, 2)], [], None, [(9, None)]], pa.map_(pa.int64(), pa.int64()))
    data = numbered(pa.table({"l": lists, "s": structs, "m": maps}))
    for table in (
        own(data),
        registered(data.schema, written(data)),
        registered(data.schema, written(data, row_group_size=1)),
    ):
        wheres = ["l IS NULL", "l IS NOT NULL", "m IS NULL", "s IS NULL", "s IS NOT NULL"]
        assert by_scan(table, wheres) == [[2], [0, 1, 3], [2], [1], [0, 2, 3]]
        assert by_sql(table, wheres) == [[2], [0, 1, 3], [2], [1], [0, 2, 3]]
        inner = ["s.x = 1", "s.x IS NULL", "s.x > 1", "s.x <> 1", "s.x IS NOT NULL"]
        assert by_scan(table, inner) == [[0], [1, 2], [3], [3], [0, 3]]
        assert by_sql(table, inner) == [[0], [1, 2], [3], [3], [0, 3]]
        assert by_sql(table, ["list_contains(l, 9)", "len(l) = 0"]) == [[3], [1]]
        with pytest.raises(UnderlayError):
            table.scan(where="l = 1").to_arrow()


def test_t26_one_row_group_without_statistics():
    data = numbered(pa.array([1, 2, 100, 200, None, None], pa.int64()))
    file = patched(written(data, row_group_size=2), lambda footer: without_bounds(footer, 1))
    table = registered(data.schema, file)
    assert_safe(data, "c = 100", "c > 50", "c < 2", "c = 7", "c IS NULL", "c <> 1", given=[table])
    assert table.plan().maximum("c") is None


def without_bounds(footer, row_group):
    gone = dict.fromkeys((patching.MIN, patching.MAX, patching.MIN_VALUE, patching.MAX_VALUE))
    return patching.with_statistics(footer, 0, gone, row_group=row_group)


def test_t27_functions_that_are_not_monotone():
    data = numbered(pa.array(range(50), pa.int64()))
    assert_safe(data, "c % 8 = 2", "abs(c - 25) = 25", "-c > -3", "c + 1 = 50", "c * c = 4")
    text = numbered(pa.array(["9", "10", "a", "A", " a "]))
    assert_safe(text, "upper(c) = 'A'", "trim(c) = 'a'", "length(c) = 2", "c || 'x' = '9x'")
    digits = numbered(pa.array(["9", "10"]))
    assert_safe(digits, "cast(c as int) > 5")
    with pytest.raises(BadPredicate, match="a column of type text cannot be compared with int 5"):
        own(digits).plan(where="c > 5")


def test_t28_the_order_of_text():
    values = ["￿", "\U00010000", "é", "e\u0301", "a", "A", "a ", "a\0", "a\0b", ""]
    data = numbered(pa.array(values))
    wheres = [f"c {op} '{value}'" for value in ("￿", "\U00010000", "é", "a", "a ", "") for op in ("=", ">", "<=")]
    assert_safe(data, *wheres)
    for table in (own(data), registered(data.schema, written(data))):
        for number, value in enumerate(values):
            assert table.scan(["n"], col("c") == value).to_arrow()["n"].to_pylist() == [number]


def test_t28_text_that_is_no_utf8_is_refused():
    broken = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"], pa.binary()).buffers())
    with pytest.raises(UnderlayError, match="UTF-8"):
        fresh().create("c string").append(pa.table({"c": broken}))


def test_t29_collations():
    data = numbered(pa.array(["B", "B", "a", "b"]))
    assert_safe(data, "c COLLATE NOCASE = 'b'", "c COLLATE NOCASE = 'A'", "lower(c) = 'b'")


def test_t30_patterns_and_prefixes():
    data = numbered(pa.array(["a", "a_b", "axb", "b", "", "\U0010ffff", "\U0010ffffz", "%", None]))
    wheres = [
        "c LIKE 'a%'",
        "c LIKE 'a!_b%' ESCAPE '!'",
        "c LIKE 'a_b'",
        "c LIKE '%'",
        "c LIKE ''",
        "NOT c LIKE 'a%'",
        "c LIKE '!%' ESCAPE '!'",
        "starts_with(c, '\U0010ffff')",
        "starts_with(c, '')",
        "c LIKE '\U0010ffff%'",
        "c LIKE '%b'",
    ]
    assert_safe(data, *wheres)


def test_t31_names():
    nested = pa.array([{"b": 1}, {"b": 2}], pa.struct([("b", pa.int64())]))
    data = numbered(pa.table({"c": [1, 2], "C": [2, 1], "A": nested, "A.b": [5, 6]}))
    for table in (own(data, block_rows=1), registered(data.schema, written(data, row_group_size=1))):
        assert by_scan(table, ["c = 1", '"C" = 1', '"A".b = 2', '"A.b" = 5']) == [[0], [1], [1], [0]]
        assert table.scan(["n"], col("A", "b") == 2).to_arrow()["n"].to_pylist() == [1]
        with pytest.raises(UnknownColumn):
            table.plan(where="x = 1")


def test_t32_files_older_than_a_column():
    data = numbered(pa.array([42, 42, 7, None], pa.int64()))
    table = own(data.select(["n"]).slice(0, 2))
    add_column(table, "c", "int64", "42")
    table.append(data.slice(2, 2))
    assert_safe(data, "c = 42", "c IS NULL", "c <> 42", "c < 42", "c IS NOT NULL", given=[table])
    assert table.plan(where="c = 7").kept.rows < 4


def test_t33_a_column_dropped_and_added():
    data = numbered(pa.array([None, None, 9], pa.int64()))
    old = numbered(pa.array([9, 10], pa.int64()))
    table = own(old)
    drop_column(table, "c")
    add_column(table, "c", "int64")
    table.append(data.slice(2, 1))
    assert_safe(data, "c = 9", "c = 10", "c IS NULL", "c > 0", given=[table])


def test_t34_deleted_rows_are_in_no_answer():
    data = numbered(pa.array([1, 5, 6, 100], pa.int64()))
    table = own(data, block_rows=10)
    delete_positions(table, {0: [0, 3]})
    left = data.slice(1, 2)
    assert_safe(left, "c >= 0", "c = 1", "c <= 100", "c > 5", given=[table])
    plan = table.plan()
    assert plan.count() == 2
    assert plan.minimum("c") is None or plan.minimum("c").as_py() == 5
    assert plan.maximum("c") is None or plan.maximum("c").as_py() == 6
    with duckdb.connect() as connection:
        connection.register("t", table.dataset())
        assert connection.sql("select min(c), max(c), count(*) from t").fetchall() == [(5, 6, 2)]


PARTITION_VALUES = {
    "text": (pa.string(), [None, "", "__HIVE_DEFAULT_PARTITION__", "a/b", "%2F", "a%2Fb"], "c"),
    "floats": (pa.float64(), [0.0, -0.0, float("nan"), None, 1.0], "c"),
    "days": (pa.date32(), [date(1969, 12, 31), date(1970, 1, 1), date(1900, 1, 1)], "day(c)"),
    "years": (pa.date32(), [date(1969, 12, 31), date(1969, 1, 1), date(1970, 1, 1), date(1, 1, 1)], "year(c)"),
    "negative": (pa.int64(), [-1, -10, -11, 0, 9], "truncate(10, c)"),
}


@pytest.mark.parametrize("values", PARTITION_VALUES)
def test_t35_partition_values(values):
    type_, column, by = PARTITION_VALUES[values]
    data = numbered(pa.array(column, type_))
    table = own(data, partition_by=[by])
    wheres = {
        "text": ["c = ''", "c IS NULL", "c = 'a/b'", "c = '%2F'", "c > 'a'", "c <> ''", "c LIKE '__HIVE%'"],
        "floats": ["c = 0", "c = -0.0", "isnan(c)", "c > 0", "c <> 0", "c IS NULL", "c < 1", "c >= 1"],
        "days": ["c = DATE '1969-12-31'", "c < DATE '1970-01-01'", "c >= DATE '1970-01-01'"],
        "years": ["c >= DATE '1969-06-01'", "c < DATE '1969-06-01'", "c = DATE '1969-01-01'", "c > DATE '1969-12-30'"],
        "negative": ["c = -1", "c < -10", "c >= -10", "c BETWEEN -11 AND -1", "c > -1"],
    }[values]
    assert_safe(data, *wheres, given=[table])


def test_t36_files_sorted_in_other_orders():
    assert_genuine("sort_columns", "a", "{} = 3", "{} > 1", "{} < 2", "{} IS NULL")
    data = numbered(pa.array([None, 9, 5, None, 4, 1], pa.int64()))
    sorting = data.sort_by([("c", "descending")])
    file = written(sorting, row_group_size=2, write_page_index=True)
    assert_safe(data, "c = 5", "c < 5", "c IS NULL", "c >= 9", given=[registered(data.schema, file)])
    descending = own(data, sort_by=["-c"])
    assert_safe(data, "c = 5", "c < 5", "c IS NULL", "c >= 9", given=[descending])


def test_t37_a_file_that_was_replaced():
    data = numbered(pa.array([1, 2], pa.int64()))
    world = fresh()
    table = world.create(data.schema)
    table.register(world.put_parquet(data, "same"))
    world.put_parquet(numbered(pa.array([3, 4], pa.int64())), "same")
    with pytest.raises(Replaced):
        table.scan(where="c = 1").to_arrow()


def test_t37_a_sidecar_of_another_file_changes_no_answer():
    world = fresh()
    table = world.create("c bigint, n bigint", key=["c"], block_rows=2)
    table.append(pa.table({"c": [1, 3, 5, 7], "n": range(4)}))
    table.append(pa.table({"c": [2, 4, 6, 8], "n": range(4, 8)}))
    first, second = world.keys("/_pm/")
    swapped = bytes(world.store.get(second)[0]), bytes(world.store.get(first)[0])
    world.overwrite(first, swapped[0])
    world.overwrite(second, swapped[1])
    again = world.again().table("shop.sales")
    with pytest.warns(SidecarRebuilt):
        found = [again.count(col("c") == value) for value in range(1, 9)]
    assert found == [1] * 8


def test_t37_lost_and_damaged_sidecars_change_no_answer():
    world = fresh()
    table = world.create("c bigint, n bigint", key=["c"], block_rows=2)
    table.append(pa.table({"c": [1, 3, 5, 7], "n": range(4)}))
    table.append(pa.table({"c": [2, 4, 6, 8], "n": range(4, 8)}))
    first, second = world.keys("/_pm/")
    world.store.delete([first])
    world.overwrite(second, bytes(world.store.get(second)[0])[:-9])
    again = world.again().table("shop.sales")
    with pytest.warns(SidecarRebuilt):
        found = [again.count(col("c") == value) for value in range(1, 9)]
    assert found == [1] * 8


def test_t38_types_without_an_order():
    halves = numbered(pa.array([1.5, -0.0, float("nan"), None], pa.float16()))
    for table in (own(halves), registered(halves.schema, written(halves))):
        wheres = ["c > 1", "c = 0", "isnan(c)", "c <> 1.5", "c < 0", "c IS NULL"]
        assert by_scan(table, wheres) == [[0, 2], [1], [2], [1, 2], [], [3]]
        assert table.plan().minimum("c") is None
    assert pc.is_nan(registered_half()).to_pylist().count(True) > 0
    for type_ in (pa.month_day_nano_interval(), pa.duration("us")):
        with pytest.raises(UnderlayError):
            fresh().create(pa.schema([("c", type_)]))


def registered_half():
    world = fresh()
    table = world.create("x float16")
    table.register(world.put_parquet(from_testing("float16_nonzeros_and_nans")))
    return table.scan(where="isnan(x)").to_arrow()["x"].combine_chunks()
