from __future__ import annotations

import pyarrow as pa
import pytest
from msgspec.structs import replace

import underlay
from tests.change.interrupting import interrupted, table_of
from tests.contract.worlds import add_column, drop_column, evolve
from tests.end_to_end.lakes import NAME, SCHEMA, data_keys, ids, memory, named_keys, quick, rows
from tests.table.checker import Checker
from underlay.change.rows import append as module
from underlay.errors import CommitConflict, InvalidRequest, SchemaMismatch, TableNotFound
from underlay.store import Store
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.wrapper import StoreMethod
from underlay.table.catalog.lifecycle import activate, prepare_successor


@pytest.fixture
def store() -> Store:
    store = memory()
    quick(store).create_table(NAME, SCHEMA, key=["id"])
    return store


def test_an_append_says_what_it_did(store: Store):
    done = table_of(store).append(rows([1, 2, 3]))
    assert (done.version, done.row_count, done.file_count, done.is_repeat) == (1, 3, 1, False)


def test_no_rows_make_no_version_and_no_file(store: Store):
    done = table_of(store).append(rows([]))
    assert (done.version, done.row_count, done.is_repeat) == (0, 0, False)
    assert table_of(store).version == 0
    assert not data_keys(store)


def test_no_rows_do_not_use_up_a_token(store: Store):
    table = table_of(store)
    table.append(rows([]), token="a")
    assert not table.append(rows([1]), token="a").is_repeat
    assert ids(table) == [1]


def test_a_token_that_is_no_text_is_refused(store: Store):
    table = table_of(store)
    with pytest.raises(InvalidRequest, match=r"a token must be a string.*found 5"):
        table.append(rows([1]), token=5)  # type: ignore[arg-type]  # no text
    assert table.version == 0


def test_a_token_adds_rows_once_also_in_another_process(store: Store):
    first = table_of(store).append(rows([1]), token="a")
    again = table_of(store).append(rows([1]), token="a")
    other = table_of(store).append(rows([2]), token="b")
    assert (again.version, again.is_repeat, again.row_count) == (first.version, True, 0)
    assert not other.is_repeat
    assert ids(table_of(store)) == [1, 2]


def test_a_token_that_another_process_commits_meanwhile_is_not_committed_again(store: Store):
    table = interrupted(store, lambda: table_of(store).append(rows([1]), token="a"))
    done = table.append(rows([1]), token="a")
    assert done.is_repeat
    assert done.version == 1
    assert ids(table_of(store)) == [1]
    Checker(store).check()


def test_a_token_is_free_again_after_its_rows_were_rolled_back(store: Store):
    table = table_of(store)
    table.append(rows([1]), token="a")
    table.rollback(0)
    assert not table.append(rows([1]), token="a").is_repeat
    assert ids(table) == [1]
    Checker(store).check()


def test_a_token_is_known_after_many_others_without_a_write(store: Store):
    table = table_of(store)
    for number in range(60):
        table.append(rows([number]), token=f"{number}")
    counting = CountingStore(store)
    other = table_of(counting)
    counting.reset()
    assert other.append(rows([0]), token="0").is_repeat
    assert counting.request_count(StoreMethod.PUT, StoreMethod.CREATE) == 0


def test_a_lost_race_does_not_write_the_rows_again(store: Store):
    table = interrupted(store, *[lambda n=n: table_of(store).append(rows([n])) for n in (1, 2, 3)])
    done = table.append(rows([4]))
    assert (done.version, done.row_count) == (4, 1)
    assert ids(table) == [1, 2, 3, 4]
    assert data_keys(store) == named_keys(table)
    Checker(store).check()


def test_a_column_that_is_added_meanwhile_gets_its_default(store: Store):
    table = interrupted(store, lambda: add_column(table_of(store), "more", "int64", "7"))
    table.append(rows([1]))
    found = table_of(store).to_arrow().to_pylist()
    assert found == [{"id": 1, "name": "name 1", "value": 0.5, "more": 7}]
    Checker(store).check()


def test_a_column_that_is_dropped_meanwhile_goes_from_the_rows_too(store: Store):
    table = interrupted(store, lambda: drop_column(table_of(store), "value"))
    table.append(rows([1]))
    assert table_of(store).to_arrow().to_pylist() == [{"id": 1, "name": "name 1"}]
    Checker(store).check()


def require_name(store: Store) -> None:
    evolve(
        table_of(store), lambda fields, _: tuple(replace(f, required=True) if f.name == "name" else f for f in fields)
    )


