"""Imported tables follow what Delta Lake does to its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import underlay
from tests.end_to_end.lakes import memory, quick
from tests.interop.imports.delta_tables import NAME, HandWritten, by_duckdb, field, imported, numbers
from tests.interop.imports.rows import sorted_rows
from underlay.errors import (
    NotFound,
    SourceChanged,
    Unsupported,
)


@pytest.fixture
def lake() -> underlay.Lake:
    return quick(memory())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a table"


def test_a_sync_takes_appends_deletes_overwrites_and_optimisations(lake: underlay.Lake, folder: Path) -> None:
    write_deltalake(folder, numbers(0, 10))
    table = imported(lake, folder)
    write_deltalake(folder, numbers(10, 20), mode="append")
    write_deltalake(folder, numbers(20, 30), mode="append")
    done = table.sync()
    assert (done.is_new, done.files_added, done.rows_added, done.source_version) == (True, 2, 20, 2)
    DeltaTable(folder).delete("id = 3")
    assert table.sync().rows_deleted == 10  # the file was rewritten
    assert sorted_rows(table) == sorted_rows(by_duckdb(folder))
    DeltaTable(folder).optimize.compact()
    done = table.sync()
    assert (done.files_added, done.files_removed) == (1, 3)
    write_deltalake(folder, numbers(50, 51), mode="overwrite")
    versions = table.version
    assert table.sync().version == versions + 1
    assert sorted_rows(table) == sorted_rows(numbers(50, 51))
    assert not table.sync().is_new
    assert table.version == versions + 1
    assert next(iter(table.history())).operation == "sync"
    assert next(iter(table.history())).counts["source_version"] == 5


def test_old_versions_stay_readable_after_a_sync(lake: underlay.Lake, folder: Path) -> None:
    write_deltalake(folder, numbers(0, 10))
    table = imported(lake, folder)
    first = table.version
    write_deltalake(folder, numbers(90, 91), mode="overwrite")
    table.sync()
    assert sorted_rows(lake.table(NAME, version=first)) == sorted_rows(numbers(0, 10))
    changed = table.changes(first).to_arrow()
    assert sorted(changed["_change"].to_pylist()) == ["delete"] * 10 + ["insert"]


def test_columns_that_are_added_are_null_in_old_files(lake: underlay.Lake, folder: Path) -> None:
    write_deltalake(folder, numbers(0, 3))
    table = imported(lake, folder)
    write_deltalake(
        folder, numbers(3, 5).append_column("more", pa.array([[{"x": 1}], []])), mode="append", schema_mode="merge"
    )
    table.sync()
    assert sorted_rows(table) == sorted_rows(by_duckdb(folder))
    write_deltalake(folder, numbers(5, 6).append_column("extra", pa.array([1.5])), mode="append", schema_mode="merge")
    table.sync()
    assert sorted_rows(table) == sorted_rows(by_duckdb(folder))
    assert table.scan(where="more is null and extra is null").count() == 3


@pytest.mark.parametrize("mode", ["name", "id"])
def test_renamed_and_dropped_columns(lake: underlay.Lake, folder: Path, mode: str) -> None:
    def written(begin: int, end: int) -> pa.Table:
        fields = [
            pa.field("col-a", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("col-b", pa.struct([pa.field("col-c", pa.string(), metadata={"PARQUET:field_id": "3"})]),
                metadata={"PARQUET:field_id": "2"}),
        ]  # fmt: skip
        columns = [list(range(begin, end)), [{"col-c": f"n{one}"} for one in range(begin, end)]]
        return pa.table([pa.array(one, f.type) for one, f in zip(columns, fields, strict=True)], pa.schema(fields))

    inner = {"type": "struct", "fields": [field("x", "string", 3, "col-c")]}
    made = HandWritten(folder, [field("id", "long", 1, "col-a"), field("s", inner, 2, "col-b")], mode=mode)
    made.commit(made.add("a.parquet", written(0, 5)))
    table = imported(lake, folder)
    before = {one.name: one.id for one in table.definition.schema.fields}
    inner = {"type": "struct", "fields": [field("z", "string", 3, "col-c")]}
    swapped = [field("s", "long", 1, "col-a"), field("id", inner, 2, "col-b"), field("new", "long", 4, "col-d")]
    made.commit(made.metadata(swapped, mode=mode), made.add("b.parquet", written(5, 9)))
    table.sync()
    assert sorted_rows(table) == sorted_rows(by_duckdb(folder))
    after = {one.name: one.id for one in table.definition.schema.fields}
    assert (after["s"], after["id"]) == (before["id"], before["s"])
    made.commit(made.metadata([field("a", inner, 2, "col-b"), field("s", "long", 7, "col-e")], mode=mode))
    table.sync()
    assert sorted_rows(table) == sorted_rows(by_duckdb(folder))
    assert table.scan(where="s is null").count() == 9, "the new s is not the old one"


def test_a_vacuumed_file_is_named(lake: underlay.Lake, folder: Path) -> None:
    write_deltalake(folder, numbers(0, 3))
    table = imported(lake, folder)
    write_deltalake(folder, numbers(3, 6), mode="append")
    new = max(folder.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    kept = new.read_bytes()
    new.unlink()
    with pytest.raises(NotFound, match="a file of the source is missing") as error:
        table.sync()
    assert new.name in str(error.value)
    assert len(table) == 3
    new.write_bytes(kept)
    assert table.sync().rows_added == 3


def test_another_table_and_another_history_are_refused(lake: underlay.Lake, folder: Path, tmp_path: Path) -> None:
    for at in range(3):
        write_deltalake(folder, numbers(at, at + 1), mode="append")
    old = tmp_path / "backup"
    shutil.copytree(folder, old)
    write_deltalake(folder, numbers(3, 4), mode="append")
    table = imported(lake, folder)
    shutil.rmtree(folder / "_delta_log")
    shutil.copytree(old, folder, dirs_exist_ok=True)
    with pytest.raises(SourceChanged, match="rolled back"):
        table.sync()
    write_deltalake(folder, numbers(30, 40), mode="append")
    write_deltalake(folder, numbers(40, 50), mode="append")
    with pytest.raises(SourceChanged, match="another history"):
        table.sync()
    shutil.rmtree(folder / "_delta_log")
    for at in range(9):
        write_deltalake(folder, numbers(at, at + 1), mode="append")
    with pytest.raises(SourceChanged, match="another table"):
        table.sync()
    assert sorted_rows(table) == sorted_rows(numbers(0, 4))


def test_restore_in_delta_is_a_new_version_that_is_followed(lake: underlay.Lake, folder: Path) -> None:
    for at in range(3):
        write_deltalake(folder, numbers(at, at + 1), mode="append")
    table = imported(lake, folder)
    DeltaTable(folder).restore(0)
    table.sync()
    assert sorted_rows(table) == sorted_rows(by_duckdb(folder)) == sorted_rows(numbers(0, 1))


def test_own_rows_stay_and_changed_imported_files_are_refused(lake: underlay.Lake, folder: Path) -> None:
    write_deltalake(folder, numbers(0, 5))
    table = imported(lake, folder)
    table.append(numbers(100, 102))
    write_deltalake(folder, numbers(5, 7), mode="append")
    table.sync()
    assert sorted_rows(table) == sorted_rows(pa.concat_tables([numbers(0, 7), numbers(100, 102)]))
    version = table.version
    changes = {
        "delete": lambda: table.delete("id = 1"),
        "copy": lambda: table.import_files(),
        "unregister": lambda: table.unregister(f"{folder}/"),
        "columns": lambda: lake.sql(f"alter table {NAME} rename column name to label"),
    }
    write_deltalake(folder, numbers(7, 8), mode="append")
    for what, change in changes.items():
        change()
        with pytest.raises(SourceChanged, match="changed here"):
            table.sync()
        assert next(iter(table.history())).operation != "sync", what
        table.rollback(version)
    assert table.sync().rows_added == 1
    table.delete("id >= 100")
    assert not table.sync().is_new


def test_a_rollback_is_undone_by_a_sync(lake: underlay.Lake, folder: Path) -> None:
    write_deltalake(folder, numbers(0, 5))
    table = imported(lake, folder)
    first = table.version
    write_deltalake(folder, numbers(5, 7), mode="append")
    table.sync()
    table.rollback(first)
    assert len(table) == 5
    table.sync()
    assert sorted_rows(table) == sorted_rows(numbers(0, 7))


def test_widened_columns_are_followed_and_others_refused(lake: underlay.Lake, folder: Path) -> None:
    features = ["typeWidening"]
    made = HandWritten(folder, [field("id", "integer"), field("f", "float")], features=features)
    made.commit(made.add("a.parquet", pa.table({"id": pa.array([1], pa.int32()), "f": pa.array([0.1], pa.float32())})))
    table = lake.import_table(NAME, f"delta:{folder}")
    made.commit(
        made.metadata([field("id", "long"), field("f", "double")]),
        made.add("b.parquet", pa.table({"id": pa.array([2**40]), "f": pa.array([0.1])})),
    )
    table.sync()
    rows = table.scan().to_arrow().sort_by("id")
    assert rows["id"].to_pylist() == [1, 2**40]
    assert table.scan(where="f > 0.1").count() == 1
    made.commit(made.metadata([field("id", "string"), field("f", "float")]))
    with pytest.raises(Unsupported, match="Column id was int64 and is string"):
        table.sync()
