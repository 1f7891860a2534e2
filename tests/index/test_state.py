from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.table.entries import DEFINITION, LAYOUT, entry, source
from underlay.errors import InvalidRequest
from underlay.index import deletion_vectors as bitmaps
from underlay.index.change import Attachments, Change, Flush, Merge
from underlay.index.entry import FileEntry
from underlay.index.operation import Operation
from underlay.index.root import Root, SegmentRef, Sources, Terminal, decode_root, encode_root
from underlay.index.state import advance, attach, first_root, follow

FIRST = first_root(DEFINITION, commit_id="0", now_us=10, writer="w")


def after(parent: Root, now_us: int = 0, attachments: Attachments | None = None, **change: object) -> Root:
    return advance(
        parent,
        Change(operation=Operation("change"), **change),  # type: ignore[arg-type]  # fields of many types
        commit_id=f"{parent.version + 1}",
        now_us=now_us,
        writer="w",
        attachments=attachments,
    )


def segment(name: str, *files: FileEntry) -> SegmentRef:
    return SegmentRef(
        id=name,
        size_bytes=1,
        crc=0,
        file_count=len(files),
        block_count=2 * len(files),
        row_count=100 * len(files),
        data_bytes=sum(file.size_bytes for file in files),
        deleted_rows=sum(file.deleted_rows for file in files),
        pieces=b"",
    )


def with_files(*names: str) -> Root:
    return after(FIRST, files=tuple(entry(name) for name in names), layouts=(LAYOUT,))


def flushed(*names: str) -> Root:
    """These files in one segment."""
    return after(FIRST, segments=(segment("s", *(entry(name) for name in names)),), layouts=(LAYOUT,))


def bits(*positions: int) -> bytes:
    return bitmaps.pack(positions)


def test_a_root_names_its_parent_and_is_younger():
    root = after(FIRST, now_us=3)
    assert (root.version, root.parent_id, root.committed_us) == (1, "0", 11)
    assert after(root, now_us=500).committed_us == 500


def test_a_root_survives_its_bytes():
    root = after(with_files("a"), deletes={"a": bits(1)}, touched={"a": entry("a")})
    assert decode_root(encode_root(root)) == root


def test_files_are_added_to_the_tail_and_counted():
    root = with_files("a", "bb")
    assert (root.row_count, root.file_count, root.data_bytes, root.delta.added_in_tail) == (200, 2, 3, 2)


def test_a_segment_is_added_whole():
    root = flushed("a", "bb")
    assert (root.row_count, root.file_count, root.data_bytes, root.delta.added_segments) == (200, 2, 3, ("s",))


def test_a_layout_is_kept_once():
    root = after(with_files("a"), files=(entry("b"),), layouts=(LAYOUT, LAYOUT))
    assert (root.layouts, root.delta.layouts) == ((LAYOUT,), ())


def test_a_file_leaves_the_tail_without_a_trace():
    root = after(with_files("a", "b"), removed=("a",), touched={"a": entry("a")})
    assert ([file.location for file in root.tail], root.removed, root.row_count) == (["b"], (), 100)


def test_a_file_of_a_segment_is_marked_as_removed():
    root = after(flushed("a", "b"), removed=("a",), touched={"a": entry("a")})
    assert (root.removed, root.row_count, root.file_count, root.data_bytes) == (("a",), 100, 1, 1)


def test_a_removed_file_takes_its_deleted_rows_along():
    root = after(flushed("a", "b"), deletes={"a": bits(1, 2)}, touched={"a": entry("a")})
    changed = replace(entry("a"), deletes=bits(1, 2), deleted_rows=2)
    root = after(root, removed=("a",), touched={"a": changed})
    assert (root.deletes, root.row_count) == ({}, 100)


def test_deleted_rows_are_counted_once():
    root = after(flushed("a"), deletes={"a": bits(1, 2)}, touched={"a": entry("a")})
    changed = replace(entry("a"), deletes=bits(1, 2), deleted_rows=2)
    root = after(root, deletes={"a": bits(2, 3)}, touched={"a": changed})
    assert (root.deletes, root.row_count) == ({"a": bits(1, 2, 3)}, 97)


def test_a_change_follows_what_others_deleted():
    mine = Change(operation=Operation.DELETE, deletes={"a": bits(2)}, touched={"a": entry("a")})
    winner = after(flushed("a"), deletes={"a": bits(1, 2)}, touched={"a": entry("a")})
    assert follow(mine, winner).touched["a"].deleted_rows == 2
    assert follow(mine, with_files("b")) is mine


@pytest.mark.parametrize(
    "change",
    [
        {"files": (entry("a"),)},
        {"files": (entry("gone"),)},
        {"files": (entry("new"), entry("new"))},
        {"removed": ("gone",), "touched": {"gone": entry("gone")}},
        {"removed": ("a", "a"), "touched": {"a": entry("a")}},
        {"removed": ("a",), "deletes": {"a": bits(1)}, "touched": {"a": entry("a")}},
        {"deletes": {"gone": bits(1)}, "touched": {"gone": entry("gone")}},
    ],
)
def test_changes_that_make_no_sense(change: dict[str, object]):
    root = after(flushed("gone", "other"), removed=("gone",), touched={"gone": entry("gone")})
    root = after(root, files=(entry("a"),))
    with pytest.raises(InvalidRequest):
        after(root, **change)


