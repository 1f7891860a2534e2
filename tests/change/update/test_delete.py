from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.change.interrupting import InterruptingStore, interrupted, table_of
from tests.end_to_end.lakes import data_keys, ids, named_keys, rows
from tests.table.checker import Checker
from underlay import col
from underlay.errors import BadPredicate, CommitConflict, InvalidRequest, UnknownColumn
from underlay.store import Store
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.wrapper import StoreMethod


@pytest.mark.parametrize(
    ("where", "gone"),
    [
        ("id between 5 and 9", range(5, 10)),
        (col("id").is_in([1, 150, 599]), [1, 150, 599]),
        (pc.field("id") < 3, range(3)),
        ("name = 'name 7'", [7]),
        ("id % 100 = 3", range(3, 600, 100)),
        (pc.bit_wise_and(pc.field("id"), 127) == 1, [1, 129, 257, 385, 513]),
        ("id < 0", []),
    ],
    ids=str,
)
def test_rows_for_which_the_condition_is_true_are_deleted(store: Store, where, gone):
    done = table_of(store).delete(where)
    assert ids(table_of(store)) == sorted(set(range(600)) - set(gone))
    assert (done.rows_matched, done.rows_deleted) == (len(gone), len(gone))
    assert (done.rows_inserted, done.rows_updated, done.is_repeat) == (0, 0, False)
    assert done.version == (3 if len(gone) else 2) == table_of(store).version
    Checker(store).check()


def test_few_rows_are_bits_and_only_the_blocks_that_may_match_are_read(store: Store):
    done = table_of(store).delete("id between 5 and 9")
    assert (done.blocks_read, done.blocks_rewritten, done.blocks_total) == (1, 0, 6)
    assert done.bytes_written == 0
    assert 0 < done.bytes_read < 1000
    assert len(data_keys(store)) == 2


def test_blocks_that_match_in_full_are_not_read(store: Store):
    done = table_of(store).delete("id >= 100 and id < 300")
    assert (done.blocks_read, done.bytes_read, done.rows_deleted) == (0, 0, 200)
    assert ids(table_of(store)) == [*range(100), *range(300, 600)]


def test_a_file_without_rows_is_removed(store: Store):
    table_of(store).delete("id >= 450")
    table_of(store).delete("id >= 400")
    assert len(named_keys(table_of(store))) == 1
    assert ids(table_of(store)) == [*range(400)]
    Checker(store).check()


def test_a_block_of_which_more_than_half_goes_is_rewritten(store: Store):
    done = table_of(store).delete("id between 110 and 170")
    assert (done.rows_deleted, done.blocks_rewritten) == (61, 1)
    assert done.bytes_written > 0
    table = table_of(store)
    assert ids(table) == [*range(110), *range(171, 600)]
    new = named_keys(table) - named_keys(table.at(version=2))
    assert len(new) == 1
    entry = next(file for file in table.snapshot().files() if table.snapshot().keys.file(file.location) in new)
    assert sum(memoryview(entry.block_rows).cast("q")) == 39
    assert next(table.history()).counts["rows_rewritten"] == 39
    Checker(store).check()


def test_half_of_a_block_is_bits(store: Store):
    assert table_of(store).delete("id < 50").blocks_rewritten == 0


def test_rows_that_were_deleted_before_do_not_come_back_with_a_rewrite(store: Store):
    table_of(store).delete("id % 10 = 3 and id < 200")
    done = table_of(store).delete("id < 60 and id <> 41")
    assert (done.rows_deleted, done.blocks_rewritten) == (53, 1)
    left = [n for n in range(600) if not (n % 10 == 3 and n < 200) and not (n < 60 and n != 41)]
    assert ids(table_of(store)) == left
    Checker(store).check()


def test_what_is_null_does_not_match(store: Store):
    table_of(store).append(pa.table({"id": pa.array([1000], pa.int64())}))
    assert table_of(store).delete("value < 1e9 or name = 'x'").rows_deleted == 600
    assert table_of(store).scan().to_arrow().to_pylist() == [{"id": 1000, "name": None, "value": None}]


@pytest.mark.parametrize("verb", ["delete", "truncate"])
def test_all_rows_go_without_a_read(store: Store, verb: str):
    done = getattr(table_of(store), verb)()
    assert (done.version, done.rows_matched, done.rows_deleted, done.bytes_read) == (3, 600, 600, 0)
    assert ids(table_of(store)) == []
    newest = next(table_of(store).history())
    assert (newest.operation, newest.counts["rows_deleted"], newest.counts["files_removed"]) == (verb, 600, 2)
    assert ids(table_of(store).at(version=2)) == [*range(600)]
    assert getattr(table_of(store), verb)().version == 3
    Checker(store).check()


