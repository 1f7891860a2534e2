"""Nested columns and odd names: a predicate prunes by its own column or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pm.prune.conftest import Written
from underlay.pm.prune.columns import SidecarColumns

NESTED = {
    "list": (pa.list_(pa.int64()), [[1, 2], [], None, [None, 9]]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)], None, []]),
    "struct of one": (pa.struct([("x", pa.int64())]), [{"x": 1}, {"x": None}, None]),
    "struct of a required one": (pa.struct([pa.field("x", pa.int64(), nullable=False)]), [{"x": 1}, None]),
    "list of structs": (pa.list_(pa.struct([("x", pa.int64())])), [[{"x": 1}], None]),
    "struct of a list": (pa.struct([("x", pa.list_(pa.int64()))]), [{"x": [1]}, None]),
}


@pytest.mark.parametrize(("type_", "rows"), NESTED.values(), ids=NESTED)
def test_a_nested_column_is_never_dropped_by_its_own_name(write, type_: pa.DataType, rows: list[Any]):
    file = write(rows, type=type_)
    for where in ("c IS NULL", "c IS NOT NULL", "c = 77", "c < 0"):
        assert file.kept(where) == [0], where
    for where in ("c IS NULL", "c IS NOT NULL"):
        assert file.kept_alone(where) == [0], where


def test_items_of_a_list_are_not_the_rows(write):
    file = write([[1, 2], [], None, [None, 9]], [[3]], type=pa.list_(pa.int64()))
    for where in ("c.list.element = 77", "c.list.element IS NULL", "c.list.element IS NOT NULL"):
        assert file.kept(where) == [0, 1]
    assert file.kept_alone("c = 77") == [0, 1]


def test_a_field_of_a_struct_is_pruned_by_its_path(write):
    type_ = pa.struct([("x", pa.int64()), ("y", pa.string())])
    file = write([{"x": 1, "y": "a"}, None], [{"x": None, "y": "b"}], [{"x": 5, "y": "c"}], type=type_)
    assert file.kept("c.x = 5") == [2]
    assert file.kept("c.x IS NULL") == [0, 1]
    assert file.kept("c.x IS NOT NULL") == [0, 2]
    assert file.kept("c.y > 'a'") == [1, 2]
    for where in ("c = 77", "c IS NULL", "c IS NOT NULL"):
        assert file.kept_both(where) == [0, 1, 2]


def test_a_struct_whose_only_field_is_null_is_not_null(write):
    file = write([{"x": None}], [None], type=pa.struct([("x", pa.int64())]))
    assert file.kept_both("c IS NOT NULL") == [0, 1]
    assert file.kept("c.x IS NOT NULL") == []


def test_fields_of_a_required_struct_are_not_taken_for_a_column(tmp_path: Path):
    path = tmp_path / "data.parquet"
    inner = pa.struct([("x", pa.int64())])
    schema = pa.schema([pa.field("c", inner, nullable=False)])
    pq.write_table(pa.table({"c": pa.array([{"x": None}, {"x": None}], inner)}, schema=schema), path)
    file = Written.read(path)
    assert file.kept_both("c IS NOT NULL") == [0]
    assert file.kept("c.x IS NOT NULL") == []


def test_a_name_that_several_columns_have_prunes_nothing(tmp_path: Path):
    path = tmp_path / "data.parquet"
    columns = [pa.array([1, 2]), pa.array([100, 200]), pa.array([7, 7]), pa.array([8, 8])]
    pq.write_table(pa.Table.from_arrays(columns, ["c", "c", "A", "a"]), path)
    file = Written.read(path)
    for where in ("c = 50", "c IS NULL", "c > 1000"):
        assert file.kept_both(where) == [0]
    assert file.kept_both("A = 8") == file.kept_both("a = 7") == []
    assert len(SidecarColumns(file.sidecar)) == len(SidecarColumns(file.sidecar, file.schema)) == 3
    assert set(SidecarColumns(file.sidecar)) == {("c",), ("A",), ("a",)}


def test_a_dot_in_a_name_is_no_step_into_a_struct(tmp_path: Path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"s.x": [1, 2], "s": pa.array([{"x": 50}, {"x": 60}])}), path)
    file = Written.read(path)
    assert file.kept('"s.x" = 50') == []
    assert file.kept("s.x = 50") == [0]
    assert file.kept("s.x = 1") == []