def test_rows_are_not_added_under_a_rule_that_they_were_not_checked_by(store: Store):
    table = interrupted(store, lambda: require_name(store))
    nameless = rows([1]).set_column(1, "name", pa.nulls(1, pa.string()))
    with pytest.raises(CommitConflict):
        table.append(nameless)
    with pytest.raises(SchemaMismatch, match="name"):
        table.append(nameless)
    assert table_of(store).count() == 0
    table.append(rows([1]))
    assert ids(table_of(store)) == [1]
    Checker(store).check()


def hand_over(store: Store) -> None:
    """Another revision takes over, without rows."""
    opened = table_of(store)._opened
    revision, root = opened.head()
    activate(opened.lake, NAME, revision, root, prepare_successor(opened.lake, NAME, root.definition))


def test_a_reader_that_would_have_to_be_read_again_is_refused(store: Store):
    table = interrupted(store, lambda: hand_over(store))
    with pytest.raises(InvalidRequest, match="only once"):
        table.append(rows([2]).to_reader())
    assert table_of(store).count() == 0
    table.append(rows([2]).to_reader())
    assert ids(table_of(store)) == [2]
    Checker(store).check()


def test_rows_with_a_token_are_added_after_a_rollback_that_came_first(store: Store):
    table_of(store).append(rows([1]))
    table = interrupted(store, lambda: table_of(store).rollback(0))
    assert not table.append(rows([2]), token="a").is_repeat
    assert ids(table_of(store)) == [2]
    Checker(store).check()


def test_a_reader_survives_a_lost_race(store: Store):
    table = interrupted(store, lambda: table_of(store).append(rows([1])))
    table.append(rows([2]).to_reader())
    assert ids(table_of(store)) == [1, 2]


def test_a_rollback_meanwhile_does_not_lose_the_rows(store: Store):
    table_of(store).append(rows([1]))
    table = interrupted(store, lambda: table_of(store).rollback(0))
    table.append(rows([2]))
    assert ids(table_of(store)) == [2]
    Checker(store).check()


def test_rows_follow_a_table_to_its_next_revision(store: Store):
    table = interrupted(store, lambda: hand_over(store))
    table.append(rows([1]))
    assert ids(table_of(store)) == [1]
    assert len(quick(store).revisions(NAME)) == 2
    Checker(store).check()


def test_rows_for_a_table_that_is_dropped_meanwhile_are_refused(store: Store):
    table = interrupted(store, lambda: quick(store).drop_table(NAME))
    with pytest.raises(underlay.UnderlayError, match="dropped"):
        table.append(rows([1]))
    with pytest.raises(TableNotFound):
        table.append(rows([1]))
    Checker(store).check()


def test_many_bytes_are_put_before_the_commit(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "HELD_BYTES", 1)
    table = quick(store).create_table("some.small", SCHEMA, properties={"block_rows": "5", "file_bytes": "1"})
    done = table.append(rows(range(23)))
    assert (done.row_count, done.file_count) == (23, 5)
    assert ids(table) == list(range(23))
    Checker(store).check()


@pytest.mark.parametrize(("sort_by", "file_count"), [([], 1), (["id"], 3)])
def test_a_stream_is_written_run_by_run_and_runs_share_files_unless_they_are_sorted(
    store: Store, monkeypatch: pytest.MonkeyPatch, sort_by: list[str], file_count: int
):
    monkeypatch.setattr("underlay.change.files.rows.RUN_BYTES", 1)
    table = quick(store).create_table("some.stream", SCHEMA, sort_by=sort_by)
    batches = [rows(range(begin, begin + 5)).to_batches()[0] for begin in (0, 5, 10)]
    done = table.append(pa.RecordBatchReader.from_batches(batches[0].schema, batches))
    assert (done.version, done.row_count, done.file_count) == (1, 15, file_count)
    assert ids(table) == list(range(15))


def test_an_error_in_the_middle_of_a_stream_adds_nothing(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("underlay.change.files.rows.RUN_BYTES", 1)
    batch = rows([1]).to_batches()[0]

    def batches():
        yield batch
        raise ValueError("the source broke")

    with pytest.raises(ValueError, match="the source broke"):
        table_of(store).append(pa.RecordBatchReader.from_batches(batch.schema, batches()))
    assert table_of(store).count() == 0
    assert table_of(store).version == 0
