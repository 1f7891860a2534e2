"""What it costs to have many sources known: to look at all of them again, and to add one. No peer knows sources."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bench.ingest.files import Sources
from bench.ingest.worker import Again, Load
from bench.spark.workers import Workers
from bench.systems.known import OURS
from underlay.api.lake import connect
from underlay.index.root import PageRef, SourceRecord
from underlay.index.root import Sources as Tree
from underlay.index.sources.tree import JOURNAL_RECORDS, insert
from underlay.store import Store, open_store
from underlay.store.testing import CountingStore
from underlay.store.testing.wrapper import Request, StoreMethod
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.open_table import OpenTable
from underlay.table.versions.environment import uuid7

_TABLE = "bench.known"
_NEW = 8
"""How many sources are added; half of them fit into the journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds of each round, what was counted in the last one, and how much of it there may be."""

    case: str
    question: str
    seconds: Sequence[float]
    counts: Mapping[str, int]
    limits: Mapping[str, float]
    """By the name of a count, or `seconds` for their median."""
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    def met(self) -> dict[str, bool]:
        """Whether each limit is kept."""
        found = {**self.counts, "seconds": statistics.median(self.seconds)}
        return {name: found[name] <= limit for name, limit in self.limits.items()}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "median_seconds": statistics.median(self.seconds), "met": self.met()}

    def lines(self) -> list[str]:
        """A block of a readable table."""
        times = f"{statistics.median(self.seconds) * 1000:,.1f} ms   fastest {min(self.seconds) * 1000:,.1f} ms"
        counted = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        return [
            f"{self.case}: {self.question}   [load {self.load:.1f}, {len(self.seconds)} rounds]",
            f"    {OURS:18}{times}   {counted}",
            *(
                f"    target {self.limits[name]:g} {name}: {'met' if is_met else 'NOT MET'}"
                for name, is_met in self.met().items()
            ),
        ]


def ingest_again(workers: Workers, sources: Sources, *, rounds: int) -> Cost:
    """A run over sources that the table has all, again and again."""
    first = workers.ask(OURS, Load(name=sources.name, sources=sources))
    replies = [workers.ask(OURS, Again(name=sources.name, sources=sources)) for _ in range(rounds)]
    jobs, known, ingested = (int(value) for value in replies[-1].values)
    if (known, ingested) != (sources.files, 0):
        raise AssertionError(f"{known} sources of {sources.files} were known, and {ingested} ingested again")
    return Cost(
        case="again",
        question=f"a second run over {sources.files:,} known sources, over a new connection; the first took "
        f"{first.seconds:.1f} s",
        seconds=[reply.seconds for reply in replies],
        counts={"Spark jobs": jobs, "requests": replies[-1].requests or 0},
        limits={"seconds": 1.0, "Spark jobs": 0},
    )


def add_some(folder: Path, known: int) -> Cost:
    """Ingests of one new source each, in this process, into a table that knows very many.

    Records wait in a journal in the root, and go into pages when it is full. One of these ingests does that, for
    records from all over the tree.
    """
    lake = open_store(folder / "lake")
    make_known(lake, known)
    stores = [CountingStore(lake) for _ in range(_NEW)]
    seconds = [_add_one(store, folder / f"new-{number}.csv") for number, store in enumerate(stores)]
    pages = [_page_puts(store) for store in stores]
    most = max(pages, key=len)
    return Cost(
        case="one",
        question=f"one new source of one row among {known:,} known ones, over a new connection",
        seconds=seconds,
        counts={
            "pages written": int(statistics.median(map(len, pages))),
            "bytes written": int(statistics.median(store.sent_bytes() for store in stores)),
            "requests": int(statistics.median(store.request_count() for store in stores)),
            f"pages when {JOURNAL_RECORDS} journalled sources go into pages": len(most),
            "bytes of these pages": sum(put.sent_bytes for put in most),
        },
        limits={"pages written": 8, "bytes written": 200_000},
    )


def _add_one(store: Store, source: Path) -> float:
    """Seconds for an ingest of a new source."""
    source.write_text("id\n1\n")
    begin = time.perf_counter()
    found = connect(store, registry="none").ingest(_TABLE, source)
    seconds = time.perf_counter() - begin
    if (found.ingested, found.row_count) != (1, 1):
        raise AssertionError(f"not one row of one source: {found}")
    return seconds


def _page_puts(store: CountingStore) -> list[Request]:
    """The requests that wrote pages of the tree, one each."""
    puts = (served.request for served in store.log if served.request.op is StoreMethod.PUT)
    return [put for put in puts if "/_index/sources/" in put.keys[0]]


def make_known(store: Store, count: int) -> None:
    """A table that knows so many sources, without their rows: pages that were made at once, and a journal with room
    for few more, of sources from all over the tree."""
    connect(store, registry="none").create_table(_TABLE, "id bigint")
    head = OpenTable(LakeCatalog(store), _TABLE).head()
    tree, pages = insert(Tree(), [_record(f"part-{number:08}.csv") for number in range(count)], _no_page, uuid7)
    for page, data in pages.items():
        store.put(head.revision.keys.source_page(page), data)
    waiting = JOURNAL_RECORDS - _NEW // 2
    journal = [_record(f"part-{number * count // waiting:08}-late.csv") for number in range(waiting)]
    tree, pages = insert(tree, journal, _no_page, uuid7)
    if pages:
        raise AssertionError("the journal is full")
    root = replace(head.root, version=1, commit_id="1" * 32, parent_id=head.root.commit_id, sources=tree)
    if head.revision.publish(root) is not None:
        raise AssertionError("the table was changed meanwhile")


def _record(name: str) -> SourceRecord:
    return SourceRecord(f"s3://bucket/folder/{name}", "etag", 1, "done", "ingest-0", 1)


def _no_page(refs: Sequence[PageRef]) -> list[bytes]:
    raise AssertionError(f"there is no page to be read yet: {refs}")
