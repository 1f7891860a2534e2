"""Merges compare instants of nanoseconds with a zone, and nanoseconds of a day, exactly: DuckDB would cut or refuse."""

from __future__ import annotations

import pyarrow as pa
import pytest

import underlay as ul
from tests.end_to_end.lakes import memory, quick
from underlay.errors import InvalidRequest

INSTANT, CLOCK = pa.timestamp("ns", "UTC"), pa.time64("ns")
NANOSECONDS = [1000, 1001, 2000, None]


def table() -> ul.Table:
    """Four rows in blocks of their own, with the same nanoseconds as instants, times of day and in a struct."""
    instants = pa.array(NANOSECONDS, INSTANT)
    rows = pa.table(
        {
            "k": [1, 2, 3, 4],
            "z": instants,
            "h": pa.array(NANOSECONDS, CLOCK),
            "p": pa.StructArray.from_arrays([instants], ["z"]),
            "v": [0, 0, 0, 0],
        }
    )
    made = quick(memory()).create_table("a.b", rows.schema, properties={"block_rows": 1})
    made.append(rows)
    return made


def source(unit: str, zone: str, counts: list[int | None]) -> pa.Table:
    clock = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    of_day = pa.array(counts, pa.int32() if clock.bit_width == 32 else pa.int64()).cast(clock)
    return pa.table({"z": pa.array(counts, pa.timestamp(unit, zone)), "h": of_day, "w": range(7, 7 + len(counts))})


def merged(rows: pa.Table, condition: str, **values: object) -> tuple[list[int], int]:
    """What `v` became of each row, and the blocks that were looked at."""
    target = table()
    merge = target.merge(rows, condition, source_alias="s", target_alias="t", params=values or None)
    done = merge.when_matched_update({"v": "s.w"}).execute()
    return target.to_arrow().sort_by("k")["v"].to_pylist(), done.blocks_read


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("t.z = s.z", [0, 7, 8, 0]),
        ("t.h = s.h", [0, 7, 8, 0]),
        ("t.p.z = s.z", [0, 7, 8, 0]),
        ("(s.z) = ((t.z)) AND t.k > 2", [0, 0, 8, 0]),
        ("t.z IS NOT DISTINCT FROM s.z", [0, 7, 8, 9]),
        ("NOT (t.z <> s.z)", [0, 7, 8, 0]),
        ("t.z < s.z AND s.w = 8", [8, 8, 0, 0]),
        ("t.h >= s.h AND s.w = 7", [0, 7, 7, 0]),
        ("t.z = s.z AND t.z > '1970-01-01 00:00:00.000001001Z'", [0, 0, 8, 0]),
        ("'1970-01-01 01:00:00.000001001+01:00' >= t.z AND s.w = 7", [7, 7, 0, 0]),
        ("'00:00:00.000001001' < t.h AND s.w = 7", [0, 0, 7, 0]),
        ("t.h = s.h AND hour(t.h) = 0", [0, 7, 8, 0]),
    ],
)
def test_nanoseconds_are_compared_exactly(condition: str, expected: list[int]):
    assert merged(source("ns", "UTC", [1001, 2000, None]), condition)[0] == expected


@pytest.mark.parametrize(
    ("unit", "counts", "expected"),
    [("us", [1, 2], [7, 0, 8, 0]), ("ms", [0, 1], [0, 0, 0, 0]), ("s", [0, 80_000], [0, 0, 0, 0])],
)
@pytest.mark.parametrize("column", ["z", "h"])
def test_other_units_and_zones_are_compared_by_value(column: str, unit: str, counts: list[int], expected: list[int]):
    assert merged(source(unit, "Europe/Warsaw", list(counts)), f"t.{column} = s.{column}")[0] == expected


def test_instants_that_nanoseconds_do_not_reach_equal_none():
    assert merged(
        source("s", "UTC", [0, 80_000]).set_column(0, "z", pa.array([2**40, 0], pa.timestamp("s", "UTC"))), "t.z <= s.z"
    )[0] == [7, 7, 7, 0]


@pytest.mark.parametrize("column", ["z", "h", "p.z"])
def test_only_blocks_that_may_have_such_a_time_are_read(column: str):
    rows = source("ns", "UTC", [1001, 1002])
    assert merged(rows, f"t.{column} = s.{column.rpartition('.')[2]}") == ([0, 7, 0, 0], 1)


def test_whole_microseconds_may_stand_in_any_expression_and_others_are_refused_with_their_place():
    whole = source("ns", "UTC", [2000])
    assert merged(whole, "t.z = s.z AND hour(s.z) = 0")[0] == [0, 0, 7, 0]
    with pytest.raises(InvalidRequest, match=r"^the condition: DuckDB would truncate values of z"):
        merged(source("ns", "UTC", [2001]), "t.k = 1 AND hour(s.z) = 0")


def test_predicates_and_values_of_clauses_compare_exactly_too():
    target = table()
    merge = target.merge(source("ns", "UTC", [1001]), "t.k = s.w - 5", source_alias="s", target_alias="t")
    done = merge.when_matched_update({"v": "CASE WHEN t.z = s.z THEN 1 ELSE 2 END"}, "s.z <= t.z").execute()
    assert done.rows_updated == 1
    target.update({"v": "v + CASE WHEN z > '1970-01-01 00:00:00.000001Z' THEN 10 ELSE 0 END"})
    assert target.to_arrow().sort_by("k")["v"].to_pylist() == [0, 11, 10, 0]


def test_an_update_computes_with_whole_microseconds_and_cuts_no_others():
    target = table()
    with pytest.raises(InvalidRequest, match=r"^z: DuckDB would truncate values of z"):
        target.update({"z": "z + INTERVAL 1 MICROSECOND"})
    target.update({"z": "z + INTERVAL 1 MICROSECOND"}, where="k <> 2")
    assert target.to_arrow().sort_by("k")["z"].cast(pa.int64()).to_pylist() == [2000, 1001, 3000, None]


def test_a_column_that_has_the_name_of_the_other_side_is_a_column():
    schema = pa.schema([("s", pa.int64()), ("z", INSTANT)])
    target = quick(memory()).create_table("a.b", schema)
    target.append(pa.table({"s": [1, 2], "z": pa.array([1001, 1002], INSTANT)}))
    merge = target.merge(pa.table({"s": [2]}), "t.s = s.s", source_alias="s", target_alias="t")
    assert merge.when_matched_delete().execute().rows_deleted == 1
