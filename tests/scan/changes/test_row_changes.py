"""Rows inserted and deleted between versions: applied to the first they give the last, and nothing more."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import underlay as ul
from tests.gate import SEED, sized
from underlay.errors import InvalidRequest, UnknownColumn, VersionNotFound
from underlay.index.operation import Operation
from underlay.scan.changes.row_hash import row_hashes
from underlay.table.commit.commit import commit
from underlay.table.commit.transaction import Transaction

SCHEMA = pa.schema(
    [("id", pa.int64()), ("v", pa.float64()), ("t", pa.string()), ("n", pa.list_(pa.struct([("x", pa.int32())])))]
)


def rows(*ids: int, v: float = 0.5) -> pa.Table:
    made = [{"id": n, "v": v, "t": None if n % 3 == 0 else f"t{n}", "n": [{"x": n}, None]} for n in ids]
    return pa.Table.from_pylist(made, SCHEMA)


@pytest.fixture
def lake() -> ul.Lake:
    return ul.connect(f"memory://{os.urandom(6).hex()}")


@pytest.fixture
def table(lake: ul.Lake) -> ul.Table:
    found = lake.create_table("t.rows", SCHEMA, key=["id"], properties={"block_rows": 10})
    found.append(rows(*range(30)))
    return found


def told(table: ul.Table, *versions: int) -> list[tuple[str, int, int]]:
    found = table.changes(*versions).to_arrow().to_pylist()
    return sorted((row["_change"], row["_version"], row["id"]) for row in found)


def test_an_append_inserts(table: ul.Table):
    table.append(rows(100, 101))
    assert told(table, 1) == [("insert", 2, 100), ("insert", 2, 101)]
    (one, _) = table.changes(1).to_arrow().to_pylist()
    assert one["n"] == [{"x": 100}, None]
    assert one["_committed_at"] == next(table.history()).committed


def test_a_delete_deletes_rows_as_they_were(table: ul.Table):
    table.delete("id = 7")
    assert told(table, 1) == [("delete", 2, 7)]
    assert table.changes(1).to_arrow().to_pylist()[0]["t"] == "t7"


def test_an_update_is_a_delete_and_an_insert(table: ul.Table):
    table.upsert(rows(7, 500, v=2.0))
    assert told(table, 1) == [("delete", 2, 7), ("insert", 2, 7), ("insert", 2, 500)]
    by_change = {row["_change"]: row["v"] for row in table.changes(1).to_arrow().to_pylist() if row["id"] == 7}
    assert by_change == {"delete": 0.5, "insert": 2.0}


def test_rows_that_a_rewritten_block_carries_along_are_not_changes(table: ul.Table):
    done = table.upsert(rows(*range(8), v=2.0))
    assert done.blocks_rewritten == 1
    assert Counter(change for change, _, _ in told(table, 1)) == {"delete": 8, "insert": 8}


def test_equal_rows_cancel_as_multisets(table: ul.Table):
    table.append(rows(7, 7))
    table.overwrite(rows(7, 7, 7, 7, 7), where="id = 7")
    assert told(table, 2) == [("insert", 3, 7)] * 2
    table.overwrite(rows(7), where="id = 7")
    assert told(table, 3) == [("delete", 4, 7)] * 4
    table.upsert(rows(8))
    assert told(table, 4) == []


def test_a_compaction_is_invisible(table: ul.Table):
    before = table.snapshot()
    again = table.to_arrow()
    head = table.read_head()
    table.append(rows(900))
    added = table.snapshot().added_files()
    compact = Transaction(head.revision, table.read_head().root, Operation.COMPACT)
    for file in before.files():
        compact.remove_file(file.location)
    commit(compact)
    assert again.num_rows == 30
    assert added
    assert told(table, 1, 3) == [("insert", 2, 900)]


def test_a_rollback_is_what_it_takes_back(table: ul.Table):
    table.delete("id < 3")
    table.append(rows(100))
    table.rollback(version=1)
    assert told(table, 3) == [("delete", 4, 100), ("insert", 4, 0), ("insert", 4, 1), ("insert", 4, 2)]
    table.rollback(version=2)
    assert told(table, 4) == [("delete", 5, 0), ("delete", 5, 1), ("delete", 5, 2)]


def test_columns_are_those_of_the_last_version(table: ul.Table):
    table.delete("id = 1")
    with table.evolve() as change:
        change.rename_column("t", "text")
        change.drop_column("v")
        change.add_column("new", "int", default=42)
    table.delete("id = 2")
    found = table.changes(0)
    assert found.schema.names == ["id", "text", "n", "new", "_change", "_version", "_committed_at"]
    gone = [row for row in found.to_arrow().to_pylist() if row["_change"] == "delete"]
    assert [(row["id"], row["text"], row["new"], row["_version"]) for row in gone] == [
        (1, "t1", 42, 2),
        (2, "t2", 42, 4),
    ]
    old = table.changes(0, 2)
    assert old.schema.names[:4] == ["id", "v", "t", "n"]


def test_a_type_may_be_wider_in_the_end(lake: ul.Lake):
    prices = lake.create_table("t.prices", "id int, price decimal(9, 2), day date")
    days, cents = [date(1970, 1, 2), date(1970, 1, 3)], [Decimal("1.25"), Decimal("2.50")]
    prices.append(pa.table({"id": pa.array([1, 2], pa.int32()), "price": cents, "day": days}))
    prices.delete("id = 1")
    with prices.evolve() as change:
        change.widen_column("price", "decimal(30, 4)")
        change.widen_column("day", "timestamp")
    prices.update({"price": "price + 1"})
    told_of = prices.changes(0).to_arrow().to_pylist()
    found = [(row["_change"], row["_version"], str(row["price"]), row["day"]) for row in told_of]
    assert found == [
        ("insert", 1, "1.2500", datetime(1970, 1, 2)),
        ("insert", 1, "2.5000", datetime(1970, 1, 3)),
        ("delete", 2, "1.2500", datetime(1970, 1, 2)),
        ("delete", 4, "2.5000", datetime(1970, 1, 3)),
        ("insert", 4, "3.5000", datetime(1970, 1, 3)),
    ]


def test_chosen_columns_show_changes_of_others_too(table: ul.Table):
    table.upsert(rows(7, v=2.0))
    found = table.changes(1, columns=["id"])
    assert found.schema.names == ["id", "_change", "_version", "_committed_at"]
    assert [row["_change"] for row in found.to_arrow().to_pylist()] == ["delete", "insert"]
    assert found.count() == len(found) == 2
    assert table.changes(1, columns=[]).to_arrow().num_rows == 2


def test_changes_come_in_every_form(table: ul.Table):
    found = table.changes(0)
    whole = found.to_arrow()
    assert found.to_reader().read_all().equals(whole)
    assert pa.Table.from_batches(found.to_batches(), found.schema).equals(whole)
    assert pa.table(found).equals(whole)
    assert len(found.to_pandas()) == len(found.to_polars()) == found.count() == 30
    assert repr(found) == "Changes(t.rows, versions 1 to 1)"


def test_nothing_changed_between_a_version_and_itself(table: ul.Table):
    assert table.changes(1, 1).to_arrow().num_rows == 0
    assert not len(table.changes(1))
    assert table.changes(1)


@pytest.mark.parametrize(
    ("versions", "error"),
    [
        ((2,), InvalidRequest),
        ((-1,), InvalidRequest),
        ((0, 9), VersionNotFound),
        (("audit",), InvalidRequest),
        ((None,), InvalidRequest),
        ((True,), InvalidRequest),
    ],
)
def test_versions_that_are_not_there_are_refused(table: ul.Table, versions: tuple[int, ...], error: type[Exception]):
    with pytest.raises(error):
        table.changes(*versions)


def test_names_that_clash_or_are_not_there_are_refused(lake: ul.Lake, table: ul.Table):
    odd = lake.create_table("t.odd", "id int, _version int")
    with pytest.raises(InvalidRequest, match="_version"):
        odd.changes(0)
    assert odd.changes(0, columns=["id"]).count() == 0
    with pytest.raises(UnknownColumn):
        table.changes(0, columns=["nothing"])


def _values(table: pa.Table) -> Counter[str]:
    plain = table.select([name for name in table.schema.names if name not in ("_change", "_version", "_committed_at")])
    return Counter(map(str, plain.to_pylist()))


@pytest.mark.parametrize("number", sized(range(1), range(30)))
def test_changes_lead_from_each_version_to_each_other(lake: ul.Lake, number: int):
    """Whatever is done: the rows of a version, less those deleted, plus those inserted, are the rows of a later one."""
    chance = random.Random(SEED + number)
    table = lake.create_table(
        "t.rows", SCHEMA, key=["id"], partition_by=["bucket(2, id)"], properties={"block_rows": 4}
    )
    verbs: list[Callable[[], object]] = [
        lambda: table.append(rows(*chance.sample(range(1000), 5))),
        lambda: table.upsert(rows(*chance.sample(range(40), 8), v=chance.random())),
        lambda: table.upsert(rows(*chance.sample(range(40), 3))),
        lambda: table.delete(f"id % 7 = {chance.randrange(7)}"),
        lambda: table.overwrite(rows(*chance.sample(range(40), 6)), where=f"id < {chance.randrange(40)}"),
        lambda: table.update({"v": "v * 2"}, where=f"id > {chance.randrange(40)}"),
        lambda: table.rollback(version=chance.randrange(table.version + 1)),
        lambda: table.truncate() if chance.random() < 0.2 else None,
    ]
    table.append(rows(*range(20)))
    for _ in range(12):
        chance.choice(verbs)()
    states = {version: _values(table.at(version=version).to_arrow()) for version in range(table.version + 1)}
    for begin in range(table.version):
        end = chance.randrange(begin, table.version + 1)
        found = table.changes(begin, end)
        whole = found.to_arrow()
        words = np.array(whole.column("_change").to_pylist())
        gone, come = (_values(whole.filter(pa.array(words == word))) for word in ("delete", "insert"))
        after = Counter(states[begin])
        after.update(come)
        after.subtract(gone)
        assert +after == states[end]
        assert not -after
        assert found.count() == whole.num_rows
        if end == begin + 1:
            assert not gone & come


def test_hashes_tell_values_apart():
    """Of nested values too: lists by where their items lie, nulls from empty ones, slices as if they were alone."""
    values: list[object] = [None, [], [None], [{"x": 1, "y": None}], [{"x": None, "y": "1"}], [None, {"x": 1, "y": ""}]]
    values += [[{"x": 1, "y": ""}, None], [{"x": 1, "y": ""}], [{"x": 1, "y": ""}] * 2]
    nested = pa.array(values, pa.list_(pa.struct([("x", pa.int16()), ("y", pa.string())])))
    pairs = [None, [], [("a", 1)], [("a", None)], [("b", 1)], [("a", 1), ("b", 1)]]
    maps = pa.array(pairs, pa.map_(pa.string(), pa.int8()))
    for array, distinct in ((nested, 9), (maps, 6)):
        batch = pa.record_batch([array], names=["c"])
        hashes = row_hashes(batch)
        assert len({tuple(one) for one in hashes.tolist()}) == distinct
        assert np.array_equal(row_hashes(batch.slice(2)), hashes[2:])
        taken = pa.record_batch([array.take(pa.array([5, 3]))], names=["c"])
        assert np.array_equal(row_hashes(taken), hashes[[5, 3]])
    two = pa.record_batch([pa.array([1, 2]), pa.array([2, 1])], names=["a", "b"])
    assert len({tuple(one) for one in row_hashes(two).tolist()}) == 2
