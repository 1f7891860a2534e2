"""Roots that are whole and contradict each other, or themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tests.maintain.healthy import SALES, Truth, active, broken, build_small, built, run
from underlay.index import deletion_vectors as bitmaps
from underlay.index.root import Delta, Root, SourceRecord, decode_root, encode_root
from underlay.maintain.verify.finding import FindingKind, Severity

HEAD = 11


def later(root: Root) -> Root:
    return replace(root, committed_us=root.committed_us - 10**15)


def deleting(position: int) -> Callable[[Root], Root]:
    def edit(root: Root) -> Root:
        bits = bitmaps.pack([position])
        changed = replace(root.tail[-2], deletes=bits, deleted_rows=1)
        return replace(root, tail=(*root.tail[:-2], changed, root.tail[-1]), row_count=root.row_count - 1)

    return edit


EDITS = {
    "row_count": (lambda root: replace(root, row_count=root.row_count + 1), "row_count"),
    "file_count": (lambda root: replace(root, file_count=1), "file_count"),
    "data_bytes": (lambda root: replace(root, data_bytes=1), "data_bytes"),
    "a file twice": (lambda root: replace(root, tail=(*root.tail, root.tail[-1])), "twice"),
    "a delta forgotten": (
        lambda root: replace(root, delta=Delta()),
        "its files are not the parent's with the delta applied",
    ),
    "no layouts": (lambda root: replace(root, layouts=()), "layout"),
    "a removed stranger": (lambda root: replace(root, removed=("x.parquet",)), "is in no segment"),
    "deletions forgotten": (lambda root: replace(root, deletes={}), "row_count"),
    "an epoch": (lambda root: replace(root, fences={"job": 3}), "epochs"),
    "a source from nowhere": (
        lambda root: replace(root, sources=replace(root.sources, journal=(SourceRecord("uri", "etag", HEAD),))),
        "sources",
    ),
    "time": (later, "not newer"),
    "another definition": (
        lambda root: replace(root, definition=replace(root.definition, comment="other")),
        "definition",
    ),
    "rows deleted in silence": (deleting(0), "deleted rows are not the parent's"),
}


@pytest.mark.parametrize("case", EDITS)
def test_a_root_that_contradicts_is_found(case: str):
    store = built(build_small)
    key = Truth(store).root_keys[HEAD]
    edit, words = EDITS[case]
    with broken(store, key, encode_root(edit(decode_root(store.get(key)[0])))):
        report = run(store, SALES)
    (finding,) = report.findings
    assert (finding.place, finding.kind, finding.severity) == (key, FindingKind.INCONSISTENT, Severity.ANSWERS)
    assert words in finding.problem
    assert active(report).newest_intact == HEAD


def test_a_deletion_past_the_end_of_its_file_loses_the_version():
    store = built(build_small)
    key = Truth(store).root_keys[HEAD]
    with broken(store, key, encode_root(deleting(1000)(decode_root(store.get(key)[0])))):
        report = run(store, SALES)
    assert {finding.place for finding in report.findings} == {key}
    assert Severity.LOST in {finding.severity for finding in report.findings}
    assert active(report).newest_intact == HEAD - 1


def test_a_wrong_range_of_a_segment_in_a_root_is_found():
    store = built(build_small)
    key = Truth(store).root_keys[HEAD]
    root = decode_root(store.get(key)[0])
    (ref,) = root.segments
    narrow = replace(ref, bounds=(replace(ref.bounds[0], low=ref.bounds[0].high),))
    with broken(store, key, encode_root(replace(root, segments=(narrow,)))):
        report = run(store, SALES)
    assert [finding.place for finding in report.findings] == [key]
    assert "described differently" in report.findings[0].problem
