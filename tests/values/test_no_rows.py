"""Tables and batches without rows have every type, also those of which Arrow makes no empty array by itself."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.end_to_end.lakes import memory, quick
from underlay.values.no_rows import empty_batch, no_rows

TYPES = [
    pa.int64(),
    pa.uuid(),
    pa.list_(pa.uuid()),
    pa.struct([("a", pa.uuid())]),
    pa.map_(pa.string(), pa.list_(pa.uuid())),
    pa.list_(pa.struct([("q", pa.uuid())])),
]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_no_rows_have_the_schema(kind: pa.DataType):
    schema = pa.schema([pa.field("x", kind, metadata={"a": "b"})])
    assert no_rows(schema).schema.equals(schema, check_metadata=True)
    assert empty_batch(schema).schema.equals(schema, check_metadata=True)
    assert no_rows(schema).num_rows == empty_batch(schema).num_rows == 0


@pytest.mark.parametrize("kind", TYPES[1:], ids=str)
def test_rows_beside_nested_uuids_are_found_and_changed(kind: pa.DataType):
    lake = quick(memory())
    table = lake.create_table("a.b", pa.schema([("id", pa.int64()), ("x", kind)]), key=["id"])
    assert table.scan(where="id = 1").to_arrow().num_rows == 0
    table.append(pa.table({"id": [1, 2, 3], "x": pa.nulls(3, kind)}))
    assert table.scan(where="id > 1 and x is null").to_arrow()["id"].to_pylist() == [2, 3]
    table.update({"id": "id + 10"}, where="id = 1")
    table.delete("id % 2 = 0")
    assert sorted(lake.sql("select * from a.b where id > 2").to_arrow()["id"].to_pylist()) == [3, 11]
