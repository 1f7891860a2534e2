from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay
from tests.contract.worlds import add_column, delete_positions
from tests.end_to_end.lakes import NAME, SCHEMA, memory, quick, rows
from underlay.errors import InvalidRequest, NotFound, Replaced
from underlay.prune import TRUE, col
from underlay.scan.portion import Portion, portions, read_portion
from underlay.scan.read.file_stores import FileStores
from underlay.store import Store
from underlay.store.testing.counting import CountingStore

FILES, ROWS = 4, 100


@pytest.fixture
def store() -> Store:
    store = memory()
    table = quick(store).create_table(NAME, SCHEMA, properties={"block_rows": 25})
    for file in range(FILES):
        table.append(rows(range(file * ROWS, (file + 1) * ROWS)))
    return store


def table_of(store: Store) -> underlay.Table:
    return quick(store).table(NAME)


def sent(found: list[Portion]) -> list[Portion]:
    """The portions as another process gets them."""
    return [msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=Portion) for one in found]


def read_all(store: Store, found: list[Portion], predicate=TRUE) -> pa.Table:
    batches = [batch for one in sent(found) for batch in read_portion(one, FileStores(store), predicate)]
    return pa.Table.from_batches(batches)


@pytest.mark.parametrize("target", [1, 2000, 1 << 30])
def test_portions_of_any_size_hold_every_row_once_in_order(store: Store, target: int):
    table = table_of(store)
    found = portions(table.query(None, None), target_bytes=target)
    assert read_all(store, found).equals(table.to_arrow())


def test_small_targets_make_many_portions_and_a_block_is_never_cut(store: Store):
    query = table_of(store).query(None, None)
    assert len(portions(query, target_bytes=1)) == FILES * ROWS // 25
    assert len(portions(query, target_bytes=1 << 30)) == 1


def test_about_as_many_portions_are_made_as_are_asked_for(store: Store):
    query = table_of(store).query(None, None)
    assert 4 <= len(portions(query, target_bytes=32 << 10, least=4)) <= 8


def test_the_predicate_and_columns_count(store: Store):
    table = table_of(store)
    where = (col("id") > 90) & (col("id") < 110)
    found = portions(table.query(["name"], where), target_bytes=1)
    assert len(found) == 2
    assert read_all(store, found, where).equals(table.scan(["name"], where).to_arrow())


def test_columns_that_files_do_not_have_are_null(store: Store):
    add_column(table_of(store), "extra", "int64")
    table = table_of(store)
    assert read_all(store, portions(table.query(None, None), target_bytes=2000)).equals(table.to_arrow())


def test_deleted_rows_are_not_read(store: Store):
    delete_positions(table_of(store), {0: [0, 30, 99]})
    table = table_of(store)
    found = read_all(store, portions(table.query(None, None), target_bytes=1))
    assert found.num_rows == FILES * ROWS - 3
    assert found.equals(table.to_arrow())


def test_registered_files_are_read_by_their_etag(store: Store, tmp_path: Path):
    path = tmp_path / "other file.parquet"
    pq.write_table(rows(range(1000, 1010)), path)
    table = table_of(store)
    table.register(str(path))
    found = sent(portions(table_of(store).query(None, None), target_bytes=1))
    assert read_all(store, found).equals(table_of(store).to_arrow())
    pq.write_table(rows(range(2000, 2011)), path)
    with pytest.raises(Replaced):
        read_all(store, found)


def test_whoever_reads_a_portion_asks_for_data_alone(store: Store):
    found = sent(portions(table_of(store).query(None, None), target_bytes=1))
    counting = CountingStore(store)
    list(read_portion(found[0], FileStores(counting), TRUE))
    assert [key.rsplit(".", 1)[-1] for served in counting.log for key in served.request.keys] == ["parquet"]


def test_a_file_that_is_gone_is_an_error(store: Store):
    found = sent(portions(table_of(store).query(None, None), target_bytes=1))
    store.delete([f"{found[0].folder}/{found[0].slabs[0].location}"])
    with pytest.raises(NotFound):
        list(read_portion(found[0], FileStores(store), TRUE))


def test_a_portion_is_not_read_without_the_rest_of_its_conditions(store: Store):
    query = table_of(store).query(["name"], "id % 7 = 3")
    found = sent(portions(query, target_bytes=2000))
    with pytest.raises(InvalidRequest, match="without all of the query's conditions"):
        read_all(store, found, query.predicate)
    batches = [
        batch for one in found for batch in read_portion(one, FileStores(store), query.predicate, query.apply_rest)
    ]
    assert pa.Table.from_batches(batches).equals(query.table())
