"""The rules of docs/interop.md: each was a wrong answer in an engine, and each is missed if it is taken out
(tests/mutations.py).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

import underlay as ul
from tests.interop.engines import ENGINES, ask_duckdb
from underlay import Lake
from underlay.api.table import Table
from underlay.errors import NotExportable
from underlay.index.entry import Flag
from underlay.index.root import PartitionFieldRecord
from underlay.index.segment.segment import Segment
from underlay.interop.iceberg.columns.partition_specs import exported_specs
from underlay.interop.iceberg.objects.bounds import LeafMetrics, leaf_metrics


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with ul.connect(tmp_path / "lake", registry="none") as lake:
        yield lake


def rules_of(table: Table, **options: object) -> set[str]:
    """The rules by which an export is refused."""
    with pytest.raises(NotExportable) as raised:
        table.export(**options)
    return {one.rule for one in raised.value.refusals}


def write(folder: Path, rows: pa.Table, name: str = "a.parquet", **options: object) -> str:
    path = folder / name
    pq.write_table(rows, path, **options)
    return str(path)


def with_ids(schema: pa.Schema, *ids: int) -> pa.Schema:
    return pa.schema(
        [field.with_metadata({"PARQUET:field_id": str(one)}) for field, one in zip(schema, ids, strict=True)]
    )


def metrics_of(table: Table, name: str, *, drop: int = 0) -> LeafMetrics:
    """What an export says of a column; `drop` are flags that the index does not have."""
    snapshot = table.snapshot()
    leaf = snapshot.schema.leaf_by_path[(name,)]
    entries = []
    for file in snapshot.files():
        columns = [
            replace(one, flags=bytes(flag & ~drop for flag in one.flags)) if one.field == leaf.id else one
            for one in file.columns
        ]
        entries.append(replace(file, columns=tuple(columns)))
    found = leaf_metrics(Segment.of_entries(entries, snapshot.schema), leaf)
    assert found is not None
    return found


def test_x1_files_with_milliseconds_are_refused(lake: Lake, tmp_path: Path):
    table = lake.create_table("d.t", "c timestamp(3)", sort_by=["c"])
    stamps = pa.array([datetime.datetime(2024, 1, 1)], pa.timestamp("ms"))
    table.register(write(tmp_path, pa.table({"c": stamps})))
    assert rules_of(table) == {"X1"}
    table.import_files()
    assert rules_of(table) == {"X1"}  # blocks are copied as they are
    table.compact(order="sort")
    query = "select count(*) from t where c >= '2024-01-01T00:00:00'"
    assert [ask(table.export().metadata_url or "", query) for ask in ENGINES.values()] == [[(1,)]] * 3


@pytest.mark.parametrize("ids", [(2, 1), (1, 7), (101, 102)])
def test_x2_files_with_ids_of_others_are_refused(lake: Lake, tmp_path: Path, ids: tuple[int, int]):
    table = lake.create_table("d.t", "a int, b int")
    rows = pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([2], pa.int32())})
    table.register(write(tmp_path, rows.cast(with_ids(rows.schema, *ids))))
    assert rules_of(table) == {"X2"}


def test_x2_files_with_the_tables_own_ids_are_exported(lake: Lake, tmp_path: Path):
    table = lake.create_table("d.t", "a int, b int")
    rows = pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([2], pa.int32())})
    table.register(write(tmp_path, rows.cast(with_ids(rows.schema, 1, 2))))
    assert ask_duckdb(table.export().metadata_url or "", "select a, b from t") == [(1, 2)]


def test_x3_the_name_mapping_lists_every_column(lake: Lake, tmp_path: Path):
    table = lake.create_table("d.t", "a int, size int, c int")
    rows = pa.table({name: pa.array([1, 2], pa.int32()) for name in ("extra", "size", "a", "c")})
    table.register(write(tmp_path, rows), ignore_surplus=True)
    url = table.export(without=["size"]).metadata_url or ""
    for ask in ENGINES.values():
        assert ask(url, "select sum(a), sum(c) from t") == [(3, 3)]


def test_x3_a_name_that_meant_another_column_is_refused(lake: Lake, tmp_path: Path):
    table = lake.create_table("d.t", "a int, b int", sort_by=["b"])
    rows = pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([2], pa.int32())})
    table.register(write(tmp_path, rows))
    with table.evolve() as change:
        change.drop_column("a")
        change.add_column("a", "int")
    table.register(write(tmp_path, rows, "b.parquet"))
    assert rules_of(table) == {"X3"}
    table.import_files()
    table.compact(order="sort")
    assert ask_duckdb(table.export().metadata_url or "", "select count(*), count(a) from t") == [(2, 1)]


def test_x4_bounds_of_numbers_are_values(lake: Lake):
    table = lake.create_table("d.t", "n int, s string")
    table.append([{"n": n, "s": f"text {n}"} for n in range(1, 4)])
    exact = Flag.IS_LOW_EXACT | Flag.IS_HIGH_EXACT
    assert metrics_of(table, "n").lows == [b"\x01\0\0\0"]
    found = metrics_of(table, "n", drop=exact)
    assert (found.lows, found.highs) == ([None], [None])
    assert metrics_of(table, "s", drop=exact).lows == [b"text 1"]


def test_x5_unsigned_integers_are_refused(lake: Lake, tmp_path: Path):
    table = lake.create_table("d.t", "n bigint, size uint8", sort_by=["n"])
    assert rules_of(table) == {"X5"}
    table.register(write(tmp_path, pa.table({"n": pa.array([1], pa.uint32()), "size": pa.array([1], pa.uint8())})))
    assert rules_of(table, without=["size"]) == {"X5"}
    table.import_files()
    table.compact(order="sort")
    assert "unsigned" in table.export(without=["size"]).notes[0]


def test_x6_a_default_that_files_lack_needs_format_3(lake: Lake):
    table = lake.create_table("d.t", "n int")
    table.append([{"n": 1}])
    with table.evolve() as change:
        change.add_column("c", "int", default=42)
    assert rules_of(table, format=2) == {"X6"}
    exported = table.export()
    assert exported.format == 3
    for ask in ENGINES.values():
        assert ask(exported.metadata_url or "", "select n, c from t") == [(1, 42)]


def test_x7_uuids_have_no_bounds(lake: Lake):
    table = lake.create_table("d.t", "c uuid, b binary")
    table.append(pa.table({"c": [UUID(int=7).bytes], "b": [b"x"]}).cast(table.schema))
    assert (metrics_of(table, "c").lows, metrics_of(table, "b").lows) == ([None], [b"x"])


def test_x8_there_are_no_bounds_where_nan_may_be(lake: Lake, tmp_path: Path):
    table = lake.create_table("d.t", "c double")
    table.register(write(tmp_path, pa.table({"c": [1.0, 2.0, math.nan]})))
    table.register(write(tmp_path, pa.table({"c": [1.0, 2.0]}), "b.parquet"))
    found = metrics_of(table, "c", drop=0)
    assert (found.highs, found.nans) == ([None, None], [None, None])
    table.import_files()
    own = metrics_of(table, "c")
    assert ask_duckdb(table.export().metadata_url or "", "select count(*) from t where c > 5") == [(1,)]
    assert all(high is None or nan == 0 for high, nan in zip(own.highs, own.nans, strict=True))


def test_x10_buckets_by_another_hash_are_no_partitions(lake: Lake):
    table = lake.create_table("d.t", "id bigint, s string", partition_by=["bucket(4, id)", "bucket(3, s)"])
    table.append([{"id": n, "s": f"text {n}"} for n in range(50)])
    schema, definition = table.snapshot().schema, table.definition
    columns = frozenset(leaf.id for leaf in schema.leaves)
    assert [one.transform for one in exported_specs(definition, schema, columns)[0]] == ["bucket[4]", "bucket[3]"]
    old = replace(definition, partition_by=(PartitionFieldRecord(field=1, transform="bucket", width=4),))
    assert exported_specs(old, schema, columns)[0] == ()
    url = table.export().metadata_url or ""
    for n in range(0, 50, 7):
        for ask in ENGINES.values():
            assert ask(url, f"select id from t where id = {n}") == [(n,)]
            assert ask(url, f"select id from t where s = 'text {n}'") == [(n,)]


@pytest.mark.parametrize("type_", ["time", "timestamp(9)"])
def test_x11_columns_that_spark_cannot_open_are_noted(lake: Lake, type_: str):
    table = lake.create_table("d.t", f"n int, c {type_}")
    assert "X11" in table.export().notes[0]
    assert table.export(without=["c"]).notes == ()


def test_x13_no_bound_is_zero(lake: Lake):
    table = lake.create_table("d.t", "c double")
    table.append([{"c": 0.0}, {"c": 5.0}])
    found = metrics_of(table, "c")
    assert (found.lows, found.highs[0]) == ([None], b"\0\0\0\0\0\0\x14@")


@pytest.mark.parametrize(
    ("before", "after"), [("date", "timestamp"), ("int", "double"), ("decimal(5, 2)", "decimal(9, 4)")]
)
def test_types_that_readers_do_not_widen_are_refused(lake: Lake, before: str, after: str):
    table = lake.create_table("d.t", f"n int, c {before}")
    values = pa.array(["2024-01-01"]).cast(pa.date32()) if before == "date" else pa.array([1], pa.int8())
    table.append(pa.table({"n": [1], "c": values}).cast(table.schema))
    table.export()
    with table.evolve() as change:
        change.widen_column("c", after)
    assert rules_of(table) == {"types"}


def test_names_that_dots_make_equal_are_refused(lake: Lake):
    inner = pa.struct([("b", pa.int32())])
    table = lake.create_table("d.t", pa.schema([("a", inner), ("a.b", pa.int32()), ("c", pa.int32())]))
    table.append([{"a": {"b": 1}, "a.b": 2, "c": 3}])
    assert rules_of(table) == {"names"}
    assert ask_duckdb(table.export(without=["a"]).metadata_url or "", 'select "a.b", c from t') == [(2, 3)]


def test_zones_that_pyiceberg_does_not_read_are_noted(lake: Lake):
    table = lake.create_table("d.t", pa.schema([("c", pa.timestamp("us", "Europe/Warsaw"))]))
    table.append(pa.table({"c": [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)]}).cast(table.schema))
    exported = table.export()
    assert "pyiceberg" in exported.notes[0]
    assert ask_duckdb(exported.metadata_url or "", "select count(*) from t where c >= '2024-01-01T00:00:00Z'") == [(1,)]


def test_values_from_paths_are_refused_until_they_are_imported(lake: Lake, tmp_path: Path):
    table = lake.create_table("d.t", "n int, year int")
    (tmp_path / "year=2024").mkdir()
    table.register(write(tmp_path / "year=2024", pa.table({"n": pa.array([1], pa.int32())})))
    assert rules_of(table) == {"constants"}
    assert table.export(without=["year"]).left_out == {"year": "left out on request"}
    table.import_files()
    assert ask_duckdb(table.export().metadata_url or "", "select n, year from t") == [(1, 2024)]