def test_a_dry_run_says_the_same_and_changes_nothing(store: Store):
    before = {found.key for found in store.list_objects()}
    dry = table_of(store).delete("id < 60", dry_run=True)
    assert {found.key for found in store.list_objects()} == before
    assert (dry.version, dry.rows_deleted, dry.blocks_rewritten) == (2, 60, 1)
    done = table_of(store).delete("id < 60")
    assert (done.version, dry.rows_matched, dry.bytes_read, dry.blocks_read) == (
        3,
        done.rows_matched,
        done.bytes_read,
        done.blocks_read,
    )
    assert dry.bytes_written == done.bytes_written


def test_a_delete_with_a_token_is_done_once(store: Store):
    first = table_of(store).delete("id < 5", token="a")
    table_of(store).append(rows([1]))
    again = table_of(store).delete("id < 5", token="a")
    assert (again.version, again.is_repeat, again.rows_deleted) == (first.version, True, 0)
    assert ids(table_of(store)) == [1, *range(5, 600)]


def test_a_delete_whose_token_a_winner_had_is_a_repeat(store: Store):
    table = interrupted(store, lambda: table_of(store).delete("id < 5", token="a"))
    again = table.delete("id < 5", token="a")
    assert (again.version, again.is_repeat) == (3, True)
    assert table_of(store).version == 3


@pytest.mark.parametrize(
    ("where", "error"),
    [("no_such = 1", UnknownColumn), ("id = 'x'", BadPredicate), ("id >", BadPredicate), (5, InvalidRequest)],
)
def test_a_bad_condition_changes_nothing(store: Store, where, error):
    with pytest.raises(error):
        table_of(store).delete(where)
    assert table_of(store).version == 2


def test_a_version_that_is_pinned_cannot_change(store: Store):
    with pytest.raises(InvalidRequest, match="never changes"):
        table_of(store).at(version=1).delete()


def test_rows_that_were_added_meanwhile_are_matched_too(store: Store):
    done = interrupted(store, lambda: table_of(store).append(rows([3, 1000]))).delete("id = 3 or id = 5")
    assert (done.version, done.rows_deleted) == (4, 3)
    assert ids(table_of(store)) == [0, 1, 2, 4, *range(6, 600), 1000]


def test_an_append_of_other_rows_is_no_reason_to_read_again(store: Store):
    counting = CountingStore(
        InterruptingStore(store, StoreMethod.CREATE, ".root", lambda: table_of(store).append(rows([1000])))
    )
    assert table_of(counting).delete("id = 3").version == 4
    assert len([served for served in counting.log if served.request.keys[0].endswith(".parquet")]) == 1


def test_rows_that_both_delete_are_counted_once(store: Store):
    done = interrupted(store, lambda: table_of(store).delete("id < 10")).delete("id < 15")
    assert (done.version, done.rows_deleted) == (4, 5)
    assert ids(table_of(store)) == [*range(15, 600)]
    assert next(table_of(store).history()).counts["rows_deleted"] == 5


def test_a_row_that_was_replaced_meanwhile_is_looked_at_again(store: Store):
    table = interrupted(store, lambda: table_of(store).overwrite(rows([2000]), "id = 3"))
    assert table.delete("id < 5").rows_deleted == 4
    assert ids(table_of(store)) == [*range(5, 600), 2000]


def test_when_others_deleted_it_all_there_is_no_new_version(store: Store):
    table = interrupted(store, lambda: table_of(store).delete("id < 90"))
    done = table.delete("id < 90")
    assert (done.version, done.rows_deleted) == (3, 0)
    assert table_of(store).version == 3


def test_all_rows_means_those_that_came_meanwhile_too(store: Store):
    assert interrupted(store, lambda: table_of(store).append(rows([1000]))).truncate().rows_deleted == 601
    assert ids(table_of(store)) == []


def test_the_holder_of_a_job_that_was_taken_over_deletes_nothing(store: Store):
    job = table_of(store).job("nightly")
    with table_of(store).job("nightly", take_over=True), pytest.raises(CommitConflict):
        job.table.delete("id = 1")
    assert ids(table_of(store)) == [*range(600)]
