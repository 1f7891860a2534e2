from __future__ import annotations

import pyarrow as pa
import pytest

from tests.ingest.worlds import ids_in, memory, new_table, opened
from underlay.change.files.rows import read_rows
from underlay.change.rows.staged import stage, staging_for
from underlay.errors import CommitUnknown, InvalidRequest, ReplayDiffers
from underlay.ingest.exactly_once.stream import REMEMBERED, StreamKey, append_epoch, commit_epoch, find_repeat
from underlay.store.testing.faulty import Fault, FaultyStore, on
from underlay.store.testing.wrapper import StoreMethod

KEY = StreamKey(query_id="a1/b 2", sink="trips")


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64()), "_source": pa.nulls(len(numbers), pa.string())})


def test_an_epoch_that_comes_again_adds_nothing_and_one_that_differs_is_refused():
    table = new_table(memory())
    for epoch, numbers in ((3, [1, 2]), (4, []), (7, [3])):  # numbers may be left out, an empty one is no version
        append_epoch(table, KEY, epoch, rows(*numbers), facts=f"offset {epoch}")
    assert table.head().root.version == 2
    restarted = opened(table.lake.store)
    for epoch, numbers in ((3, [1, 2]), (4, []), (7, [3])):
        again = append_epoch(restarted, KEY, epoch, rows(*numbers), facts=f"offset {epoch}")
        assert (again.is_repeat, again.row_count) == (True, 0)
    for epoch, numbers, facts in ((7, [3, 4], "offset 7"), (7, [3], "offset 9"), (7, [], "offset 7"), (5, [9], "")):
        with pytest.raises(ReplayDiffers, match=f"epoch {epoch}"):
            append_epoch(restarted, KEY, epoch, rows(*numbers), facts=facts)
    with pytest.raises(InvalidRequest):
        append_epoch(restarted, KEY, -1, rows(1))
    other = StreamKey(query_id=KEY.query_id, sink="others")
    assert append_epoch(restarted, other, 0, rows(10)).row_count == 1
    assert ids_in(restarted) == [1, 2, 3, 10]


def test_offsets_are_compared_where_they_are_known_of_both():
    table = new_table(memory())
    append_epoch(table, KEY, 0, rows(1), facts="offset 0")
    append_epoch(table, KEY, 1, rows(2))
    assert append_epoch(table, KEY, 0, rows(1)).is_repeat
    assert append_epoch(table, KEY, 1, rows(2), facts="offset 1").is_repeat
    with pytest.raises(ReplayDiffers, match="1 rows of offsets"):
        append_epoch(table, KEY, 0, rows(1), facts="offset 1")


def test_rows_are_counted_of_epochs_only_that_may_be_there():
    table = new_table(memory())
    counted: list[int] = []

    def count(number: int) -> int:
        counted.append(number)
        return number

    assert find_repeat(table, table.head(), KEY, 0, lambda: count(7)) is None
    append_epoch(table, KEY, 1, rows(1, 2))
    assert find_repeat(table, table.head(), KEY, 2, lambda: count(7)) is None
    repeat = find_repeat(table, table.head(), KEY, 1, lambda: count(2))
    assert repeat is not None
    assert (repeat.is_repeat, counted) == (True, [2])
    with pytest.raises(ReplayDiffers):
        find_repeat(table, table.head(), KEY, 1, lambda: count(3))


def test_epochs_that_are_too_old_to_be_remembered_are_refused():
    table = new_table(memory())
    for epoch in range(REMEMBERED + 2):
        append_epoch(table, KEY, epoch, rows(epoch))
    assert append_epoch(table, KEY, 2, rows(2)).is_repeat
    with pytest.raises(ReplayDiffers):
        append_epoch(table, KEY, 1, rows(1))
    assert ids_in(table) == list(range(REMEMBERED + 2))


def test_two_drivers_of_one_query_commit_an_epoch_once_whatever_its_fate_was():
    store = memory()
    new_table(store)
    faulty = FaultyStore(store, on(StoreMethod.CREATE, Fault.LATE, key=".root", times=100))
    zombie, driver = opened(faulty), opened(store)
    head = zombie.head()
    staged = [stage(staging_for(head), store, read_rows(rows(1, 2)))]
    with pytest.raises(CommitUnknown):
        commit_epoch(zombie, head, KEY, 0, staged)
    assert append_epoch(driver, KEY, 0, rows(1, 2)).row_count == 2
    faulty.release()  # refused: the version is taken
    assert commit_epoch(opened(store), head, KEY, 0, staged).is_repeat
    assert ids_in(driver) == [1, 2]
