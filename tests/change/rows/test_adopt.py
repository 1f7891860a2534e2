from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay as ul
from tests.end_to_end.lakes import data_keys, named_keys
from underlay.api.table import Table
from underlay.change.rows.adopt import adopt, prepare
from underlay.change.rows.staged import Staged, commit_staged, staging_for
from underlay.errors import Inconsistent, Malformed, SchemaMismatch
from underlay.index.entry import Flag
from underlay.maintain.verify_lake import verify


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return ul.connect(tmp_path / "a lake").create_table("some.table", "id bigint not null, size double")


def adopted(table: Table, *paths: Path) -> Staged:
    staging = staging_for(table.read_head())
    prepared = {path: prepare(staging, table.stores.lake, path) for path in paths}
    return adopt(staging, paths[0].parent / "a lake", {path: one for path, one in prepared.items() if one is not None})


def written(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path, use_dictionary=False)
    return path


def test_files_are_moved_and_become_the_tables_own(table: Table, tmp_path: Path):
    paths = [written(tmp_path / f"{n}.parquet", id=[n, n + 10], size=[0.5, float("nan")]) for n in range(2)]
    empty = written(tmp_path / "empty.parquet", id=pa.array([], pa.int64()), size=pa.array([], pa.float64()))
    staged = adopted(table, *paths, empty)
    assert [path.exists() for path in (*paths, empty)] == [False, False, True]
    commit_staged(table.writable(), table.read_head(), [staged])
    assert sorted(table.to_arrow()["id"].to_pylist()) == [0, 1, 10, 11]
    assert len(data_keys(table.stores.lake)) == 2
    assert named_keys(table) == data_keys(table.stores.lake)
    assert verify(table.writable().lake, table.stores, deep=True).findings == ()


def test_a_writer_that_hides_nan_is_not_taken_to_have_none(table: Table, tmp_path: Path):
    (entry,) = adopted(table, written(tmp_path / "a.parquet", id=[1], size=[0.5])).entries
    assert Flag(entry.columns[1].flags[0]) & Flag.MAY_HOLD_NAN


@pytest.mark.parametrize(
    ("columns", "problem"),
    [({"id": [1, None]}, "id is required"), ({"id": [1], "other": [2]}, "other is in the file"), ({"id": ["a"]}, "id")],
)
def test_a_file_that_does_not_fit_is_refused_and_stays_where_it_is(
    table: Table, tmp_path: Path, columns: dict[str, object], problem: str
):
    path = written(tmp_path / "a.parquet", **columns)
    with pytest.raises(SchemaMismatch, match=problem):
        adopted(table, path)
    assert (path.exists(), data_keys(table.stores.lake)) == (True, set())


def test_what_is_no_parquet_file_is_refused(table: Table, tmp_path: Path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"rows, rows, rows")
    with pytest.raises(Malformed, match="not a Parquet file"):
        adopted(table, path)


@pytest.mark.parametrize("use_dictionary", [True, False])
@pytest.mark.parametrize("kind", [pa.string(), pa.list_(pa.string()), pa.struct({"a": pa.string()})])
def test_text_that_is_none_is_refused(tmp_path: Path, kind: pa.DataType, use_dictionary: bool):
    table = ul.connect(tmp_path / "a lake").create_table("some.texts", pa.schema([("t", kind)]))
    bad = pa.Array.from_buffers(pa.string(), 3, pa.array([b"good", None, b"\xed\xa0\x80"]).buffers())
    if isinstance(kind, pa.ListType):
        bad = pa.ListArray.from_arrays([0, 2, 2, 3], bad)
    elif isinstance(kind, pa.StructType):
        bad = pa.StructArray.from_arrays([bad], ["a"])
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": bad}), path, use_dictionary=use_dictionary, store_schema=False)
    with pytest.raises(SchemaMismatch, match=r"^t.*: text is not valid UTF-8\. Correct it"):
        adopted(table, path)
    staging = staging_for(table.read_head())
    assert prepare(staging, table.stores.lake, path, is_finished=True) is not None


@pytest.mark.parametrize("how", [{"use_dictionary": True}, {"bloom_filter_options": {"size": {"ndv": 9}}}])
def test_a_float_that_readers_would_look_up_is_refused(table: Table, tmp_path: Path, how: dict[str, object]):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2], "size": [0.0, -0.0]}), path, **{"use_dictionary": False, **how})
    with pytest.raises(Inconsistent, match="readers would miss a zero"):
        adopted(table, path)
