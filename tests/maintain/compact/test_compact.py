"""A compacted table has the same rows in fewer and better files, in every version, whatever else is committed."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.maintain.compact.lakes import COLUMNS, NAME, check_sound, files, lake_of, make, rows, seen
from underlay.api.lake import connect
from underlay.api.table import Table
from underlay.errors import InvalidRequest, UnknownColumn
from underlay.index.operation import Operation
from underlay.store import open_store


def block_statistics(table: Table) -> dict[tuple, tuple]:
    """What the index knows of the blocks of a table, but for where they lie; by their least ids."""
    found = {}
    for entry in files(table):
        counts = np.frombuffer(entry.block_rows, "<i8")
        by_field = {column.field: column for column in entry.columns}
        least = np.frombuffer(by_field[1].low, "<i8")
        for block, count in enumerate(counts.tolist()):
            found[int(least[block]), count] = tuple(
                (
                    column.field,
                    column.flags[block],
                    column.codecs[block],
                    column.null_counts[8 * block : 8 * block + 8],
                    column.sizes[8 * block : 8 * block + 8],
                    bytes(_bound(column.low, len(counts), block)),
                    bytes(_bound(column.high, len(counts), block)),
                )
                for column in entry.columns
            )
    return found


def _bound(packed: bytes, count: int, block: int) -> bytes:
    if len(packed) == 8 * count:
        return packed[8 * block : 8 * block + 8]
    if not packed:
        return b""
    ends = np.frombuffer(packed[: 4 * (count + 1)], "<i4")
    return packed[4 * (count + 1) :][ends[block] : ends[block + 1]]


def test_small_files_become_one_and_full_blocks_are_copied(store):
    table = make(store)
    before, known = seen(table), block_statistics(table)
    done = table.compact()
    assert (done.files_before, done.files_after, done.commit_count) == (7, 1, 1)
    assert (done.blocks_copied, done.blocks_encoded) == (5 + 1, 3)  # of 250 rows the last 50 are half of a block
    assert seen(table) == before
    after = block_statistics(table)
    copied = {block for block in known if block[1] >= 50}
    assert {block: after[block] for block in copied} == {block: known[block] for block in copied}
    assert table.at(version=7).count() == 610
    assert next(table.history()).operation == Operation.COMPACT
    check_sound(store)


def test_a_second_compaction_does_nothing(store):
    table = make(store)
    table.compact()
    version = table.version
    assert table.compact().files_before == 0
    assert table.version == version


def test_a_dry_run_says_what_would_be_done_and_changes_nothing(store):
    table = make(store)
    table.delete("id = 1")
    objects = {found.key for found in store.list_objects()}
    planned = table.compact(dry_run=True)
    assert {found.key for found in store.list_objects()} == objects
    assert (planned.is_dry_run, planned.files_before, planned.rows_dropped) == (True, 7, 1)
    assert planned.reasons == {"small file": 6, "deleted rows": 1}
    done = table.compact()
    assert (done.blocks_copied, done.blocks_encoded) == (planned.blocks_copied, planned.blocks_encoded)


def test_deleted_rows_go_and_whole_blocks_beside_them_stay_as_they_are(store):
    table = make(store, [1000])
    table.delete("id between 300 and 420")
    table.delete("id = 777")
    before = seen(table)
    done = table.compact()
    assert (done.blocks_copied, done.blocks_encoded, done.rows_dropped) == (7, 2, 122)
    assert all(entry.deletes is None for entry in files(table))
    assert seen(table) == before
    check_sound(store)


def test_a_table_without_floats_joins_blocks_that_are_encoded_again_with_whole_ones(store):
    # Its files come from the encoder in one piece, which is another kind of memory than what stores give.
    table = lake_of(store).create_table(NAME, "id bigint, word string", properties={"block_rows": 100})
    table.append(pa.table({"id": range(300), "word": [f"w{one}" for one in range(300)]}))
    table.delete("id = 7")
    before = seen(table)
    done = table.compact()
    assert (done.blocks_copied, done.blocks_encoded, done.files_after) == (2, 1, 1)
    assert seen(table) == before
    check_sound(store)


def test_a_file_without_rows_just_goes(store):
    table = make(store, [100, 100])
    head = table.read_head()
    transaction = table.writable().begin(head, Operation.DELETE)
    transaction.delete_rows(files(table)[0].location, range(100))
    from underlay.table.commit.commit import commit

    commit(transaction)
    done = table.compact()
    assert len(files(table)) == 1
    assert (done.rows_dropped, table.count()) == (100, 100)


def test_copied_files_are_read_by_pyarrow_and_duckdb_and_their_filters_work(tmp_path):
    lake = connect(tmp_path / "lake", registry="none")
    table = lake.create_table(NAME, COLUMNS, key=["id"], properties={"block_rows": 100, "bloom": "id,word"})
    for number in range(6):
        table.append(rows(1000 * number, 100))
    before = table.to_arrow()
    done = table.compact()
    assert (done.blocks_copied, done.blocks_encoded, done.files_after) == (6, 0, 1)
    (entry,) = files(table)
    path = tmp_path / "lake" / table.snapshot().keys.folder / entry.location
    assert repr(pq.read_table(path).to_pylist()) == repr(before.to_pylist())
    assert pq.ParquetFile(path).metadata.num_row_groups == 6
    found = duckdb.sql(f"select count(*), sum(id) from read_parquet('{path}') where word is not null").fetchone()
    wanted = before.filter(pa.compute.is_valid(before["word"]))
    assert found == (wanted.num_rows, pa.compute.sum(wanted["id"]).as_py())
    assert duckdb.sql(f"select id from read_parquet('{path}') where word = 'w2003'").fetchall() == [(2003,)]
    plan = table.plan(where="word = 'w2003'")
    assert "bloom" in str(plan.explain())
    assert table.scan(["id"], where="word = 'w2003'").to_arrow()["id"].to_pylist() == [2003]
    check_sound(open_store(str(tmp_path / "lake")))


def test_partitions_stay_apart(store):
    table = make(store, (60, 60, 60, 60), partition_by=["bucket(2, id)"])
    before = seen(table)
    done = table.compact()
    assert (done.files_before, done.files_after) == (8, 2)
    assert {entry.partition for entry in files(table)} == {
        entry.partition for entry in table.at(version=4).snapshot().files()
    }
    assert seen(table) == before
    check_sound(store)


@pytest.mark.parametrize("count", [2, 3])
def test_files_of_before_another_partitioning_get_the_new_one(store, count):
    table = make(store, (60,) * count)
    with table.evolve() as change:
        change.set_partition_by(["bucket(2, id)"])
    table.append(rows(9000, 60))
    before = seen(table)
    for _ in range(2):
        table.compact()
    assert table.compact().files_before == 0
    assert {entry.spec for entry in files(table)} == {table.definition.spec}
    assert seen(table) == before
    check_sound(store)


def test_old_files_keep_the_meaning_of_their_columns(store):
    table = make(store, (100, 100, 30, 20), key=[])
    with table.evolve() as change:
        change.rename_column("word", "label")
        change.drop_column("numbers")
        change.add_column("word", "bigint", default=7)
    for number in range(2):
        new = rows(10_000 + 1000 * number, 100).select(["id", "fare"])
        table.append(new.append_column("label", pa.array(["new"] * 100)))
    before = seen(table)
    done = table.compact()
    assert done.blocks_copied == 4
    assert done.files_after < done.files_before
    assert seen(table) == before
    assert table.at(version=4).to_arrow().schema.names == ["id", "word", "fare", "numbers"]
    check_sound(store)


def test_files_of_a_narrower_type_are_copied(store):
    lake = lake_of(store)
    table = lake.create_table(NAME, "id int, price decimal(5, 2)", properties={"block_rows": 10})
    for number in range(4):
        table.append(pa.table({"id": pa.array(range(number * 10, number * 10 + 10), pa.int32())}))
    with table.evolve() as change:
        change.widen_column("id", "bigint")
    for number in range(3):
        table.append(pa.table({"id": pa.array(range(2**40 + 10 * number, 2**40 + 10 + 10 * number))}))
    before = seen(table)
    done = table.compact()
    assert (done.blocks_copied, done.files_after) == (7, 2)
    assert seen(table) == before
    assert table.count("id between 5 and 14") == 10
    assert table.count("id > 100") == 30
    check_sound(store)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("int", "double"),
        ("float", "double"),
        ("decimal(9, 2)", "decimal(12, 4)"),
        ("decimal(9, 2)", "decimal(30, 4)"),
        ("date", "timestamp"),
        (pa.timestamp("ms"), "timestamp"),
    ],
)
def test_bounds_of_a_narrower_type_are_of_the_wider_one_in_files_that_are_copied(store, narrow, wide):
    schema = (
        "n int" if narrow == "int" else pa.schema([("n", narrow)]) if isinstance(narrow, pa.DataType) else f"n {narrow}"
    )
    table = lake_of(store).create_table(
        NAME, schema, properties={"block_rows": 10, "bloom": "" if narrow == "float" else "n"}
    )
    stored = table.schema.field("n").type
    for begin in (0, 100, 200):
        numbers = pa.array(range(begin, begin + 10), pa.int32() if stored == pa.date32() else pa.int64())
        table.append(pa.table({"n": numbers.cast(stored) if pa.types.is_temporal(stored) else numbers}))
    with table.evolve() as change:
        change.widen_column("n", wide)
    values = sorted(table.to_arrow()["n"].to_pylist())
    done = table.compact()
    assert (done.blocks_copied, done.files_after) == (3, 1)
    condition = f"n = cast('{values[15]}' as {wide})"
    assert table.to_arrow()["n"].to_pylist().count(values[15]) == table.count(condition) == 1
    check_sound(store)


def test_only_files_that_may_match_are_compacted(store):
    table = make(store, (20,) * 6)
    done = table.compact("id < 3000")
    assert (done.files_before, done.files_after) == (3, 1)
    assert len(files(table)) == 4


def test_registered_files_are_left(store, tmp_path):
    table = make(store, (20, 20))
    for number in range(3):
        pq.write_table(rows(5000 + number * 100, 10), tmp_path / f"{number}.parquet")
    table.register(tmp_path)
    assert table.compact().files_before == 2
    assert len(files(table)) == 4


def test_changes_and_streams_see_nothing_of_it(store):
    table = make(store)
    table.delete("id = 3")
    version = table.version
    table.compact()
    assert table.changes(version).to_arrow().num_rows == 0


@pytest.fixture
def wide(tmp_path: Path) -> Table:
    """A table of which runs are small: a sort has to spill and merge."""
    lake = connect(tmp_path / "lake", registry="none")
    table = lake.create_table(
        NAME, COLUMNS, sort_by=["word desc nulls last", "id"], properties={"block_rows": 500, "file_bytes": 20_000}
    )
    random = np.random.default_rng(5)
    for number in range(5):
        table.append(rows(number * 1000, 1000).take(pa.array(random.permutation(1000))))
    return table


def test_the_whole_table_is_sorted(wide, monkeypatch):
    monkeypatch.setattr("underlay.change.files.rows.RUN_BYTES", 30_000)
    monkeypatch.setattr("underlay.maintain.compact.external_sort._MERGE_BYTES", 60_000)
    monkeypatch.setattr("underlay.maintain.compact.external_sort._LEAST_ROWS", 10)
    before = seen(wide)
    done = wide.compact(order="sort")
    assert done.files_before == 5
    assert seen(wide) == before
    found = [(row["word"], row["id"]) for row in wide.to_arrow().to_pylist()]
    without = sorted(one for one in found if one[0] is None)
    assert found == [*sorted((one for one in found if one[0] is not None), reverse=True), *without]
    assert done.files_after > 1


def test_rows_near_in_both_columns_are_near_in_files(tmp_path):
    lake = connect(tmp_path / "lake", registry="none")
    table = lake.create_table(NAME, "a int, b string", properties={"block_rows": 64})
    random = np.random.default_rng(1)
    a = random.permutation(64 * 64)
    table.append(pa.table({"a": pa.array(a % 64, pa.int32()), "b": [f"{one // 64:02}" for one in a.tolist()]}))
    before = seen(table)
    table.compact(order="zorder(a, b)")
    assert seen(table) == before
    for where in ("a = 5", "b = '40'"):
        assert table.plan(where=where).kept.blocks <= 16, "of 64 blocks"


@pytest.mark.parametrize(
    ("order", "error"),
    [
        ("sort", InvalidRequest),
        ("zorder(id)", InvalidRequest),
        ("zorder(id, id)", InvalidRequest),
        ("zorder(id, nothing)", UnknownColumn),
        ("zorder(id, numbers)", (InvalidRequest, UnknownColumn)),
        ("hilbert(id, word)", InvalidRequest),
    ],
)
def test_an_order_that_there_is_not_is_refused(store, order, error):
    table = make(store, (20,))
    with pytest.raises(error):
        table.compact(order=order)
