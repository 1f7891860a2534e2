"""Pages of source trees with several levels: whichever is harmed is found, with the versions that need it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tests.contract.worlds import World, change
from tests.end_to_end.lakes import rows
from tests.maintain.healthy import SALES, Truth, active, broken, built, run
from underlay.errors import Damaged, NotFound
from underlay.index.root import SourceRecord
from underlay.index.sources.tree import scan_all
from underlay.maintain.verify.finding import FindingKind, Severity
from underlay.store import Store
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.catalog.lifecycle import open_active
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.snapshot import Snapshot


def build_pages(world: World) -> None:
    """Two spills of the journal: the second leaves some pages of the first and replaces others."""
    table = world.create("id bigint not null, name string, value double", SALES)
    table.append(rows(range(3)))
    for first in (0, 250):

        def make(transaction: Transaction, first: int = first) -> None:
            for number in range(first, first + 250):
                uri = f"s3://in/{'long-' * 100}/{number:06}"
                transaction.add_source(SourceRecord(uri=uri, identity="etag", version=0))

        change(table, make, "ingest")
    table.append(rows(range(3, 5)))


@pytest.fixture
def store() -> Store:
    return built(build_pages)


@cache
def pages() -> tuple[str, ...]:
    return tuple(Truth(built(build_pages)).keys("_index/sources/"))


def versions_without_sources(store: Store) -> set[int]:
    """The versions whose sources cannot all be read."""
    revision = open_active(LakeCatalog(store), SALES)
    found = set()
    for version in range(revision.head().version + 1):
        snapshot = Snapshot(store, revision.keys, revision.root(version))
        try:
            list(scan_all(snapshot.root.sources, snapshot.fetch_pages))
        except (NotFound, Damaged):
            found.add(version)
    return found


def exchanged(store: Store, key: str) -> bytes:
    """Another page that is whole."""
    return bytes(store.get(pages()[pages().index(key) - 1])[0])


def flipped(store: Store, key: str) -> bytes:
    data = bytearray(store.get(key)[0])
    data[len(data) // 2] ^= 4
    return bytes(data)


HARMS: dict[str, Callable[[Store, str], bytes | None]] = {
    "deleted": lambda store, key: None,
    "truncated": lambda store, key: bytes(store.get(key)[0])[:-7],
    "empty": lambda store, key: b"",
    "flipped": flipped,
    "exchanged": exchanged,
}


def test_the_trees_share_pages_and_have_inner_ones(store: Store):
    needed = []
    for key in pages():
        with broken(store, key, None):
            needed.append(versions_without_sources(store))
    assert {frozenset(one) for one in needed} == {frozenset({2}), frozenset({3, 4}), frozenset({2, 3, 4})}
    report = run(store)
    assert report.findings == ()
    assert active(report).counts.pages == len(pages()) >= 6


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("harm", HARMS)
def test_a_harmed_page_is_found_with_the_versions_that_need_it(store: Store, harm: str, deep: bool):
    for key in pages():
        with broken(store, key, HARMS[harm](store, key)):
            report = run(store, deep=deep)
            lost = versions_without_sources(store)
        (finding,) = report.findings
        kind = FindingKind.MISSING if harm == "deleted" else FindingKind.DAMAGED
        assert (finding.place, finding.severity, finding.kind) == (key, Severity.LOST, kind)
        assert {version for span in finding.versions for version in range(span.begin, span.end)} == lost
        assert active(report).newest_intact == max({0, 1, 2, 3, 4} - lost)
        assert active(report).is_head_intact
