from __future__ import annotations

import math
import uuid
from datetime import date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

import underlay
from tests.change.interrupting import interrupted, table_of
from tests.end_to_end.lakes import NAME, SCHEMA, data_keys, ids, memory, named_keys, quick, rows
from tests.table.checker import Checker
from underlay.errors import CommitConflict, InvalidRequest, SchemaMismatch, UnknownColumn
from underlay.store import Store


def changed(numbers, name: str = "new") -> pa.Table:
    found = list(numbers)
    return pa.table({"id": pa.array(found, pa.int64()), "name": [name] * len(found), "value": [0.5] * len(found)})


def names(table: underlay.Table) -> dict[int, str]:
    found = table.scan(["id", "name"]).to_arrow()
    pairs = dict(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True))
    assert len(pairs) == found.num_rows, "a key occurs twice"
    return pairs


def expected(numbers, name: str = "new", base=range(600)) -> dict[int, str]:
    return {n: f"name {n}" for n in base} | dict.fromkeys(numbers, name)


@pytest.mark.parametrize(
    "numbers",
    [[5], [5, 6, 7], [5, 150, 599, 600, 10_000], range(0, 600, 6), range(590, 650), [-1], range(0, 100_000, 97)],
)
def test_rows_with_the_key_are_replaced_and_others_added(store: Store, numbers):
    done = table_of(store).upsert(changed(numbers))
    known = [n for n in numbers if 0 <= n < 600]
    assert names(table_of(store)) == expected(numbers)
    assert (done.rows_matched, done.rows_updated) == (len(known), len(known))
    assert (done.rows_inserted, done.rows_deleted) == (len(numbers) - len(known), 0)
    newest = next(table_of(store).history())
    assert (newest.version, newest.operation) == (done.version, "upsert")
    assert newest.counts.get("rows_updated", 0) == len(known)
    assert newest.row_count == 600 + done.rows_inserted
    assert names(table_of(store).at(version=2)) == expected([])
    Checker(store).check()


def test_only_blocks_with_a_key_in_their_range_are_read(store: Store):
    done = table_of(store).upsert(changed([105, 110, 550, *range(10_000, 10_100)]))
    assert (done.blocks_read, done.blocks_total, done.blocks_rewritten) == (2, 6, 0)
    done = table_of(store).upsert(changed([*range(-200, -100), *range(20_000, 20_100)]))
    assert (done.blocks_read, done.bytes_read) == (0, 0)


def test_bloom_filters_drop_blocks_when_keys_are_few():
    table = quick(memory()).create_table(NAME, "id string, name string", key=["id"], properties={"block_rows": 100})
    every = [uuid.UUID(int=hash((n, "x")) % 2**128).hex for n in range(1000)]
    table.append(pa.table({"id": every, "name": every}))
    done = table.upsert(pa.table({"id": [every[150], every[777]], "name": ["a", "b"]}))
    assert (done.rows_updated, done.blocks_total) == (2, 10)
    assert 2 <= done.blocks_read <= 4


def test_a_block_of_which_more_than_half_changes_is_rewritten(store: Store):
    done = table_of(store).upsert(changed(range(30, 100)))
    assert (done.blocks_rewritten, done.rows_updated) == (1, 70)
    assert names(table_of(store)) == expected(range(30, 100))
    assert next(table_of(store).history()).counts["rows_rewritten"] == 30
    Checker(store).check()


def test_a_file_of_which_all_rows_are_replaced_is_removed(store: Store):
    table_of(store).upsert(changed(range(400, 600)))
    assert len(named_keys(table_of(store))) == 2
    assert len(data_keys(store)) == 3


def test_no_rows_make_no_version(store: Store):
    assert table_of(store).upsert(changed([])).version == 2
    assert table_of(store).delete(rows=changed([])).version == 2


def test_columns_that_the_rows_lack_stay_in_rows_that_are_replaced(store: Store):
    table_of(store).upsert(pa.table({"name": ["a", "b"], "id": pa.array([3, 1000], pa.int32())}))
    found = table_of(store).scan(where="id in (3, 1000)").to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": 3, "name": "a", "value": 1.5}, {"id": 1000, "name": "b", "value": None}]


