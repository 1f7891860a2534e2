"""Merges whose source is read again, that lose a race, or that are refused."""

from __future__ import annotations

import pyarrow as pa
import pytest

import underlay as ul
from tests.change.interrupting import interrupted, table_of
from tests.change.update.test_merge import changes, found_rows, merge
from tests.end_to_end.lakes import data_keys, ids, rows
from tests.table.checker import Checker
from underlay.errors import BadPredicate, CommitConflict, InvalidRequest, SchemaMismatch, UnknownColumn
from underlay.store import Store


def test_a_source_that_can_be_read_once_is_merged_again_after_a_lost_race(store: Store):
    table = interrupted(store, lambda: table_of(store).append(rows([700])))
    done = merge(table, changes(1, 700).to_reader()).when_matched_update_all().when_not_matched_insert_all().execute()
    assert (done.version, done.rows_updated, done.rows_inserted) == (4, 2, 0)
    assert found_rows(table_of(store), "id = 700") == [(700, "name 700", -700.0)]


@pytest.mark.parametrize("form", ["table", "scan"])
def test_a_source_that_reads_the_table_sees_the_version_that_is_changed(store: Store, form: str):
    """Rows that come between the scan and the commit are in the source and in the table, or in neither."""
    table = interrupted(store, lambda: table_of(store).append(rows([1000])))
    source = table if form == "table" else table.scan(where="id >= 590")
    table_of(store).append(rows([2000]))
    done = merge(table, source, "t.id = s.id").when_matched_update({"name": "'seen'"}, "t.id >= 590").execute()
    assert done.rows_updated == 12
    assert table_of(store).count("name = 'seen'") == 12


def test_a_source_of_one_version_for_good_stays_at_it(store: Store):
    old = table_of(store).at(version=1)
    assert merge(table_of(store), old).when_matched_delete().execute().rows_deleted == 400
    assert ids(table_of(store)) == [*range(400, 600)]


def test_two_merges_of_one_row_are_both_done(store: Store):
    def other() -> None:
        merge(table_of(store), changes(1)).when_matched_update({"value": "t.value + 1"}).execute()

    done = merge(interrupted(store, other), changes(0, 1)).when_matched_update({"value": "t.value * 10"}).execute()
    assert (done.version, done.rows_updated) == (4, 2)
    assert found_rows(table_of(store), "id < 2") == [(0, "name 0", 0.0), (1, "name 1", 15.0)]
    Checker(store).check()


def test_two_merges_that_insert_the_same_key_leave_one_row(store: Store):
    def merged(table: ul.Table) -> object:
        return merge(table, changes(700)).when_matched_update_all().when_not_matched_insert_all().execute()

    done = merged(interrupted(store, lambda: merged(table_of(store))))
    assert (done.rows_updated, done.rows_inserted) == (1, 0)
    assert table_of(store).count("id = 700") == 1


def test_merges_of_other_keys_do_not_disturb_each_other(store: Store):
    def other() -> None:
        merge(table_of(store), changes(450)).when_matched_update_all().execute()

    done = merge(interrupted(store, other), changes(1)).when_matched_update_all().execute()
    assert (done.version, done.blocks_total) == (4, 6), "it was looked at again, with the block that the other wrote"


def test_a_merge_with_a_token_is_done_once(store: Store):
    def merged() -> object:
        return merge(table_of(store), changes(700), token="a").when_not_matched_insert_all().execute()

    first, again = merged(), merged()
    assert (again.version, again.is_repeat, again.rows_inserted) == (first.version, True, 0)
    assert table_of(store).version == 3


def test_a_dry_run_says_the_same_and_changes_nothing(store: Store):
    def merged(dry_run: bool) -> object:
        builder = merge(table_of(store), changes(*range(40, 200), 700), dry_run=dry_run).when_matched_update_all()
        return builder.when_not_matched_insert_all().execute()

    before = {found.key for found in store.list_objects()}
    dry = merged(dry_run=True)
    assert {found.key for found in store.list_objects()} == before
    done = merged(dry_run=False)
    assert (dry.version, done.version) == (2, 3)
    for name in ("rows_matched", "rows_updated", "rows_inserted", "blocks_read", "blocks_rewritten", "bytes_written"):
        assert getattr(dry, name) == getattr(done, name), name


UPDATE_ALL = "when_matched_update_all"


