"""A compaction beside other commits, damaged files and stores that fail changes no row and loses nothing."""

from __future__ import annotations

from contextlib import suppress
from uuid import uuid4

import pytest

from tests.gate import every_third
from tests.maintain.audit import audit
from tests.maintain.compact.lakes import NAME, check_sound, files, lake_of, make, rows, seen
from underlay.api.table import Table
from underlay.errors import UnderlayError
from underlay.store import Store, open_store
from underlay.store.testing import Crashed, Fault, at_every_request


def ids(table: Table) -> list[int]:
    return table.to_arrow()["id"].to_pylist()


def test_a_file_that_another_commit_changed_is_given_up_and_no_row_comes_back(store):
    table = make(store, (20, 20, 20), properties={"care.target_file_bytes": 4096, "block_rows": 100})
    other = lake_of(store.inner).table(NAME)
    store.meddle = lambda: other.delete("id = 1005")
    done = table.compact()
    assert (done.given_up, done.files_before) == (3, 0)
    assert 1005 not in ids(table)
    assert table.count() == 59
    check_sound(store.inner)


MEDDLING = {
    "append": lambda table: table.append(rows(9000, 10)),
    "delete": lambda table: table.delete("id = 1005"),
    "upsert": lambda table: table.upsert(rows(1000, 3)),
    "update": lambda table: table.update({"word": "'x'"}, where="id between 2000 and 2003"),
    "overwrite": lambda table: table.overwrite(rows(0, 5)),
    "overwrite where": lambda table: table.overwrite(rows(1000, 5), "id between 1000 and 1999"),
    "overwrite stream": lambda table: table.overwrite(rows(1000, 5).to_reader(), "id between 1000 and 1999"),
    "truncate": lambda table: table.truncate(),
    "rollback": lambda table: table.rollback(2),
    "rename": lambda table: _evolve(table, lambda change: change.rename_column("word", "label")),
    "require": lambda table: _evolve(table, lambda change: change.make_required("id")),
    "partition": lambda table: _evolve(table, lambda change: change.set_partition_by(["bucket(2, id)"])),
    "compact": lambda table: table.compact(),
    "sort": lambda table: table.compact(order="zorder(id, word)"),
}


def _evolve(table: Table, evolve) -> None:
    with table.evolve() as change:
        evolve(change)


@pytest.mark.parametrize("verb", MEDDLING)
def test_a_compaction_that_loses_a_race_changes_no_row(store, verb):
    table = make(store, (40, 30, 20, 100), key=["id"])
    expected = make(open_store(f"memory://{uuid4()}"), (40, 30, 20, 100), key=["id"])
    MEDDLING[verb](expected)
    store.meddle = lambda: MEDDLING[verb](lake_of(store.inner).table(NAME))
    table.compact()
    assert seen(table) == seen(expected)
    check_sound(store.inner)


@pytest.mark.parametrize("verb", MEDDLING)
def test_no_writer_fails_because_of_a_compaction(store, verb):
    table = make(store, (40, 30, 20, 100), key=["id"])
    expected = make(open_store(f"memory://{uuid4()}"), (40, 30, 20, 100), key=["id"])
    MEDDLING[verb](expected)
    store.meddle = lambda: lake_of(store.inner).table(NAME).compact()
    MEDDLING[verb](table)
    assert store.meddle is None
    assert seen(table) == seen(expected)
    check_sound(store.inner)


def test_a_file_that_is_damaged_is_left_and_the_others_are_compacted(store):
    table = make(store, (60, 60, 60, 60), partition_by=["bucket(2, id)"])
    first = files(table)[0]
    store.put(f"{table.snapshot().keys.folder}/{first.location}", b"damaged")
    done = table.compact()
    assert len(done.failed) == 1
    assert (done.files_before, done.files_after) == (7, 2)


@pytest.mark.parametrize("order", [None, "zorder(id, word)"])
def test_a_lost_file_is_left_and_those_that_it_would_be_joined_with_are_compacted(store, order):
    table = make(store, (60, 100, 30, 40, 20), properties={"block_rows": 100})
    before, entries = seen(table), files(table)
    place = table.snapshot().keys.folder
    lost = {f"{place}/{entries[number].location}": b"" for number in (1, 3)}
    for key in lost:
        lost[key] = bytes(store.get(key)[0])
        store.delete([key])
    done = table.compact(order=order)
    assert done.failed.keys() == {entries[1].location, entries[3].location}
    assert (done.files_before, done.files_after) == (3, 1)
    for key, data in lost.items():
        store.put(key, data)
    assert seen(table) == before
    check_sound(store.inner)


def test_a_fault_at_any_request_changes_no_row_and_loses_nothing():
    def begin() -> Store:
        inner = open_store(f"memory://{uuid4()}")
        make(inner, (30, 100, 30)).delete("id = 7")
        return inner

    wanted = seen(lake_of(begin()).table(NAME))
    for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.LOST_RESPONSE, Fault.LOST_REQUEST):
        for faulty in at_every_request(begin, [fault], **every_third()):
            with suppress(Crashed, UnderlayError):
                lake_of(faulty).table(NAME).compact()
            table = lake_of(faulty.inner).table(NAME)
            assert seen(table) == wanted
            assert audit(faulty.inner).missing == set()
            table.compact()
            assert (len(files(table)), seen(table)) == (1, wanted)