def test_required_columns_that_the_rows_lack_stay_but_a_new_row_must_have_them():
    table = quick(memory()).create_table(NAME, "id bigint, name string not null, v int", key=["id"])
    table.append(pa.table({"id": [1, 2], "name": ["a", "b"], "v": pa.array([1, 2], pa.int32())}))
    table.upsert(pa.table({"id": [2], "v": pa.array([7], pa.int32())}))
    assert table.scan(where="id = 2").to_arrow().to_pylist() == [{"id": 2, "name": "b", "v": 7}]
    with pytest.raises(SchemaMismatch, match="a required column holds null"):
        table.upsert(pa.table({"id": [2, 3], "v": pa.array([8, 8], pa.int32())}))
    assert table.version == 2


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (changed([7, 5, 7, 8, 5]), InvalidRequest, "id = 7 in rows 0 and 2; id = 5 in rows 1 and 4"),
        (pa.table({"id": pa.array([1, None], pa.int64())}), SchemaMismatch, "null"),
        (pa.table({"name": ["x"]}), SchemaMismatch, "lack the key's column id"),
        (pa.table({"id": [1], "other": [1]}), SchemaMismatch, "no column other"),
        (pa.table({"id": ["1"]}), SchemaMismatch, "another type"),
        (pa.table({"id": [1.5]}), SchemaMismatch, "does not fit"),
        (5, InvalidRequest, "not rows"),
    ],
)
def test_rows_that_cannot_be_upserted_change_nothing(store: Store, data, error, message: str):
    before = {found.key for found in store.list_objects()}
    with pytest.raises(error, match=message):
        table_of(store).upsert(data)
    assert {found.key for found in store.list_objects()} == before


def test_null_keys_are_refused_by_an_upsert_and_match_nothing_in_a_delete():
    table = quick(memory()).create_table(NAME, "a int, b int", key=["a", "b"])
    table.append(pa.table({"a": pa.array([1, None, 1], pa.int32()), "b": pa.array([None, None, 2], pa.int32())}))
    with pytest.raises(InvalidRequest, match=r"the key is null in row 1"):
        table.upsert(pa.table({"a": pa.array([1, 1], pa.int32()), "b": pa.array([5, None], pa.int32())}))
    keys = pa.table({"a": pa.array([1, None, 1], pa.int32()), "b": pa.array([None, None, 2], pa.int32())})
    assert table.delete(rows=keys).rows_deleted == 1
    assert table.upsert(pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([1], pa.int32())})).rows_inserted == 1
    assert len(table) == 3


def test_a_table_without_a_key_needs_one_to_be_named():
    table = quick(memory()).create_table(NAME, SCHEMA)
    table.append(rows(range(5)))
    with pytest.raises(InvalidRequest, match="has no key"):
        table.upsert(changed([1]))
    with pytest.raises(InvalidRequest, match="has no key"):
        table.delete(rows=changed([1]))
    with pytest.raises(UnknownColumn):
        table.upsert(changed([1]), key=["idd"])
    for key in (5, [1], [], ()):
        with pytest.raises(InvalidRequest, match="a key is a column or a list of columns"):
            table.upsert(changed([1]), key=key)
    assert table.upsert(changed([1]), key="id").rows_updated == 1
    assert table.delete(rows=pa.table({"name": ["new", "name 2"]}), key=["name"]).rows_deleted == 2
    assert ids(table) == [0, 3, 4]


def test_all_rows_of_the_table_with_the_key_are_replaced_by_one(store: Store):
    table_of(store).append(rows([5, 5]))
    done = table_of(store).upsert(changed([5]))
    assert (done.rows_matched, done.rows_updated, done.rows_deleted, done.rows_inserted) == (3, 1, 2, 0)
    assert names(table_of(store)) == expected([5])


NAN = math.nan
KEYS = {
    "boolean": [True, False],
    "tinyint": [-128, 0, 127],
    "integer": [-(2**31), 0, 7, 2**31 - 1],
    "uint64": [0, 1, 2**63, 2**64 - 1],
    "float": [NAN, -math.inf, -1.5, 0.0, 3.25, math.inf],
    "double": [NAN, -math.inf, 0.1, 0.0, 5e-324, math.inf],
    "float16": [NAN, -1.5, 0.0, 2.0],
    "decimal(9,2)": [Decimal("-1.50"), Decimal("0.00"), Decimal("9.99")],
    "decimal(38,3)": [Decimal("-1e30"), Decimal("0.001"), Decimal("1e30")],
    "string": ["", "a", "a\0", "ä", "aa", "A", "\U0010ffff"],
    "binary": [b"", b"\0", b"\0\0", b"\xff"],
    "uuid": [uuid.UUID(int=0), uuid.UUID(int=2**127), uuid.UUID(int=2**128 - 1)],
    "date": [date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)],
    "time": [time(0, 0), time(23, 59, 59, 999999)],
    "timestamp": [datetime(1900, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 1), datetime(2262, 1, 1)],
    "timestamp_ns": [0, 1, 2**60],
}


