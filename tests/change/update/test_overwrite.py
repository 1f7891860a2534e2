from __future__ import annotations

import pytest

from tests.change.interrupting import interrupted, table_of
from tests.end_to_end.lakes import NAME, SCHEMA, data_keys, ids, memory, named_keys, quick, rows
from tests.table.checker import Checker
from underlay.errors import CommitConflict, SchemaMismatch
from underlay.store import Store


@pytest.fixture
def store() -> Store:
    store = memory()
    quick(store).create_table(NAME, SCHEMA, key=["id"]).append(rows([1, 2, 3]))
    return store


def test_an_overwrite_replaces_every_row_in_one_version(store: Store):
    table_of(store).append(rows([4]))
    done = table_of(store).overwrite(rows([7, 8]))
    table = table_of(store)
    assert (done.version, done.rows_deleted, done.rows_inserted) == (3, 4, 2)
    assert ids(table) == [7, 8]
    assert len(named_keys(table)) == 1
    Checker(store).check()


def test_older_versions_keep_their_rows(store: Store):
    table_of(store).overwrite(rows([7]))
    assert ids(table_of(store).at(version=1)) == [1, 2, 3]


def test_an_overwrite_with_no_rows_empties_the_table(store: Store):
    done = table_of(store).overwrite(rows([]))
    assert (done.version, done.rows_inserted, done.rows_deleted, done.is_repeat) == (2, 0, 3, False)
    assert ids(table_of(store)) == []


def test_an_overwrite_of_nothing_by_nothing_makes_no_version(store: Store):
    table_of(store).overwrite(rows([]))
    assert table_of(store).overwrite(rows([])).version == 2
    assert table_of(store).version == 2


def test_an_append_meanwhile_is_not_lost_but_a_conflict(store: Store):
    table = interrupted(store, lambda: table_of(store).append(rows([4])))
    with pytest.raises(CommitConflict):
        table.overwrite(rows([7]))
    assert ids(table_of(store)) == [1, 2, 3, 4]


def test_of_two_overwrites_of_one_version_the_second_is_refused(store: Store):
    table = interrupted(store, lambda: table_of(store).overwrite(rows([8])))
    with pytest.raises(CommitConflict):
        table.overwrite(rows([7]))
    assert ids(table_of(store)) == [8]


def test_a_comment_meanwhile_is_a_conflict_too_since_all_was_read(store: Store):
    table = interrupted(store, lambda: table_of(store).comment("hello"))
    with pytest.raises(CommitConflict):
        table.overwrite(rows([7]))


def test_an_overwrite_with_a_token_is_done_once(store: Store):
    table_of(store).overwrite(rows([7]), token="a")
    table_of(store).append(rows([9]))
    assert table_of(store).overwrite(rows([7]), token="a").is_repeat
    assert ids(table_of(store)) == [7, 9]


def test_rows_that_do_not_fit_change_nothing(store: Store):
    with pytest.raises(SchemaMismatch):
        table_of(store).overwrite(rows([7]).rename_columns(["id", "name", "other"]))
    assert ids(table_of(store)) == [1, 2, 3]
    assert data_keys(store) == named_keys(table_of(store))


def test_only_rows_that_match_are_replaced(store: Store):
    done = table_of(store).overwrite(rows([5, 6]), "id > 1")
    assert (done.rows_matched, done.rows_deleted, done.rows_inserted) == (2, 2, 2)
    assert ids(table_of(store)) == [1, 5, 6]
    Checker(store).check()


def test_new_rows_may_be_any(store: Store):
    table_of(store).overwrite(rows([9]), "id = $id", params={"id": 1})
    assert ids(table_of(store)) == [2, 3, 9]


def test_two_overwrites_of_different_rows_both_land(store: Store):
    table = interrupted(store, lambda: table_of(store).overwrite(rows([10]), "id = 1"))
    table.overwrite(rows([30]), "id = 3")
    assert ids(table_of(store)) == [2, 10, 30]


def test_an_append_of_a_row_that_is_to_be_replaced_is_a_conflict(store: Store):
    table = interrupted(store, lambda: table_of(store).append(rows([3])))
    with pytest.raises(CommitConflict, match="new rows may be among those it reads"):
        table.overwrite(rows([30]), "id = 3")
    assert ids(table_of(store)) == [1, 2, 3, 3]


def test_a_reader_is_read_once(store: Store):
    reader = rows(range(10, 15)).to_reader(max_chunksize=2)
    assert table_of(store).overwrite(reader, "id = 2").rows_inserted == 5
    assert ids(table_of(store)) == [1, 3, *range(10, 15)]
