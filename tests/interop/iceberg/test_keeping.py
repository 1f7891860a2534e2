"""Exports beside the life of a table: after commits, and while versions expire and are swept."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

import underlay as ul
from tests.interop.engines import ask_duckdb
from underlay import Lake
from underlay.errors import InvalidRequest
from underlay.table.versions.environment import wait_for_background

COUNT = "select count(*), sum(n) from t"
NOW = timedelta(0)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with ul.connect(tmp_path / "lake", registry="none") as lake:
        yield lake


def folder_of(lake: Lake) -> Path:
    return Path(lake.url.removeprefix("file://")) / "_iceberg/d/t"


def names(lake: Lake) -> set[str]:
    return {path.name for path in (folder_of(lake) / "metadata").iterdir()}


def test_a_table_with_the_property_is_exported_after_each_commit(lake: Lake):
    table = lake.create_table("d.t", "n int", properties={"export": "iceberg"})
    for number in range(3):
        table.append([{"n": number}])
        wait_for_background(60)
        assert ask_duckdb(f"file://{folder_of(lake)}", COUNT) == [(number + 1, sum(range(number + 1)))]
    (status,) = lake.exports()
    assert (status.is_current, status.is_automatic, status.exported_version) == (True, True, 3)


def test_the_last_of_many_commits_is_exported_when_the_lake_is_closed(tmp_path: Path):
    with ul.connect(tmp_path / "lake", registry="none") as lake:
        table = lake.create_table("d.t", "n int", properties={"export": "iceberg"})
        for number in range(10):
            table.append([{"n": number}])
    assert ask_duckdb(f"file://{folder_of(lake)}", COUNT) == [(10, 45)]


def test_a_commit_of_a_table_that_cannot_be_exported_succeeds(lake: Lake, caplog: pytest.LogCaptureFixture):
    table = lake.create_table("d.t", "n int, size uint8", properties={"export": "iceberg"})
    with caplog.at_level(logging.WARNING, "underlay.export"):
        table.append([{"n": 1, "size": 2}])
        wait_for_background(60)
    assert "column size" in caplog.text
    with table.evolve() as change:
        change.set_property("export.without", "size")
    wait_for_background(60)
    assert ask_duckdb(f"file://{folder_of(lake)}", COUNT) == [(1, 1)]


@pytest.mark.parametrize(
    "properties", [{"export": "hudi"}, {"export.without": "nothing"}, {"export.format": "4"}, {"export.without": "n"}]
)
def test_a_property_that_no_export_could_follow_is_refused(lake: Lake, properties: dict[str, str]):
    with pytest.raises(InvalidRequest):
        lake.create_table("d.t", "n int", properties=properties)


def test_an_exporter_that_was_slow_does_not_replace_a_newer_version(lake: Lake):
    table = lake.create_table("d.t", "n int")
    table.append([{"n": 1}])
    old = table._opened.head()
    table.append([{"n": 2}])
    new = table.export()
    from underlay.interop.export.exporting import export_version
    from underlay.interop.exported.settings import ExportSettings

    late = export_version(table._opened.snapshot(old), "d.t", old, "iceberg", ExportSettings())
    assert (late.puts, late.metadata_url) == (0, new.metadata_url)
    assert ask_duckdb(f"file://{folder_of(lake)}", COUNT) == [(2, 3)]


def fill(lake: Lake, *, export_at: int, properties: dict[str, str | int]) -> str:
    """Versions in which files are replaced; one of them is exported."""
    table = lake.create_table("d.t", "n int", sort_by=["n"], properties=properties)
    url = ""
    for number in range(6):
        table.append([{"n": number}])
        if number == export_at:
            url = table.export().metadata_url or ""
        table.compact(order="sort")
    return url


def test_the_newest_export_keeps_its_version(lake: Lake):
    url = fill(lake, export_at=2, properties={"care.reader_age": "0s"})
    table = lake.table("d.t")
    before = ask_duckdb(url, COUNT)
    found = table.expire(NOW, keep=1, dry_run=False)
    assert list(found.exports.values()) == list(found.also_left)
    lake.sweep(NOW, dry_run=False)
    assert ask_duckdb(url, COUNT) == before == [(3, 3)]


def test_an_export_that_was_replaced_keeps_its_version_for_the_reader_age_and_then_fails_whole(lake: Lake):
    url = fill(lake, export_at=2, properties={"care.reader_age": "1h"})
    table = lake.table("d.t")
    table.export()
    assert len(table.expire(NOW, keep=1).exports) == 1
    with table.evolve() as change:
        change.set_property("care.reader_age", "0s")
    found = table.expire(NOW, keep=1, dry_run=False)
    assert len(found.exports) <= 1
    lake.sweep(NOW, dry_run=False)
    with pytest.raises(duckdb.Error):
        ask_duckdb(url, COUNT)
    assert ask_duckdb(f"file://{folder_of(lake)}", COUNT) == [(6, 15)]


def age(lake: Lake, hours: float) -> None:
    """Make all objects of the export look older."""
    import os

    for path in folder_of(lake).rglob("*"):
        stamp = path.stat().st_mtime - hours * 3600
        os.utime(path, (stamp, stamp))


def test_a_sweep_deletes_what_only_old_exports_needed(lake: Lake):
    table = lake.create_table("d.t", "n int")
    for number in range(4):
        table.append([{"n": number}, {"n": -number}])
        table.delete(f"n = -{number}")
        table.export()
        age(lake, 48)
    newest = names(lake)
    found = lake.sweep("1d", dry_run=True)
    assert [one.reason for one in found.folders] == ["old exports"]
    assert names(lake) == newest
    lake.sweep("1d", dry_run=False)
    left = names(lake)
    assert {name for name in left if name.startswith("v")} == {"v4.metadata.json", "version-hint.text"}
    assert len(left) < len(newest)
    assert ask_duckdb(f"file://{folder_of(lake)}", COUNT)[0][0] == len(table)
    table.append([{"n": 9}])
    table.export()
    assert ask_duckdb(f"file://{folder_of(lake)}", COUNT)[0][0] == len(table)


def test_a_sweep_deletes_the_exports_of_a_table_that_was_dropped_and_nothing_of_others(lake: Lake):
    table = lake.create_table("d.t", "n int")
    table.export()
    stranger = folder_of(lake) / "metadata" / "notes.txt"
    stranger.write_text("mine")
    lake.rename_table("d.t", "d.u")
    age(lake, 48)
    lake.sweep("1d", dry_run=False)
    assert names(lake) == {"notes.txt"}


@pytest.mark.parametrize("gone", ["all of it", "the hint", "the manifests"])
def test_an_export_may_be_deleted_at_any_time(lake: Lake, gone: str):
    table = lake.create_table("d.t", "n int")
    for number in range(3):
        table.append([{"n": number}])
    table.export()
    metadata = folder_of(lake) / "metadata"
    deletions: dict[str, Callable[[], object]] = {
        "all of it": lambda: shutil.rmtree(folder_of(lake)),
        "the hint": lambda: (metadata / "version-hint.text").unlink(),
        "the manifests": lambda: [path.unlink() for path in metadata.glob("*.avro")],
    }
    deletions[gone]()
    table.append([{"n": 3}])
    exported = table.export()
    assert ask_duckdb(exported.metadata_url or "", COUNT) == [(4, 6)]
    assert ask_duckdb(exported.url, COUNT) == [(4, 6)]


def test_whoever_wrote_to_the_export_is_named_and_replaced(lake: Lake):
    table = lake.create_table("d.t", "n int")
    table.append([{"n": 1}])
    table.export()
    metadata = folder_of(lake) / "metadata"
    (metadata / "v2.metadata.json").write_text((metadata / "v1.metadata.json").read_text())
    (status,) = lake.exports()
    assert "not written by Underlay" in (status.problem or "")
    exported = table.export()
    assert Path(exported.metadata_url or "").name == "v3.metadata.json"
    assert "v2.metadata.json was not written by Underlay" in exported.notes[0]
    assert ask_duckdb(exported.url, COUNT) == [(1, 1)]