def test_nothing_follows_a_terminal_root():
    terminal = Terminal(reason="drop", table="a.b", successor=None, commit_id="x")
    with pytest.raises(InvalidRequest, match="terminal"):
        after(after(FIRST, terminal=terminal))


def test_a_flush_moves_files_and_changes_nothing_else():
    parent = with_files("a", "b")
    flush = Flush(segment=segment("s", *parent.tail), files=parent.tail)
    root = after(parent, attachments=Attachments(flush=flush), files=(entry("c"),))
    assert ([ref.id for ref in root.segments], [file.location for file in root.tail]) == (["s"], ["c"])
    assert (root.row_count, root.file_count, root.delta.added_in_tail) == (300, 3, 1)


def test_a_change_of_a_file_that_is_just_flushed_goes_into_the_overlay():
    parent = with_files("a", "b")
    attachments = Attachments(flush=Flush(segment=segment("s", *parent.tail), files=parent.tail))
    root = after(parent, attachments=attachments, deletes={"a": bits(1)}, touched={"a": entry("a")})
    assert (root.deletes, root.tail) == ({"a": bits(1)}, ())
    root = after(parent, attachments=attachments, removed=("a",), touched={"a": entry("a")})
    assert root.removed == ("a",)


@pytest.mark.parametrize(
    "head",
    [
        after(with_files("a", "b"), removed=("a",), touched={"a": entry("a")}),
        after(with_files("a", "b"), deletes={"a": bits(1)}, touched={"a": entry("a")}),
        FIRST,
    ],
)
def test_a_flush_of_other_files_than_those_in_the_tail_is_left_out(head: Root):
    tail = with_files("a", "b").tail
    assert attach(head, Attachments(flush=Flush(segment=segment("s", *tail), files=tail))) == head


def two_segments() -> Root:
    root = after(FIRST, segments=(segment("s1", entry("a"), entry("b")),))
    root = after(root, segments=(segment("s2", entry("c")), segment("s3", entry("d"))))
    return after(root, removed=("b",), deletes={"a": bits(1), "d": bits(2)}, touched={n: entry(n) for n in "abd"})


def merged(root: Root, **given: object) -> Merge:
    parts = {"segment": segment("m", entry("a"), entry("c")), "inputs": root.segments[:2]}
    folded = {"removed": frozenset({"b"}), "deletes": {"a": bits(1)}}
    return Merge(**(parts | folded | given))  # type: ignore[arg-type]  # fields of many types


def test_a_merge_takes_the_place_of_its_inputs_and_what_it_folded_leaves_the_overlay():
    root = attach(two_segments(), Attachments(merges=(merged(two_segments()),)))
    assert [ref.id for ref in root.segments] == ["m", "s3"]
    assert (root.removed, root.deletes) == ((), {"d": bits(2)})
    assert root.row_count == two_segments().row_count


def test_a_merge_of_nothing_leaves_nothing():
    root = after(FIRST, segments=(segment("s", entry("a")),))
    root = after(root, removed=("a",), touched={"a": entry("a")})
    nothing = Merge(segment=segment("m"), inputs=root.segments, removed=frozenset({"a"}))
    assert attach(root, Attachments(merges=(nothing,))).segments == ()


@pytest.mark.parametrize(
    "head",
    [
        after(two_segments(), deletes={"a": bits(7)}, touched={"a": replace(entry("a"), deletes=bits(1))}),
        after(two_segments(), restored=after(FIRST, segments=two_segments().segments)),
        after(two_segments(), restored=FIRST),
        attach(two_segments(), Attachments(merges=(merged(two_segments()),))),
    ],
)
def test_a_merge_whose_inputs_changed_is_left_out(head: Root):
    assert attach(head, Attachments(merges=(merged(two_segments()),))) == head


def test_a_removal_after_a_merge_was_made_stays_in_the_overlay():
    head = after(two_segments(), removed=("c",), touched={"c": entry("c")})
    assert attach(head, Attachments(merges=(merged(two_segments()),))).removed == ("c",)


def test_a_restored_version_is_whole_again():
    old = two_segments()
    head = after(old, removed=("a",), touched={"a": replace(entry("a"), deletes=bits(1), deleted_rows=1)})
    head = after(head, fences={"job": 3}, files=(entry("e"),))
    root = after(head, restored=old)
    for name in ("segments", "tail", "removed", "deletes", "row_count", "file_count", "data_bytes", "definition"):
        assert getattr(root, name) == getattr(old, name)
    assert (root.version, root.delta.restored, root.fences) == (head.version + 1, old.version, {"job": 3})


def test_layouts_stay_when_a_version_is_restored():
    root = after(with_files("a"), restored=FIRST)
    assert (root.tail, root.layouts) == ((), (LAYOUT,))


def test_sources_are_those_that_are_given():
    sources = Sources(journal=(source("x"),))
    change = Change(operation=Operation.INGEST, sources=(source("x"),))
    root = advance(FIRST, change, commit_id="1", now_us=1, writer="w", sources=sources)
    assert (root.sources, root.delta.sources) == (sources, (source("x"),))
    assert after(root).sources == sources
