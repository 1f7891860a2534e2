"""What it costs to look at sources, and to add one, where very many are known."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.ingest.worlds import begin, memory, new_table, opened, work, write_source
from underlay.index.root import SourceRecord, Sources
from underlay.index.sources.tree import insert
from underlay.ingest.exactly_once.claim import claim
from underlay.ingest.exactly_once.commit_claimed import commit_claimed
from underlay.ingest.exactly_once.ledger import sort_out
from underlay.ingest.source.find import find_sources
from underlay.ingest.source.source import Source
from underlay.store import Store
from underlay.store.testing import CountingStore
from underlay.store.testing.wrapper import StoreMethod
from underlay.table.versions.environment import uuid7

KNOWN = 1_000_000
ASKED = 10_000


def found(number: int) -> Source:
    return Source(f"s3://bucket/folder/part-{number:08}.csv", "etag", 1)


@pytest.fixture(scope="module")
def store() -> Store:
    """A lake whose table knows a million sources, in pages that were made at once."""
    store = memory()
    head = new_table(store).head()
    uris = (f"s3://bucket/folder/part-{number:08}.csv" for number in range(KNOWN))
    records = [SourceRecord(uri, "etag", 1, "done", "ingest-0", 1) for uri in uris]
    tree, pages = insert(Sources(), records, lambda refs: [], uuid7)
    for page, data in pages.items():
        store.put(head.revision.keys.source_page(page), data)
    root = replace(head.root, version=1, commit_id="1" * 32, parent_id=head.root.commit_id, sources=tree)
    assert head.revision.publish(root) is None
    return store


def test_known_sources_cost_the_pages_on_the_way_to_them_and_nothing_else(store: Store):
    counting = CountingStore(store)
    table = opened(counting)
    head = table.head()
    counting.reset()
    ledger = sort_out(table, head, [found(number) for number in range(ASKED)])
    assert len(ledger.known) == ASKED
    assert {served.request.op for served in counting.log} == {StoreMethod.GET}
    assert all("/_index/sources/" in served.request.keys[0] for served in counting.log)
    assert counting.request_count() <= 2 + ASKED // 300  # hundreds of sources in a page
    counting.reset()
    assert claim(begin(table), [found(number) for number in range(ASKED)]).entries == ()
    assert counting.request_count(StoreMethod.CREATE) == 0


def test_one_new_among_a_million_known_sources_writes_a_few_pages(store: Store, tmp_path: Path):
    write_source(tmp_path, 0, [1])
    counting = CountingStore(store)
    table = opened(counting)
    claims = claim(begin(table), find_sources([f"{tmp_path}/*"]))
    commit_claimed(claims, *work(claims))
    assert counting.sent_bytes() < 200_000
    written = [key for served in counting.log if served.request.op is StoreMethod.PUT for key in served.request.keys]
    assert len([key for key in written if "/_index/sources/" in key]) <= 8
    assert counting.request_count(StoreMethod.CREATE) == 2
