"""import and sync, in words and as JSON."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.cli.command import underlay
from underlay.api.lake import Lake


def put(folder: Path, name: str, ids: list[int]) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": ids}), path)


def test_a_table_of_another_system_is_imported_and_followed(lake: Lake, tmp_path: Path):
    put(tmp_path / "t", "year=2024/a.parquet", [1, 2])
    run = underlay("import", "a.hive", f"hive:{tmp_path}/t")
    assert (run.code, "1 file and 2 rows" in run.words) == (0, True)
    assert "has everything" in underlay("sync", "a.hive").words
    put(tmp_path / "t", "year=2025/b.parquet", [3])
    assert "1 file added and 0 removed, 1 row added and 0 deleted" in underlay("sync", "a.hive").words
    (found,) = underlay("sync", "a.hive", "--json").objects
    assert (found["is_new"], found["version"], found["table"]) == (False, 2, "a.hive")
    (found,) = underlay("import", "a.again", f"hive:{tmp_path}/t", "--json").objects
    assert (found["rows"], found["files"]) == (3, 2)


def test_a_source_and_files_are_told_apart(lake: Lake, tmp_path: Path):
    put(tmp_path, "a.parquet", [1])
    table = lake.create_table("a.own", "id bigint")
    table.register(str(tmp_path / "a.parquet"))
    assert "1 file became 1" in underlay("import", "a.own").text
    assert "exists" in underlay("import", "a.own", f"hive:{tmp_path}").words
    assert underlay("import", "a.new", f"hive:{tmp_path}", "other.parquet").code == 2
    assert underlay("import", "a.new", f"hive:{tmp_path}", "--dry-run").code == 2
    assert "was not imported" in underlay("sync", "a.own").words
    assert [one.name for one in lake.tables()] == ["a.own"]
