"""Tables exported to Iceberg, read by pyiceberg, DuckDB and Polars."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest

import underlay as ul
from tests.interop import everything
from tests.interop.engines import ENGINES, Kept, ask_duckdb, plain
from underlay import Lake
from underlay.api.table import Table
from underlay.errors import InvalidRequest, NotExportable


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with ul.connect(tmp_path / "a lake", registry="none") as lake:
        yield lake


@pytest.fixture(scope="module")
def all_of_it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lake, Table]]:
    folder = tmp_path_factory.mktemp("everything")
    with ul.connect(folder / "a lake", registry="none") as lake:
        yield lake, everything.make(lake, folder / "in")


@pytest.mark.parametrize("format", [2, 3])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_answers_what_underlay_answers(all_of_it: tuple[Lake, Table], engine: str, format: int):
    lake, table = all_of_it
    exported = table.export("iceberg", format=format, without=["added"] if format == 2 else None)
    assert (exported.format, exported.version) == (format, table.version)
    wrong, kept = {}, Kept()
    for query in everything.QUESTIONS:
        found = plain(ENGINES[engine](exported.metadata_url or "", query, kept))
        wanted = plain(everything.expected(lake, query))
        if str(found) != str(wanted):
            wrong[query] = f"{found} and not {wanted}"
    assert wrong == {}


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("boolean", [True, False]),
        ("tinyint", [-128, 127]),
        ("smallint", [-32768, 32767]),
        ("int", [-(2**31), 2**31 - 1]),
        ("bigint", [-(2**63), 2**63 - 1]),
        ("real", [1.5, -0.0, float("inf")]),
        ("double", [1e300, 5e-324, float("nan")]),
        ("decimal(9, 2)", [Decimal("-0.01"), Decimal("1280.00")]),
        ("decimal(38, 0)", [Decimal(10**37), Decimal(-(10**37))]),
        ("string", ["", "é" * 70, "\U0010ffff" * 40]),
        ("binary", [b"\xff" * 70, b"\x00"]),
        ("fixed(3)", [b"abc", b"\xff\xff\xff"]),
        ("uuid", [UUID(int=2**127).bytes, UUID(int=1).bytes]),
        ("date", [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
        ("time", [datetime.time(23, 59, 59, 999999)]),
        ("timestamp", [datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(2262, 1, 1)]),
        ("timestamp(0)", [datetime.datetime(2024, 1, 1, 0, 0, 7)]),
        ("timestamp(3)", [datetime.datetime(2024, 1, 1, 0, 0, 0, 7000)]),
        ("timestamptz", [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)]),
        ("timestamp(9)", [datetime.datetime(2024, 1, 1)]),
        ("array<int>", [[1, None], []]),
        ("map<string, double>", [[("a", 1.5)], []]),
        ("struct<a: int, b: struct<c: string>>", [{"a": 1, "b": {"c": "x"}}, {"a": None, "b": None}]),
    ],
)
def test_a_column_of_every_type(lake: Lake, type_: str, values: list[object]):
    table = lake.create_table("d.t", f"n int, c {type_}")
    kind = table.schema.field("c").type
    table.append(pa.table({"n": range(len(values) + 1), "c": pa.array([*values, None], kind)}, schema=table.schema))
    exported = table.export()
    assert exported.format == (3 if type_ == "timestamp(9)" else 2)
    for query in ("select c::text from t order by n", "select count(*) from t where c is null"):
        wanted = lake.sql(query.replace("from t", "from d.t t")).to_arrow().to_pylist()
        assert ask_duckdb(exported.metadata_url or "", query) == [tuple(row.values()) for row in wanted]


def test_a_table_without_rows_is_a_table(lake: Lake):
    table = lake.create_table("d.t", "n int not null, s string", key=["n"])
    exported = table.export()
    for ask in ENGINES.values():
        assert ask(exported.metadata_url or "", "select count(*), max(n) from t") == [(0, None)]


def test_an_export_that_is_current_puts_nothing(lake: Lake):
    table = lake.create_table("d.t", "n int", key=["n"])
    table.append([{"n": 1}])
    first, again = table.export(), table.export()
    assert (first.puts, again.puts, again.metadata_url) == (4, 0, first.metadata_url)


def test_engines_find_the_newest_export_in_the_folder(lake: Lake):
    table = lake.create_table("d.t", "n int")
    for number in range(3):
        table.append([{"n": number}])
        exported = table.export()
    metadata = (exported.metadata_url or "").removeprefix("file://")
    hint = Path(metadata).parent / "version-hint.text"
    assert (hint.read_text(), Path(metadata).name) == ("3", "v3.metadata.json")
    assert ask_duckdb(exported.url, "select count(*) from t") == [(3,)]


def test_an_export_to_another_folder_is_a_warehouse_too(lake: Lake, tmp_path: Path):
    table = lake.create_table("d.t", "n int")
    table.append([{"n": 1}, {"n": 2}])
    old = lake.table("d.t", version=0).export(to=str(tmp_path / "house"))
    new = table.export(to=str(tmp_path / "house"))
    assert [ask_duckdb(one.metadata_url or "", "select count(*) from t") for one in (old, new)] == [[(0,)], [(2,)]]
    assert new.url == f"file://{tmp_path}/house/d/t"
    with pytest.raises(InvalidRequest, match="version 0"):
        lake.table("d.t", version=0).export()


def test_engines_elsewhere_find_the_files_below_the_base_url(lake: Lake, tmp_path: Path):
    table = lake.create_table("d.t", "n int")
    table.append([{"n": 1}, {"n": 2}])
    (tmp_path / "mount").symlink_to(tmp_path / "a lake")
    exported = table.export(base_url=f"file://{tmp_path}/mount")
    assert exported.url == f"file://{tmp_path}/mount/_iceberg/d/t"
    assert ask_duckdb(exported.metadata_url or "", "select count(*) from t") == [(2,)]
    assert "a lake" not in Path((exported.metadata_url or "").removeprefix("file://")).read_text()


def test_what_a_dry_run_reports_is_what_an_export_refuses(lake: Lake):
    table = lake.create_table("d.t", "n int, size uint32")
    plan = table.export(dry_run=True)
    with pytest.raises(NotExportable, match="column size") as raised:
        table.export()
    assert (plan.refused, plan.metadata_url) == (raised.value.refusals, None)
    assert table.export(without=["size"]).left_out == {"size": "left out on request"}
    with pytest.raises(InvalidRequest, match="all columns"):
        table.export(without=["size", "n"])


def test_all_tables_are_exported_and_the_refused_one_is_named(lake: Lake):
    lake.create_table("d.good", "n int, extra int")
    lake.create_table("d.bad", "n int, size uint32")
    bad, good = lake.export(without=["extra"])
    assert (good.table, good.refused, list(good.left_out)) == ("d.good", (), ["extra"])
    assert [(one.subject, one.rule) for one in bad.refused] == [("column size", "X5")]
    (status_bad, status_good) = lake.exports()
    assert (status_good.exported_version, status_good.left_out) == (0, ("extra",))
    assert (status_bad.exported_version, [one.rule for one in status_bad.refused]) == (None, ["X5"])


def test_a_lake_in_memory_has_no_files_for_others():
    with ul.connect("memory://export-test", registry="none") as lake:
        table = lake.create_table("d.t", "n int")
        with pytest.raises(InvalidRequest, match="base-url"):
            table.export()
