"""Tables exported to Delta, read by deltalake, DuckDB and Polars."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

import underlay as ul
from tests.interop import everything
from tests.interop.engines import DELTA_ENGINES, Kept, ask_delta, plain
from underlay import Lake
from underlay.api.table import Table
from underlay.errors import InvalidRequest, NotExportable

COUNT = "select count(*), sum(n) from t"
LEFT_OUT = ("u", "gone")


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with ul.connect(tmp_path / "lake", registry="none") as lake:
        yield lake


def path_of(lake: Lake, name: str = "d/t") -> str:
    return f"{lake.url.removeprefix('file://').replace('%20', ' ')}/{name}"


def log_of(lake: Lake) -> list[dict[str, object]]:
    """All actions of the log."""
    entries = sorted(Path(path_of(lake), "_delta_log").glob("*.json"))
    return [json.loads(line) for entry in entries for line in entry.read_text().splitlines()]


def rules_of(table: Table) -> set[str]:
    with pytest.raises(NotExportable) as raised:
        table.export("delta")
    return {one.rule for one in raised.value.refusals}


@pytest.mark.parametrize("engine", DELTA_ENGINES)
def test_every_engine_answers_what_underlay_answers(tmp_path: Path, engine: str):
    with ul.connect(tmp_path / "lake", registry="none") as lake:
        columns = everything.COLUMNS.replace("zone string", "area string")
        table = lake.create_table(everything.NAME, columns, key=["id"], partition_by=["month(pickup)"])
        for first in (0, 100, 200):
            table.append(everything.rows(first, 40, table.schema, zone="area"))
            table.delete(f"id in ({first + 3}, {first + 17})")
            exported = table.export("delta", without=LEFT_OUT)
        assert sorted(exported.left_out) == sorted(LEFT_OUT)
        wrong, kept = {}, Kept()
        for query in everything.QUESTIONS:
            if "uuid" in query:
                continue
            found = plain(DELTA_ENGINES[engine](path_of(lake, "taxi/trips"), query, kept))
            wanted = plain(everything.expected(lake, query))
            if str(found) != str(wanted):
                wrong[query] = f"{found} and not {wanted}"
        assert wrong == {}


def test_an_export_adds_only_what_changed(lake: Lake):
    table = lake.create_table("d.t", "n int")
    for number in range(3):
        table.append([{"n": number}, {"n": -number}])
        assert table.export("delta").puts == 1
        assert table.export("delta").puts == 0
    actions = log_of(lake)
    assert sum("add" in one for one in actions) == 3
    assert sum("metaData" in one for one in actions) == 1
    table.delete("n = -2")
    table.export("delta")
    added, removed = (
        [one["add"] for one in log_of(lake) if "add" in one],
        [one for one in log_of(lake) if "remove" in one],
    )
    assert (len(added), len(removed)) == (4, 1)
    assert added[-1]["deletionVector"]["cardinality"] == 1  # type: ignore[index]
    assert ask_delta(path_of(lake), COUNT) == [(5, 2)]


def test_a_log_is_read_from_its_last_checkpoint(lake: Lake):
    table = lake.create_table("d.t", "n int not null, s string", comment="Numbers")
    for number in range(23):
        table.append([{"n": number, "s": "x"}])
        if number == 4:
            table.delete("n = 2")
        table.export("delta")
    log = Path(path_of(lake), "_delta_log")
    assert (log / "00000000000000000020.checkpoint.parquet").exists()
    for entry in log.glob("0000000000000000000[0-9].json"):
        entry.unlink()
    for ask in DELTA_ENGINES.values():
        assert ask(path_of(lake), COUNT) == [(22, sum(range(23)) - 2)]
    table.append([{"n": 100, "s": "y"}])
    assert table.export("delta").puts == 1
    assert ask_delta(path_of(lake), COUNT) == [(23, sum(range(23)) - 2 + 100)]


def test_x9_registered_files_are_refused_and_none_is_skipped(lake: Lake, tmp_path: Path):
    table = lake.create_table("d.t", "n int")
    table.append([{"n": 1}])
    pq.write_table(pa.table({"n": pa.array([2], pa.int32())}), tmp_path / "other.parquet")
    table.register(str(tmp_path / "other.parquet"))
    assert rules_of(table) == {"X9"}
    table.import_files()
    table.export("delta")
    for ask in DELTA_ENGINES.values():
        assert ask(path_of(lake), COUNT) == [(2, 3)]


def test_x12_required_columns_are_declared(lake: Lake):
    table = lake.create_table("d.t", "n int not null")
    table.append([{"n": 1}])
    table.export("delta")
    (protocol,) = [one["protocol"] for one in log_of(lake) if "protocol" in one]
    assert "invariants" in protocol["writerFeatures"]  # type: ignore[index]


def test_renames_defaults_and_wider_types_are_refused(lake: Lake):
    table = lake.create_table("d.t", "a int, b int", sort_by=["b"])
    table.append([{"a": 1, "b": 2}])
    with table.evolve() as change:
        change.rename_column("a", "c")
    assert rules_of(table) == {"names"}
    with table.evolve() as change:
        change.widen_column("c", "bigint")
        change.add_column("d", "int", default=4)
    assert rules_of(table) == {"names", "X6"}
    table.compact(order="sort")
    table.export("delta")
    assert ask_delta(path_of(lake), "select b, c, d from t") == [(2, 1, 4)]


def test_files_with_deleted_rows_and_with_nan_have_no_bounds(lake: Lake):
    table = lake.create_table("d.t", "n int, f double")
    table.append([{"n": n, "f": math.nan if n == 2 else float(n)} for n in range(1, 5)])
    table.export("delta")
    table.delete("n = 1")
    table.export("delta")
    first, last = [json.loads(one["add"]["stats"]) for one in log_of(lake) if "add" in one]  # type: ignore[index]
    assert (first["minValues"], first["maxValues"]) == ({"n": 1}, {"n": 4})
    assert (last["minValues"], last["tightBounds"]) == ({}, False)
    for ask in DELTA_ENGINES.values():
        assert ask(path_of(lake), "select min(n), max(n) from t") == [(2, 4)]
        assert ask(path_of(lake), "select count(*) from t where n > 3") == [(1,)]


def test_writers_refuse_a_feature_that_they_do_not_know(lake: Lake):
    table = lake.create_table("d.t", "n int")
    table.append([{"n": 1}])
    table.export("delta")
    files = {one: one.stat().st_mtime_ns for one in Path(path_of(lake)).rglob("*.parquet")}
    known = DeltaTable(path_of(lake))
    for act in (
        lambda: known.delete("n = 1"),
        lambda: known.optimize.compact(),
        lambda: known.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True),
    ):
        with pytest.raises(DeltaError):
            act()
    assert {one: one.stat().st_mtime_ns for one in Path(path_of(lake)).rglob("*.parquet")} == files
    with pytest.raises(InvalidRequest, match="--to"):
        table.export("delta", to="/elsewhere")


def test_the_newest_export_keeps_its_version(lake: Lake):
    from datetime import timedelta

    table = lake.create_table("d.t", "n int", sort_by=["n"], properties={"care.reader_age": "0s"})
    for number in range(4):
        table.append([{"n": number}])
        if number == 1:
            table.export("delta")
        table.compact(order="sort")
    table.expire(timedelta(0), keep=1, dry_run=False)
    lake.sweep(timedelta(0), dry_run=False)
    assert ask_delta(path_of(lake), COUNT) == [(2, 1)]
    exported = table.export("delta")
    table.expire(timedelta(0), keep=1, dry_run=False)
    lake.sweep(timedelta(0), dry_run=False)
    for ask in DELTA_ENGINES.values():
        assert ask(path_of(lake), COUNT) == [(4, 6)]
    (_, status) = lake.exports()
    assert (status.kind, status.is_current, status.exported_version) == ("delta", False, exported.version)


def test_a_dropped_log_and_another_revision_begin_again(lake: Lake):
    import shutil

    table = lake.create_table("d.t", "n int")
    table.append([{"n": 1}])
    table.export("delta")
    shutil.rmtree(Path(path_of(lake), "_delta_log"))
    table.export("delta")
    assert ask_delta(path_of(lake), COUNT) == [(1, 1)]
    again = lake.create_table("d.t", "n bigint, s string", replaces=table.version)
    again.append([{"n": 5, "s": "x"}, {"n": 6, "s": "y"}])
    again.export("delta")
    for ask in DELTA_ENGINES.values():
        assert ask(path_of(lake), COUNT) == [(2, 11)]


def test_duckdb_reads_no_file_that_is_gone(lake: Lake):
    table = lake.create_table("d.t", "n int")
    table.append([{"n": 1}])
    table.export("delta")
    for one in Path(path_of(lake)).glob("*/*.parquet"):
        one.unlink()
    with pytest.raises(duckdb.Error):
        DELTA_ENGINES["duckdb"](path_of(lake), "select sum(n) from t")
