from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import underlay
from underlay.index.operation import Operation
from underlay.prune import TRUE, Predicate, col
from underlay.scan.positions import file_may_match, row_positions
from underlay.scan.query import Query
from underlay.scan.read.file_stores import FileStores
from underlay.store import open_store
from underlay.table.commit.commit import commit
from underlay.table.open_table import OpenTable

NAMES = ["a", "b", None, "c"]


@pytest.fixture(scope="module")
def table() -> OpenTable:
    """Files of many small blocks; every seventh row of the first one is deleted."""
    lake = underlay.connect(open_store(f"memory://{os.urandom(6).hex()}"))
    made = lake.create_table("some.table", "id bigint, name string", properties={"block_rows": 100})
    for first in (0, 1000, 2000):
        ids = range(first, first + 1000)
        made.append(pa.table({"id": ids, "name": [NAMES[number // 250 % 4] for number in ids]}))
    opened = made.writable()
    head = opened.head()
    transaction = opened.begin(head, Operation.DELETE)
    transaction.delete_rows(head.root.tail[0].location, range(0, 1000, 7))
    commit(transaction)
    return opened


@pytest.mark.parametrize(
    "predicate",
    [TRUE, col("id") < 150, col("name") == "a", col("name").is_in(["b", "c"]), col("name").is_null(), col("id") > 9999],
    ids=str,
)
def test_positions_are_those_of_the_rows_that_a_scan_finds(table: OpenTable, predicate: Predicate):
    head = table.head()
    snapshot = table.snapshot(head)
    query = Query(
        snapshot=snapshot, columns=("id",), stores=FileStores(table.lake.store), predicate=predicate, workers=2
    )
    first_id = {file.location: 1000 * number for number, file in enumerate(head.root.tail)}
    found = [first_id[location] + at for location, positions in row_positions(query) for at in positions.tolist()]
    assert found == query.table()["id"].to_pylist()


def test_a_new_file_may_match_unless_its_bounds_rule_that_out(table: OpenTable):
    head = table.head()
    may_match = file_may_match(table.snapshot(head).schema, col("id").is_in([1500, 5000]))
    assert [may_match(file) for file in head.root.tail] == [False, True, False]


@pytest.mark.parametrize("where", ["id % 10 = 3", "id < 250 and lower(name) = 'a'", "coalesce(name, 'c') = 'c'"])
def test_positions_obey_what_only_an_engine_can_apply(table: OpenTable, where: str):
    """Rows of a delete are those of the scan, also when DuckDB decides on them."""
    head = table.head()
    found = underlay.connect(table.lake.store).table("some.table").query(["id"], where)
    first_id = {file.location: 1000 * number for number, file in enumerate(head.root.tail)}
    positions = [first_id[location] + at for location, some in row_positions(found) for at in some.tolist()]
    assert positions == found.table()["id"].to_pylist() != []


def test_positions_obey_what_only_arrow_can_apply(table: OpenTable):
    head = table.head()
    condition = pc.bit_wise_and(pc.field("id"), 3) == 1
    found = underlay.connect(table.lake.store).table("some.table").query(["id"], condition)
    assert found.rest is not None
    first_id = {file.location: 1000 * number for number, file in enumerate(head.root.tail)}
    positions = [first_id[location] + at for location, some in row_positions(found) for at in some.tolist()]
    assert positions == found.table()["id"].to_pylist() != []