@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_type_are_found(kind: str, many: bool, monkeypatch: pytest.MonkeyPatch):
    if many:
        monkeypatch.setattr("underlay.change.update.find_keys.MOST_LITERALS", 0)
    table = quick(memory()).create_table(NAME, f"k {kind}, n int", key=["k"], properties={"block_rows": 2})
    type_ = table.schema.field("k").type
    values = pa.array(KEYS[kind], pa.int64()).cast(type_) if kind == "timestamp_ns" else pa.array(KEYS[kind], type_)
    count = len(values)
    table.append(pa.table({"k": values, "n": pa.array(range(count), pa.int32())}))
    table.append(pa.table({"k": pa.nulls(2, type_), "n": pa.array([100, 101], pa.int32())}))
    for row in range(count):
        done = table.upsert(pa.table({"k": values.slice(row, 1), "n": pa.array([200 + row], pa.int32())}))
        assert (done.rows_updated, done.rows_inserted) == (1, 0)
    done = table.upsert(pa.table({"k": values, "n": pa.array(range(300, 300 + count), pa.int32())}))
    assert (done.rows_updated, done.rows_inserted) == (count, 0)
    assert sorted(table.to_arrow()["n"].to_pylist()) == [100, 101, *range(300, 300 + count)]
    assert table.delete(rows=pa.table({"k": values.slice(1)})).rows_deleted == count - 1
    assert sorted(table.to_arrow()["n"].to_pylist()) == [100, 101, 300]


@pytest.mark.parametrize("kind", ["float", "double", "float16"])
def test_nan_is_nan_and_both_zeros_are_one(kind: str):
    table = quick(memory()).create_table(NAME, f"k {kind}, n int", key=["k"])
    type_ = table.schema.field("k").type
    table.append(pa.table({"k": pa.array([NAN, -0.0, 1.0]).cast(type_), "n": pa.array([0, 1, 2], pa.int32())}))
    table.upsert(pa.table({"k": pa.array([-NAN, 0.0]).cast(type_), "n": pa.array([10, 11], pa.int32())}))
    assert sorted(table.to_arrow()["n"].to_pylist()) == [2, 10, 11]
    for twice in ([0.0, -0.0], [NAN, 1.0, NAN]):
        with pytest.raises(InvalidRequest, match="several rows have the same key"):
            table.upsert(pa.table({"k": pa.array(twice).cast(type_)}))


def test_keys_of_several_columns_are_equal_in_all_of_them():
    schema = "a string, b bigint, s struct<x: int, y: string>, n int"
    table = quick(memory()).create_table(NAME, schema, key=["a", "b", "s.x"], properties={"block_rows": 7})

    def some(triples, n: int) -> pa.Table:
        found = list(triples)
        structs = [None if x is None else {"x": x, "y": "?"} for _, _, x in found]
        return pa.table(
            {
                "a": [a for a, _, _ in found],
                "b": pa.array([b for _, b, _ in found], pa.int64()),
                "s": pa.array(structs, table.schema.field("s").type),
                "n": pa.array([n] * len(found), pa.int32()),
            }
        )

    every = [(a, b, x) for a in "xyz" for b in range(5) for x in range(4)]
    table.append(some(every, 0))
    table.append(some([("x", 1, None)], 5))
    chosen = [("x", 1, 1), ("x", 2, 3), ("z", 4, 0), ("z", 5, 0), ("w", 1, 1), ("y", 1, 3)]
    done = table.upsert(some(chosen, 1))
    assert (done.rows_updated, done.rows_inserted) == (4, 2)
    found = {(row["a"], row["b"], (row["s"] or {}).get("x")): row["n"] for row in table.to_arrow().to_pylist()}
    assert found == dict.fromkeys(every, 0) | {("x", 1, None): 5} | dict.fromkeys(chosen, 1)
    assert len(table) == len(found)


def test_a_row_may_move_to_another_partition():
    table = quick(memory()).create_table(NAME, SCHEMA, key=["id"], partition_by=["name"], sort_by=["value"])
    table.append(pa.table({"id": [1, 2, 3], "name": ["a", "a", "b"], "value": [1.0, 2.0, 3.0]}))
    table.upsert(pa.table({"id": [2], "name": ["b"], "value": [2.0]}))
    assert sorted(table.scan(where="name = 'b'").to_arrow()["id"].to_pylist()) == [2, 3]
    assert table.scan(where="name = 'a'").to_arrow()["id"].to_pylist() == [1]


