"""Sources of numbers, and a small ingest of them in process: one source is lines of text, of which `bad…` is rejected.

`at` is called with the name of each step before it is made, so that a test stops there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from tests.table.coordination.owners import no_thread
from tests.table.entries import surroundings
from underlay.change.define.define import define
from underlay.change.rows.append import Appended
from underlay.change.rows.staged import Staged, stage, staging_for
from underlay.ingest.exactly_once.claim import Claims, claim
from underlay.ingest.exactly_once.commit_claimed import SourceOutcome, commit_claimed
from underlay.ingest.exactly_once.ledger import SourceChoice
from underlay.ingest.exactly_once.rejected_table import reject, rejected_rows
from underlay.ingest.exactly_once.run import Run, begin_run
from underlay.ingest.rows.reading import ChangedPolicy, Rejected
from underlay.ingest.source.find import find_sources
from underlay.ingest.source.pinned import open_pinned
from underlay.ingest.source.source import Source
from underlay.prune import TRUE
from underlay.scan.query import Query
from underlay.scan.read.file_stores import FileStores
from underlay.store import Store, open_store
from underlay.store.open import Option
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.catalog.lifecycle import create
from underlay.table.open_table import OpenTable

NAME = "taxi.trips"
COLUMNS = "id bigint not null, _source string"


def memory() -> Store:
    return open_store(f"memory://{os.urandom(6).hex()}")


def new_table(store: Store, columns: str = COLUMNS) -> OpenTable:
    """The table, without rows, as its first process sees it."""
    lake = LakeCatalog(store, surroundings())
    lake.initialise()
    create(lake, NAME, define(columns))
    return opened(store)


def opened(store: Store, name: str = NAME, **given: object) -> OpenTable:
    """The table as another process sees it."""
    return OpenTable(LakeCatalog(store, surroundings(**given)), name)


def write_source(folder: Path, number: int, lines: Sequence[object]) -> str:
    """A source, and its path."""
    path = folder / f"{number:04}.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def begin(table: OpenTable) -> Run:
    return begin_run(table, heartbeat=no_thread())


def read(found: Source, run: str, options: Mapping[str, Option] | None = None) -> tuple[pa.Table, pa.Table]:
    """The rows of a source, and those that are rejected."""
    with open_pinned(found, options) as file:
        lines = file.read().splitlines()
    good = [int(line) for line in lines if not line.startswith(b"bad")]
    bad = [
        Rejected(line=number, offset=None, reason="no number", raw=line)
        for number, line in enumerate(lines, 1)
        if line.startswith(b"bad")
    ]
    rows = pa.table({"id": pa.array(good, pa.int64()), "_source": pa.array([found.uri] * len(good), pa.string())})
    return rows, rejected_rows(found, bad, run, datetime(2026, 1, 1, tzinfo=UTC))


def work(claims: Claims, options: Mapping[str, Option] | None = None) -> tuple[list[Staged], list[SourceOutcome]]:
    """Read and stage what is claimed, and record what is rejected."""
    table, run = claims.run.table, claims.run.id
    taken = [(found, *read(found, run, options)) for found in claims.found]
    names = table.head().root.definition.schema.fields
    rows = pa.concat_tables([good for _, good, _ in taken]).select([field.name for field in names])
    staged = [stage(staging_for(claims.head), table.lake.store, lambda: [rows])]
    reject(claims, pa.concat_tables([bad for *_, bad in taken]))
    outcomes = [
        SourceOutcome(uri=found.uri, row_count=good.num_rows, rejected_count=bad.num_rows) for found, good, bad in taken
    ]
    return staged, outcomes


def ingest(
    table: OpenTable,
    patterns: Sequence[str],
    *,
    policy: ChangedPolicy = "error",
    most: int = 1000,
    options: Mapping[str, Option] | None = None,
) -> list[Appended]:
    """One run over the sources, in as many commits as it takes."""
    found = find_sources(patterns, options)
    run = begin(table)
    done = []
    while True:
        claims = claim(run, found, SourceChoice(policy=policy), most=most)
        if not claims.entries:
            break
        staged, outcomes = work(claims, options)
        done.append(commit_claimed(claims, staged, outcomes))
    run.release()
    return done


def rows_in(table: OpenTable) -> list[dict[str, object]]:
    """All rows, in no order."""
    snapshot = table.snapshot(table.head())
    names = tuple(field.name for field in snapshot.schema.fields)
    query = Query(snapshot=snapshot, columns=names, stores=FileStores(table.lake.store), predicate=TRUE)
    return query.table().to_pylist()


def raw_of(row: Mapping[str, object]) -> bytes:
    """The bytes of a rejected row: those of its text, unless they are none."""
    raw = row["raw_bytes"]
    return raw if isinstance(raw, bytes) else str(row["raw"]).encode()


def ids_in(table: OpenTable) -> list[int]:
    return sorted(int(str(row["id"])) for row in rows_in(table))
