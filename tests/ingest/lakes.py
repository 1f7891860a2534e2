"""Lakes that sources are ingested into as a user does it, and what is in their tables then."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from tests.ingest.worlds import raw_of, rows_in
from tests.table.entries import surroundings
from underlay.index.root import SourceRecord
from underlay.index.sources.tree import scan_all
from underlay.ingest.run.ingest import ingest
from underlay.ingest.run.summary import Summary
from underlay.ingest.work.progress import IngestProgress
from underlay.ingest.work.settings import Options, make_settings
from underlay.ingest.work.workers import LocalWorkers, MakeWorkers
from underlay.store import Store, open_store
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.open_table import OpenTable

NAME = "taxi.trips"
COLUMNS = "id bigint not null, fare double, day date, note string"
HEADER = "id,fare,day,note\n"


def memory_lake() -> LakeCatalog:
    return lake_at(open_store(f"memory://{os.urandom(6).hex()}"))


def lake_at(store: Store, **given: object) -> LakeCatalog:
    """The lake as a new process sees it."""
    return LakeCatalog(store, surroundings(**given))


def run(
    lake: LakeCatalog,
    sources: str | Path | Sequence[str | Path],
    *,
    workers: MakeWorkers | None = None,
    progress: IngestProgress | None = None,
    **options: Unpack[Options],
) -> Summary:
    """Ingest into the table, with one thread and the columns above unless said otherwise."""
    options = {"columns": COLUMNS, **options}
    make = workers or (lambda size, count: LocalWorkers(lake.store, progress=progress, parallelism=1))
    return ingest(lake, NAME, make_settings(sources, **options), workers=make, progress=progress)


def write_csv(folder: Path, name: str, ids: Sequence[int], bad: Sequence[str] = ()) -> Path:
    """A source with a row for each id, and then lines as they are."""
    rows = "".join(f"{id_},{id_ / 4},2024-01-{id_ % 28 + 1:02},n{id_}\n" for id_ in ids)
    path = folder / name
    path.write_text(HEADER + rows + "".join(f"{line}\n" for line in bad))
    return path


def rows(lake: LakeCatalog, name: str = NAME) -> list[dict[str, object]]:
    """All rows, as a new process sees them."""
    return rows_in(OpenTable(lake_at(lake.store), name))


def ids(lake: LakeCatalog) -> list[int]:
    return sorted(int(str(row["id"])) for row in rows(lake))


def rejected(lake: LakeCatalog) -> list[tuple[str, object, object]]:
    """File name, line and bytes of every rejected row."""
    if f"{NAME}_rejected" not in lake_at(lake.store).catalog().tables:
        return []
    found = [
        (str(row["source"]).rpartition("/")[2], row["line"], raw_of(row)) for row in rows(lake, f"{NAME}_rejected")
    ]
    return sorted(found, key=str)


def records(lake: LakeCatalog) -> dict[str, SourceRecord]:
    """What the table remembers, by file name."""
    table = OpenTable(lake_at(lake.store), NAME)
    snapshot = table.snapshot(table.head())
    found = scan_all(snapshot.root.sources, snapshot.fetch_pages)
    return {record.uri.rpartition("/")[2]: record for record in found}


def data_files(lake: LakeCatalog) -> list[str]:
    """Objects that are Parquet files, whether a version names them or not."""
    return [found.key for found in lake.store.list_objects("taxi/trips") if found.key.endswith(".parquet")]