def test_a_reader_is_enough_also_when_the_work_is_done_twice(store: Store):
    reader = changed([1, 2, 1000]).to_reader(max_chunksize=1)
    table = interrupted(store, lambda: table_of(store).upsert(changed([2], "other")))
    assert table.upsert(reader).rows_updated == 2
    assert names(table_of(store)) == expected([1, 2, 1000])


def test_rows_of_the_table_itself_are_a_source(store: Store):
    table = table_of(store)
    done = table.upsert(table.scan(where="id < 10"))
    assert done.rows_updated == 10
    assert ids(table_of(store)) == [*range(600)]


def test_rows_of_the_table_itself_are_those_of_the_version_that_is_changed(store: Store):
    """Work that is done again reads them again: what another commit changed is not undone."""
    table = interrupted(store, lambda: table_of(store).upsert(changed([3, 20], "other")))
    assert table.upsert(table.scan(where="id < 10")).rows_updated == 10
    assert names(table_of(store)) == expected([3, 20], "other")
    table = interrupted(store, lambda: table_of(store).upsert(changed([30], "other")))
    assert table.delete(rows=table.scan(where="name = 'other'")).rows_deleted == 3
    assert names(table_of(store)) == {n: f"name {n}" for n in range(600) if n not in (3, 20, 30)}


def test_an_upsert_with_a_token_is_done_once(store: Store):
    first = table_of(store).upsert(changed([1]), token="a")
    table_of(store).upsert(changed([1], "newer"))
    again = table_of(store).upsert(changed([1]), token="a")
    assert (again.version, again.is_repeat, again.rows_updated) == (first.version, True, 0)
    assert names(table_of(store)) == expected([1], "newer")


def test_upserts_of_different_keys_both_land(store: Store):
    interrupted(store, lambda: table_of(store).upsert(changed([2, 1000], "other"))).upsert(changed([1, 3, 999]))
    assert names(table_of(store)) == expected([1, 3, 999]) | {2: "other", 1000: "other"}
    Checker(store).check()


@pytest.mark.parametrize("key", [2, 1000], ids=["known", "new"])
def test_of_two_upserts_of_the_same_key_one_is_done_again(store: Store, key: int):
    table = interrupted(store, lambda: table_of(store).upsert(changed([key], "other")))
    assert table.upsert(changed([1, key])).rows_updated == 2
    assert names(table_of(store)) == expected([1, key])
    Checker(store).check()


def test_a_row_that_was_deleted_meanwhile_is_new(store: Store):
    done = interrupted(store, lambda: table_of(store).delete("id = 2")).upsert(changed([1, 2]))
    assert (done.rows_updated, done.rows_inserted) == (1, 1)
    assert names(table_of(store)) == expected([1, 2])


def test_an_append_of_a_key_meanwhile_is_replaced(store: Store):
    interrupted(store, lambda: table_of(store).append(rows([1000, 2]))).upsert(changed([2, 1000]))
    assert names(table_of(store)) == expected([2, 1000])


def test_a_rollback_meanwhile_is_followed(store: Store):
    interrupted(store, lambda: table_of(store).rollback(1)).upsert(changed([2, 500]))
    assert names(table_of(store)) == expected([2, 500], base=range(400))


def test_a_delete_by_key_of_rows_that_another_replaced_is_done_again(store: Store):
    table = interrupted(store, lambda: table_of(store).upsert(changed([2, 3])))
    assert table.delete(rows=changed([2, 4])).rows_deleted == 2
    assert names(table_of(store)) == {n: name for n, name in expected([3]).items() if n not in (2, 4)}


def test_a_delete_takes_a_condition_or_rows(store: Store):
    with pytest.raises(InvalidRequest, match="not both"):
        table_of(store).delete("id = 1", rows=changed([1]))
    with pytest.raises(InvalidRequest, match="was given without rows"):
        table_of(store).delete(key=["id"])
    dry = table_of(store).delete(rows=changed([1, 1, 700]), dry_run=True)
    assert (dry.version, dry.rows_deleted, len(table_of(store))) == (2, 1, 600)


def test_the_holder_of_a_job_that_was_taken_over_upserts_nothing(store: Store):
    job = table_of(store).job("nightly")
    with table_of(store).job("nightly", take_over=True), pytest.raises(CommitConflict):
        job.table.upsert(changed([1]))
    assert ids(table_of(store)) == [*range(600)]
