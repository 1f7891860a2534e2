"""`underlay verify` as people run it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command import installed, underlay
from tests.contract.worlds import World
from tests.maintain.healthy import OTHER, SALES, Truth, build_tiny
from underlay.api.lake import connect
from underlay.store import open_store


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("UNDERLAY_LAKE", str(tmp_path / "lake"))
    world = World(open_store(tmp_path / "lake"))
    build_tiny(world)
    return world


def test_a_sound_lake_is_a_line_for_each_table(world: World):
    done = underlay("verify")
    assert done.code == 0
    assert done.text.splitlines() == [
        f"{OTHER}: 2 versions, 1 file, 1 sidecar: all there",
        f"{SALES}: 4 versions, 3 files, 2 sidecars: all there",
    ]
    assert done.words == "2 tables: nothing is wrong\n"


def test_deep_says_that_rows_were_compared(world: World):
    assert underlay("verify", SALES, "--deep").text.splitlines() == [
        f"{SALES}: 4 versions, 3 files, 2 sidecars: all there, every row compared"
    ]


def test_a_lost_file_is_named_with_the_newest_intact_version(world: World):
    key = Truth(world.store).own_files()[1]
    world.store.delete([key])
    done = underlay("verify")
    assert done.code == 1
    assert done.text.splitlines()[1:] == [
        f"{SALES}: 4 versions, 3 files, 2 sidecars: something is lost; the newest intact version is 1 (of 3);"
        " versions 2–3 cannot be read",
        f"  LOST    {key} (versions 2–3)",
        "          the file is missing",
        "          → Its rows are lost unless there is a copy: put the same bytes back under the same name.",
    ]
    assert done.words.startswith("1 of 2 tables sound. ")
    assert underlay("verify", OTHER).code == 0


def test_a_sidecar_is_rebuilt_when_asked_for(world: World):
    key = Truth(world.store).keys("/_pm/")[0]
    world.store.delete([key])
    done = underlay("verify", SALES)
    assert done.code == 1
    assert "nothing is lost; something must be rebuilt" in done.text
    assert "--repair" in done.words
    done = underlay("verify", SALES, "--repair")
    assert done.code == 0
    assert f"  rebuilt {key} (versions 1–3)" in done.text
    assert underlay("verify", SALES).text.endswith("all there\n")


def test_json_has_the_whole_report(world: World):
    key = Truth(world.store).root_keys[2]
    world.store.put(key, b"damaged")
    done = underlay("verify", "--json")
    assert done.code == 1
    (report,) = done.objects
    assert report["ok"] is False
    assert report["catalog"]["newest_intact"] == 2
    other, sales = report["tables"]
    assert (other["name"], other["ok"], sales["name"], sales["ok"]) == (OTHER, True, SALES, False)
    (revision,) = sales["revisions"]
    assert revision["newest_intact"] == 3
    assert revision["unreadable"] == [{"begin": 2, "end": 3}]
    (finding,) = revision["findings"]
    assert (finding["kind"], finding["severity"], finding["place"]) == ("damaged", "lost", key)
    assert finding["versions"] == [{"begin": 2, "end": 3}]


def test_a_damaged_newest_entry_of_the_catalog_does_not_hide_the_tables(world: World):
    world.lake.create_table("shop.late", pa.schema([("x", pa.int64())]))
    newest = max(key for key in world.keys("_catalog/0"))
    world.store.put(newest, b"{}")
    done = underlay("verify")
    assert done.code == 1
    assert done.text.startswith(
        "catalog: the newest entry, 3, cannot be read; tables are checked as entry 2 has them\n"
    )
    assert f"{SALES}: 4 versions, 3 files, 2 sidecars: all there" in done.text


def test_a_table_that_is_not_there_is_refused(world: World):
    done = underlay("verify", "shop.nothing")
    assert done.code == 3
    assert "there is no table shop.nothing" in done.words


def test_a_place_without_a_lake_is_refused(tmp_path: Path):
    assert underlay("verify", "--lake", tmp_path / "nothing").code == 3


def test_the_command_explains_itself():
    shown = installed("verify", "--help").stdout.decode()
    assert "--deep" in shown
    assert "underlay verify taxi.trips --repair --json" in shown


def test_a_lost_file_that_was_unregistered_is_told_of_older_versions_and_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("UNDERLAY_LAKE", str(tmp_path / "lake"))
    with connect(tmp_path / "lake") as lake:
        table = lake.create_table("a.b", "id bigint")
        for name in ("one", "two"):
            pq.write_table(pa.table({"id": [1]}), tmp_path / f"{name}.parquet")
        table.register(tmp_path / "*.parquet")
        (tmp_path / "one.parquet").unlink()
        lost = underlay("verify")
        assert (lost.code, "LOST" in lost.text) == (1, True)
        table.unregister(tmp_path / "one.parquet")
    done = underlay("verify")
    assert done.code == 0
    assert done.text.splitlines() == [
        "a.b: 3 versions, 2 files: the newest version is intact; version 1 cannot be read",
        f"  older   file://{tmp_path}/one.parquet (version 1)",
        "          the file is missing",
        "          → The newest version does not need it. To read older ones, put the same bytes back under the same"
        " name.",
    ]
    assert done.words == "1 table: nothing is wrong with the newest versions\n"
    (report,) = underlay("verify", "--json").objects
    assert report["ok"] is True
    (table,) = report["tables"]
    assert table["revisions"][0]["unreadable"] == [{"begin": 1, "end": 2}]
