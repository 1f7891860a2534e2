"""compact, in words and as JSON."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.cli.command import underlay
from underlay.api.lake import Lake
from underlay.api.table import Table


@pytest.fixture
def trips(lake: Lake) -> Table:
    table = lake.create_table("a.trips", "id bigint", sort_by=["id"])
    for number in range(4):
        table.append(pa.table({"id": [number, 100 + number]}))
    table.delete("id = 1")
    return table


def test_a_dry_run_says_why_and_changes_nothing(trips: Table):
    run = underlay("compact", "a.trips", "--dry-run")
    assert run.code == 0
    assert "4 files would be compacted" in run.text
    assert "deleted rows: 1" in run.text
    assert "without --dry-run" in run.words
    assert trips.version == 5


def test_compaction_is_reported(trips: Table):
    run = underlay("compact", "a.trips")
    assert run.code == 0
    assert "version 6, 4 files became 1" in run.text
    assert "1 deleted row dropped" in run.text
    assert "nothing to compact" in underlay("compact", "a.trips").text
    assert trips.count() == 7


def test_an_order_is_a_rewrite(trips: Table):
    (found,) = underlay("compact", "a.trips", "--order", "sort", "--where", "id < 2", "--json").objects
    assert (found["files_before"], found["files_after"]) == (2, 1)
    assert underlay("compact", "a.trips", "--order", "hilbert").code != 0


def test_a_vacuum_needs_yes(trips: Table):
    run = underlay("vacuum", "a.trips", "--older-than", "0s", "--keep", "1")
    assert "4 files would be compacted" in run.text
    assert trips.version == 5
    assert underlay("vacuum", "a.trips", "--yes").code == 0
    assert trips.snapshot().root.file_count == 1
    (found,) = underlay("vacuum", "--json").objects
    assert (found["is_dry_run"], len(found["compacted"])) == (True, 1)


def test_care_does_what_properties_ask_for(trips: Table):
    assert "0 tables looked after" in underlay("care").text
    with trips.evolve() as change:
        change.set_property("care.compact_after_files", 100)
        change.set_property("care.keep_versions", 1)
    (found,) = underlay("care", "--json").objects
    assert [one["compacted"] for one in found["tables"]] == [None]
    assert "1 table looked after" in underlay("care").text
