from __future__ import annotations

import pytest

import underlay
from tests.change.interrupting import table_of
from tests.end_to_end.lakes import NAME, SCHEMA, ids, memory, quick, rows
from tests.table.checker import Checker
from underlay.change.files import add_files
from underlay.change.files.rows import read_rows
from underlay.change.rows.staged import Staged, commit_staged, discard, stage, staging_for
from underlay.errors import CommitConflict, RevisionClosed
from underlay.store import Store
from underlay.table.catalog.lifecycle import activate, prepare_successor


@pytest.fixture
def store() -> Store:
    store = memory()
    quick(store).create_table(NAME, SCHEMA, key=["id"]).append(rows([1, 2, 3]))
    return store


def staged_rows(table: underlay.Table, numbers) -> Staged:
    head = table.read_head()
    return stage(staging_for(head), head.revision.store, read_rows(rows(numbers)))


def test_files_staged_by_many_writers_are_one_version(store: Store):
    table = table_of(store)
    head = table.read_head()
    staged = [staged_rows(table, [number, number + 1]) for number in (10, 20, 30)]
    assert ids(table) == [1, 2, 3]
    done = commit_staged(table.writable(), head, staged)
    assert (done.version, done.row_count, done.file_count) == (2, 6, 3)
    assert ids(table_of(store)) == [1, 2, 3, 10, 11, 20, 21, 30, 31]


def test_many_staged_files_are_segments(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(add_files, "_FEW", 2)
    table = table_of(store)
    head = table.read_head()
    commit_staged(table.writable(), head, [staged_rows(table, [number]) for number in range(10, 14)])
    table = table_of(store)
    assert len(table.snapshot().root.segments) == 1
    assert ids(table) == [1, 2, 3, 10, 11, 12, 13]
    Checker(store).check()


def test_staged_files_are_added_after_an_append_meanwhile(store: Store):
    table = table_of(store)
    head = table.read_head()
    staged = staged_rows(table, [10])
    table_of(store).append(rows([4]))
    assert commit_staged(table.writable(), head, [staged]).version == 3
    assert ids(table_of(store)) == [1, 2, 3, 4, 10]


def test_staged_files_that_overwrite_replace_what_the_head_had(store: Store):
    table = table_of(store)
    head = table.read_head()
    commit_staged(table.writable(), head, [staged_rows(table, [10])], is_overwrite=True)
    assert ids(table_of(store)) == [10]


def test_a_staged_overwrite_conflicts_with_an_append_since_its_head(store: Store):
    table = table_of(store)
    head = table.read_head()
    staged = staged_rows(table, [10])
    table_of(store).append(rows([4]))
    with pytest.raises(CommitConflict):
        commit_staged(table.writable(), head, [staged], is_overwrite=True)
    assert ids(table_of(store)) == [1, 2, 3, 4]


def test_files_staged_again_under_the_same_token_are_not_added(store: Store):
    table = table_of(store)
    head = table.read_head()
    first = commit_staged(table.writable(), head, [staged_rows(table, [10])], token="a")
    again = commit_staged(table.writable(), head, [staged_rows(table, [10])], token="a")
    assert (again.is_repeat, again.version) == (True, first.version)
    assert ids(table_of(store)) == [1, 2, 3, 10]


def test_files_staged_for_a_closed_revision_are_refused_with_what_to_do(store: Store):
    table = table_of(store)
    head = table.read_head()
    staged = staged_rows(table, [10])
    lake = table.writable().lake
    activate(lake, NAME, head.revision, head.root, prepare_successor(lake, NAME, head.root.definition))
    with pytest.raises(RevisionClosed, match="Do the write again"):
        commit_staged(table.writable(), head, [staged])


def test_discarded_files_are_gone_with_their_sidecars(store: Store):
    before = {found.key for found in store.list_objects()}
    table = table_of(store)
    staged = staged_rows(table, [10])
    assert {found.key for found in store.list_objects()} > before
    discard(staging_for(table.read_head()), store, [staged])
    assert {found.key for found in store.list_objects()} == before
