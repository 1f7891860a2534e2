"""Frames as people have them are appended by value, whatever types their library gave them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import underlay
from tests.end_to_end.lakes import memory, quick
from underlay.errors import SchemaMismatch, Unsupported


def table_of(columns: str) -> underlay.Table:
    return quick(memory()).create_table("some.table", columns)


def test_nanoseconds_of_pandas_go_into_microseconds():
    table = table_of("at timestamp, day date")
    days = pd.to_datetime(["2024-01-01", "2024-01-02"]).astype("datetime64[ns]")
    table.append(pd.DataFrame({"at": days, "day": days}))
    assert table.to_arrow().to_pylist() == [
        {"at": datetime(2024, 1, 1), "day": date(2024, 1, 1)},
        {"at": datetime(2024, 1, 2), "day": date(2024, 1, 2)},
    ]


def test_whole_numbers_of_pandas_go_into_every_type_that_has_them():
    table = table_of("a double, b int, c smallint, d decimal(10, 2), e utinyint, f real")
    table.append(pd.DataFrame({name: [1, 200] for name in "abcdef"}))
    table.append(pd.DataFrame({name: [1.0, 2.0] for name in "abcdef"}))
    assert table.to_arrow().sort_by("a").column("d").to_pylist() == [*[Decimal(1)] * 2, Decimal(2), Decimal(200)]
    assert table.count("a = 1 and b = 1 and c = 1 and d = 1 and e = 1 and f = 1") == 2


def test_a_value_that_does_not_fit_is_named_and_nothing_is_added():
    table = table_of("a int")
    with pytest.raises(SchemaMismatch, match=r"a: .* in row 1, and in 1 more \(expected int32, found 2147483648\)"):
        table.append(pd.DataFrame({"a": [1, 2**31, -(2**40)]}))
    assert (table.count(), table.version) == (0, 0)


def test_rows_are_counted_over_all_batches_of_a_reader(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("underlay.change.files.rows.RUN_BYTES", 1)
    batches = [pa.record_batch({"a": [1, 2]}), pa.record_batch({"a": [3, 2**31]})]
    with pytest.raises(SchemaMismatch, match="in row 3 "):
        table_of("a int").append(pa.RecordBatchReader.from_batches(batches[0].schema, batches))


def test_categories_and_enumerations_are_text_also_in_lists_and_structs():
    table = table_of("a string, e string, l array<string>, s struct<c: string>, t array<tinyint>")
    frame = pl.DataFrame(
        {
            "a": pl.Series(["x", None, "y"], dtype=pl.Categorical),
            "e": pl.Series(["x", None, "y"], dtype=pl.Enum(["x", "y"])),
            "l": pl.Series([["x"], None, ["y", "x"]], dtype=pl.List(pl.Categorical)),
            "s": pl.Series([{"c": "x"}, None, {"c": "y"}], dtype=pl.Struct({"c": pl.Categorical})),
            "t": pl.Series([[1, 2], None, [3, 4]], dtype=pl.Array(pl.Int64, 2)),
        }
    )
    table.append(frame)
    table.append(frame.filter(pl.col("a") == "y"))
    table.append(pd.DataFrame({"a": pd.Categorical(["z"])}))
    found = table.to_arrow().to_pydict()
    assert found["a"] == ["x", None, "y", "y", "z"]
    assert found["e"] == ["x", None, "y", "y", None]
    assert found["l"] == [["x"], None, ["y", "x"], ["y", "x"], None]
    assert found["s"] == [{"c": "x"}, None, {"c": "y"}, {"c": "y"}, None]
    assert found["t"] == [[1, 2], None, [3, 4], [3, 4], None]


def test_integers_of_128_bits_are_refused_with_what_to_do():
    with pytest.raises(Unsupported, match=r"_pli128.*pl\.Decimal\(38, 0\)"):
        table_of("a bigint").append(pl.DataFrame({"a": pl.Series([1], dtype=pl.Int128)}))


def test_an_instant_of_any_zone_is_the_same_instant_and_times_without_one_are_refused():
    table = table_of("at timestamptz")
    table.append(pd.DataFrame({"at": pd.to_datetime(["2024-01-01T09:00"]).tz_localize("Asia/Tokyo")}))
    assert table.to_arrow()["at"].to_pylist() == [datetime(2024, 1, 1, tzinfo=UTC)]
    with pytest.raises(SchemaMismatch, match="only you know in which zone"):
        table.append(pd.DataFrame({"at": pd.to_datetime(["2024-01-01T09:00"])}))
    assert table.count() == 1


def test_blocks_are_pruned_by_the_tables_type():
    table = table_of("a double")
    table.append(pa.table({"a": [1, 2, 3]}))
    table.append(pa.table({"a": [10, 20, 30]}))
    assert table.scan(where="a > 5.5").to_arrow()["a"].to_pylist() == [10.0, 20.0, 30.0]
    assert table.plan(where="a > 5.5").kept.files == 1
