"""Tails that commits flush to segments, segments that they merge, and the partitioning of each."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.table.commit.checks import check, locations
from tests.table.entries import (
    DEFINITION,
    LAYOUT,
    append,
    appending,
    deleting,
    entry,
    key_of,
    new_table,
    other_client,
    replacing,
)
from underlay.errors import (
    InvalidRequest,
)
from underlay.index import deletion_vectors as bitmaps
from underlay.index.operation import Operation
from underlay.index.partition_specs import with_spec
from underlay.index.root import PartitionFieldRecord
from underlay.table.commit import flush_and_merge
from underlay.table.commit.commit import commit
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.snapshot import Snapshot


def test_a_long_tail_is_flushed_and_small_segments_are_merged(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flush_and_merge, "TAIL_BYTES", 1000)
    _, revision = new_table()
    for number in range(60):
        append(revision, f"f{number:02}")
        if number % 3 == 0:
            commit(deleting(revision, f"f{number // 2:02}", [number]))
    root = revision.head()
    assert len(root.segments) < 20
    assert len(root.tail) < 6
    assert locations(revision) == {f"f{number:02}" for number in range(60)}
    check(revision)


def test_removed_files_leave_with_a_merge(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flush_and_merge, "TAIL_BYTES", 0)
    _, revision = new_table()
    for number in range(5):
        append(revision, f"f{number}")
    commit(replacing(revision, ["f0", "f1"], "f01"))
    assert revision.head().removed == ("f0", "f1")
    for number in range(5, 12):
        append(revision, f"f{number}")
    assert revision.head().removed == ()
    check(revision)


def test_a_long_overlay_is_folded_into_its_segment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flush_and_merge, "TAIL_BYTES", 0)
    monkeypatch.setattr(flush_and_merge, "OVERLAY_BYTES", 20)
    _, revision = new_table()
    append(revision, "a", "b")
    append(revision, "c")
    commit(replacing(revision, ["b"], "b2"))
    commit(deleting(revision, "a", range(0, 100, 7)))
    before = revision.head()
    assert (before.removed, set(before.deletes)) == (("b",), {"a"})
    root = append(revision, "d")
    assert (root.removed, root.deletes, root.row_count) == ((), {}, before.row_count + 100)
    check(revision)


def test_parts_show_what_changed_since_a_segment_was_written(monkeypatch: pytest.MonkeyPatch):
    _, revision = new_table()
    append(revision, "a", "b", "c")
    monkeypatch.setattr(flush_and_merge, "TAIL_BYTES", 0)
    append(revision, "d")
    commit(replacing(revision, ["b"], "b2"))
    commit(deleting(revision, "c", [7]))
    append(revision, "e")
    snapshot = Snapshot(revision.store, revision.keys, revision.head())
    first, *_, last = snapshot.parts()
    assert first.is_removed is not None
    assert first.is_removed.tolist() == [False, True, False]
    assert (first.deletes_of(0), first.deletes_of(2)) == (None, bitmaps.pack([7]))
    assert last.segment.locations.to_pylist() == ["e"]
    assert [part.segment.file_count for part in snapshot.parts([0])] == [3, 1]


SPEC = (PartitionFieldRecord(field=1, transform="bucket", width=4, hash="murmur3"),)


def test_another_partitioning_has_an_id_of_its_own():
    _, revision = new_table()
    append(revision, "a")
    evolve = Transaction(revision, revision.head(), Operation.EVOLVE)
    evolve.set_definition(replace(DEFINITION, partition_by=SPEC))
    with pytest.raises(InvalidRequest, match="id of a known one"):
        commit(evolve)


def test_old_files_keep_their_spec_in_segments_of_their_own(monkeypatch: pytest.MonkeyPatch):
    _, revision = new_table()
    append(revision, "a")
    assert revision.head().format == 1
    evolve = Transaction(revision, revision.head(), Operation.EVOLVE)
    evolve.set_definition(with_spec(DEFINITION, SPEC))
    root = commit(evolve)
    assert (root.format, root.definition.spec, [ref.spec for ref in root.segments], root.tail) == (3, 1, [0], ())
    with pytest.raises(InvalidRequest, match="partition spec that is not"):
        append(revision, "b")
    monkeypatch.setattr(flush_and_merge, "TAIL_BYTES", 0)
    names = "cdefghijklmnopqrstuv"
    for one in names:
        add = Transaction(revision, revision.head(), Operation.APPEND)
        add.add_file(replace(entry(one), spec=1, partition=(None,)), LAYOUT)
        add.objects[key_of(revision.keys, one)] = one.encode()
        root = commit(add)
    assert {ref.spec for ref in root.segments} == {0, 1}
    assert len(root.segments) < 10
    snapshot = Snapshot(revision.store, revision.keys, root)
    assert {file.location: file.spec for file in snapshot.files()} == {"a": 0, **dict.fromkeys(names, 1)}
    check(revision)


def test_a_rollback_knows_the_specs_since():
    _, revision = new_table()
    append(revision, "a")
    evolve = Transaction(revision, revision.head(), Operation.EVOLVE)
    evolve.set_definition(with_spec(DEFINITION, SPEC))
    commit(evolve)
    back = Transaction(revision, revision.head(), Operation.ROLLBACK)
    back.restore(revision.root(1))
    definition = commit(back).definition
    assert (definition.spec, definition.partition_by) == (0, ())
    assert with_spec(definition, SPEC[:1]).spec == 2


def test_two_writers_flush_one_tail(monkeypatch: pytest.MonkeyPatch):
    _, revision = new_table()
    append(revision, "a")
    append(revision, "b")
    monkeypatch.setattr(flush_and_merge, "TAIL_BYTES", 0)
    mine, theirs = appending(revision, "mine"), appending(other_client(revision), "theirs")
    commit(theirs)
    root = commit(mine)
    assert len(root.segments) == 1
    assert [file.location for file in root.tail] == ["theirs", "mine"]
    check(revision)


def test_a_flush_of_files_that_changed_meanwhile_is_left_out(monkeypatch: pytest.MonkeyPatch):
    _, revision = new_table()
    append(revision, "a")
    theirs = deleting(other_client(revision), "a", [1])
    mine = appending(revision, "b")
    commit(theirs)
    monkeypatch.setattr(flush_and_merge, "TAIL_BYTES", 0)
    root = commit(mine)
    assert (len(root.segments), len(root.tail)) == (0, 2)
    check(revision)
