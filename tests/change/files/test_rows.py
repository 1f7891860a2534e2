from __future__ import annotations

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from underlay.change.files import rows as module
from underlay.change.files.rows import read_rows
from underlay.errors import InvalidRequest

TABLE = pa.table({"a": pa.array([1, 2, 3], pa.int64()), "b": pa.array(["x", None, "z"])})
EMPTY = TABLE.slice(0, 0)


class Stream:
    """Something that speaks Arrow streams and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Struct:
    """Something that speaks Arrow arrays and nothing else."""

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_batches(max_chunksize=2),
        tuple(TABLE.to_batches(max_chunksize=1)),
        Stream(TABLE),
        Struct(),
        pl.from_arrow(TABLE),
        ds.dataset(TABLE).scanner(),
    ],
    ids=lambda data: type(data).__name__,
)
def test_rows_come_from_anything_that_speaks_arrow(data: object):
    assert pa.concat_tables(read_rows(data)()).to_pylist() == TABLE.to_pylist()


def test_rows_come_from_a_duckdb_relation():
    with duckdb.connect() as connection:
        connection.register("t", TABLE)
        found = pa.concat_tables(read_rows(connection.sql("select * from t"))())
    assert found.to_pylist() == TABLE.to_pylist()


@pytest.mark.parametrize("data", [TABLE, TABLE.to_batches()[0], TABLE.to_batches()], ids=lambda d: type(d).__name__)
def test_what_is_in_memory_is_read_as_often_as_needed(data: object):
    rows = read_rows(data)
    assert [pa.concat_tables(rows()).num_rows for _ in range(3)] == [3, 3, 3]


def test_a_reader_is_read_once_and_says_so():
    rows = read_rows(TABLE.to_reader())
    assert pa.concat_tables(rows()).num_rows == 3
    with pytest.raises(InvalidRequest, match="only once"):
        list(rows())


def test_a_long_reader_comes_in_runs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "RUN_BYTES", 100)
    batch = pa.record_batch({"a": pa.array(range(10), pa.int64())})
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch] * 7)
    runs = list(read_rows(reader)())
    assert [run.num_rows for run in runs] == [20, 20, 20, 10]


@pytest.mark.parametrize("data", [EMPTY, EMPTY.to_reader(), Stream(EMPTY)], ids=lambda data: type(data).__name__)
def test_no_rows_are_one_run_with_columns(data: object):
    (run,) = read_rows(data)()
    assert run.num_rows == 0
    assert run.schema.names == ["a", "b"]


@pytest.mark.parametrize("data", [None, 7, "rows", [1, 2], {"a": [1]}, object], ids=repr)
def test_what_is_no_rows_is_refused(data: object):
    with pytest.raises(InvalidRequest):
        read_rows(data)
