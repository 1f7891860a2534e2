from __future__ import annotations

import itertools
import os

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import underlay
from underlay.scan.slabs import UNCOPIED_ROWS, without_rows

ROWS = 4 * UNCOPIED_ROWS


@given(st.sets(st.integers(0, ROWS - 1), max_size=12), st.lists(st.integers(1, ROWS - 1), max_size=3))
def test_rows_between_deleted_ones_are_those_of_a_filter(deleted: set[int], cuts: list[int]):
    edges = [0, *sorted(set(cuts)), ROWS]
    chunks = [np.arange(low, high) for low, high in itertools.pairwise(edges)]
    table = pa.table({"n": pa.chunked_array(chunks)})
    found = without_rows(table, np.array(sorted(deleted), np.int64))
    assert found["n"].to_pylist() == [number for number in range(ROWS) if number not in deleted]
    assert found.schema == table.schema


@pytest.mark.parametrize("where", [None, "id >= 0", "id % 2 = 0", "id < 5000 or id > 9000"])
def test_few_deleted_rows_are_left_out_of_every_scan(where: str | None):
    lake = underlay.connect(f"memory://{os.urandom(6).hex()}")
    table = lake.create_table("a.b", "id bigint", properties={"block_rows": 4000})
    table.append(pa.table({"id": range(10_000)}))
    gone = [0, 1, 3999, 4000, 9999]
    table.delete(underlay.col("id").is_in(gone))
    left = [number for number in range(10_000) if number not in gone]
    kept = {None: left, "id >= 0": left, "id % 2 = 0": [n for n in left if n % 2 == 0]}
    expected = kept.get(where, [n for n in left if n < 5000 or n > 9000])
    assert table.scan(where=where).to_arrow()["id"].to_pylist() == expected
    condition = "" if where is None else f"where {where}"
    assert lake.sql(f"select count(*) from a.b {condition}").to_arrow().column(0).to_pylist() == [len(expected)]
