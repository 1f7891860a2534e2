"""What `bench.ingest` relies on, without Spark: seeded files of every kind, and counts that can exceed their limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.ingest.files import SCHEMA, Sources, make_sources, source_rows
from bench.ingest.known import Cost, add_some

from underlay import connect


@pytest.mark.parametrize(
    "sources",
    [
        Sources(name="plain", kind="csv", files=2, rows=50),
        Sources(name="quoted", kind="csv", files=2, rows=50, is_quoted=True),
        Sources(name="gzip", kind="csv.gz", files=2, rows=50),
        Sources(name="json", kind="jsonl", files=2, rows=50),
        Sources(name="parquet", kind="parquet", files=2, rows=50),
    ],
    ids=lambda sources: sources.name,
)
def test_files_of_every_kind_hold_the_same_rows(tmp_path: Path, sources: Sources):
    make_sources(sources, tmp_path)
    lake = connect(tmp_path / "lake", registry="none")
    summary = lake.ingest("bench.rows", str(tmp_path / sources.pattern), columns=SCHEMA)
    assert (summary.ingested, summary.rejected_count) == (2, 0)
    found = lake.table("bench.rows").scan().to_arrow().sort_by("id")
    assert found.cast(SCHEMA).equals(source_rows(0, sources.row_count))
    assert found.column("note").null_count


def test_one_new_source_among_many_writes_no_page_until_the_journal_is_full(tmp_path: Path):
    cost = add_some(tmp_path, 5_000)
    assert cost.counts["pages written"] == 0
    assert all(cost.met().values())
    assert cost.counts["bytes of these pages"] > 0


def test_a_count_above_its_limit_is_not_met():
    cost = Cost(case="", question="", seconds=[2.0], counts={"jobs": 1}, limits={"seconds": 1.0, "jobs": 1})
    assert cost.met() == {"seconds": False, "jobs": True}