@pytest.mark.parametrize(
    ("condition", "clause", "error", "message"),
    [
        ("t.id = s.nope", (UPDATE_ALL,), UnknownColumn, "^the condition: line 1, column 8: there is no column nope"),
        ("id = s.id", (UPDATE_ALL,), BadPredicate, '^the condition: line 1, column 1: .*Ambiguous reference .*"id"'),
        ("t.id = x.id", (UPDATE_ALL,), UnknownColumn, "^the condition: .*no table or column x here.* t and s"),
        ("t.id = ", (UPDATE_ALL,), BadPredicate, "^the condition: line 1"),
        ("", (UPDATE_ALL,), InvalidRequest, "^the condition: "),
        (None, (UPDATE_ALL,), InvalidRequest, "^the condition: "),
        ("t.id = s.id AND random() < 1", (UPDATE_ALL,), BadPredicate, "^the condition: the function random"),
        ("t.id = (SELECT 1)", (UPDATE_ALL,), BadPredicate, "^the condition: .*one row"),
        ("t.id = max(s.id)", (UPDATE_ALL,), BadPredicate, "^the condition: .*aggregate"),
        ("t.id = s.id AND t.name", (UPDATE_ALL,), InvalidRequest, "convert string 'name"),
        (
            "t.id = s.id",
            ("when_matched_update", {"value": "s.nope"}),
            UnknownColumn,
            "^clause 1 .*update.*, value: line 1, column 1: ",
        ),
        ("t.id = s.id", ("when_matched_update", {"value": "value"}), InvalidRequest, "^clause 1 .*Ambiguous"),
        ("t.id = s.id", ("when_matched_update", {"nope": "1"}), UnknownColumn, "there is no column nope"),
        ("t.id = s.id", ("when_matched_update", {"s.value": "1"}), UnknownColumn, "there is no column s.value"),
        ("t.id = s.id", ("when_matched_update", {"value": "1", "t.value": "2"}), InvalidRequest, "assigned twice"),
        ("t.id = s.id", ("when_matched_update", {}), InvalidRequest, "no values"),
        ("t.id = s.id", ("when_matched_update", {"value": 1}), InvalidRequest, "not an SQL expression"),
        (
            "t.id = s.id",
            ("when_matched_update", {"value": "s.name"}),
            SchemaMismatch,
            "^value: the column has another type",
        ),
        (
            "t.id = s.id",
            ("when_matched_update", {"id": "NULL"}),
            SchemaMismatch,
            "^id: a required column holds null in the row with id = 3",
        ),
        ("t.id = s.id", ("when_matched_update", {"id": "s.value / 2"}), SchemaMismatch, "^id: .*the row with id = 3"),
        (
            "t.id = s.id",
            ("when_matched_delete", "s.nope"),
            UnknownColumn,
            "^clause 1 .*delete.*, predicate: line 1, column 1",
        ),
        ("t.id = s.id", ("when_not_matched_insert", {"id": "t.id"}), UnknownColumn, "no table or column t here"),
        ("t.id = s.id", ("when_not_matched_insert", {"name": "s.name"}), SchemaMismatch, "required"),
        (
            "t.id = s.id",
            ("when_not_matched_insert", {"id": "s.id", "value": "'x'"}),
            SchemaMismatch,
            "not exactly a value",
        ),
        ("t.id = s.id", ("when_not_matched_insert", {"id": "s.id - 0.5"}), SchemaMismatch, "row 1 of the source"),
        (
            "t.id = s.id",
            ("when_not_matched_by_source_update", {"value": "s.value"}),
            UnknownColumn,
            "no table or column s here",
        ),
        ("t.id = s.id", ("when_not_matched_by_source_delete", "s.id = 1"), UnknownColumn, "no table or column s here"),
        ("t.id = s.id", (UPDATE_ALL, None, "value"), InvalidRequest, "except_cols must be a list"),
        ("t.id = s.id", (UPDATE_ALL, None, ["nope"]), UnknownColumn, "nope"),
        ("t.id = s.id", (UPDATE_ALL, None, ["id", "name", "value"]), InvalidRequest, "no column is left"),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_with_its_place_and_changes_nothing(store: Store, condition, clause, error, message):
    method, *given = clause
    before = data_keys(store)
    with pytest.raises(error, match=f"(?s){message}"):
        getattr(merge(table_of(store), changes(3, 700), condition), method)(*given).execute()
    assert (table_of(store).version, data_keys(store)) == (2, before)


def test_a_merge_without_clauses_or_with_one_alias_for_both_is_refused(store: Store):
    with pytest.raises(InvalidRequest, match="needs a clause"):
        merge(table_of(store), changes(1)).execute()
    with pytest.raises(InvalidRequest, match="the same alias"):
        table_of(store).merge(changes(1), "x.id = X.id", "x", "X").when_matched_delete().execute()
    with pytest.raises(InvalidRequest, match="not rows that Arrow can read"):
        merge(table_of(store), 5).when_matched_delete().execute()
    twice = pa.table([[1], [2]], ["id", "id"])
    with pytest.raises(InvalidRequest, match="two columns"):
        merge(table_of(store), twice).when_matched_delete().execute()
    with pytest.raises(InvalidRequest, match="never changes"):
        merge(table_of(store).at(version=1), changes(1))


def test_the_holder_of_a_job_that_was_taken_over_merges_nothing(store: Store):
    job = table_of(store).job("nightly")
    with table_of(store).job("nightly", take_over=True), pytest.raises(CommitConflict):
        merge(job.table, changes(1)).when_matched_delete().execute()
    assert ids(table_of(store)) == [*range(600)]
