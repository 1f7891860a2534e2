"""Columns whose values stand in the paths of registered files."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import msgspec
import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.parquet as pq
import pytest

import underlay
from tests.contract.worlds import add_column, delete_positions, drop_column, rename_column, widen_column
from tests.end_to_end.lakes import memory, quick
from tests.maintain.healthy import run
from underlay.errors import SchemaMismatch
from underlay.index.root import FORMAT, WITH_CONSTANTS
from underlay.prune import TRUE
from underlay.scan.portion import Portion, portions, read_portion
from underlay.store.local import LocalStore

NAME = "h.t"
COLUMNS = "id bigint, year int, zone string, day date, rate double, flag boolean, price decimal(30, 2)"
NULL = "__HIVE_DEFAULT_PARTITION__"
ZONES = ["JFK", "a/b c", None, "", "é" * 40, "\U0010ffff" * 20]
RATES = ["-0.0", "0.0", "NaN", "1.5", "-inf", None]
PREDICATES = [
    "year = 2021",
    "year <> 2021",
    "year > 2022 and id < 14",
    "year is null",
    "year is not null and zone is null",
    "not (year < 2023)",
    "year in (2020, 2024, null)",
    "zone = 'JFK'",
    "zone >= 'a' and zone < 'b'",
    "zone = ''",
    f"zone = '{'é' * 40}'",
    f"zone > '{'é' * 39}'",
    "zone like 'J%'",
    "zone is null or rate = 0.0",
    "rate = 0.0",
    "rate < 0",
    "rate > 1",
    "rate = 'NaN'::double",
    "rate <> 1.5",
    "not (rate < 2)",
    "rate >= 0 and rate <= 0",
    "day >= '2024-02-29'",
    "day < '1969-12-31'",
    "flag",
    "not flag",
    "price = 1.50",
    "price < 0",
    "year = 2024 and zone = 'a/b c' and id = 7",
]


def hive(value: object) -> str:
    return NULL if value is None else quote(str(value), safe="")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def lake(tmp_path: Path) -> underlay.Lake:
    return quick(LocalStore(tmp_path / "lake"))


def put(folder: Path, name: str, numbers: range, **columns: list[object]) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(numbers, pa.int64()), **columns}), path, row_group_size=2)
    return path


def put_many(folder: Path, count: int = 12) -> list[dict[str, object]]:
    """Files with all kinds of constants; their rows, with values as text."""
    rows: list[dict[str, object]] = []
    for at in range(count):
        values: dict[str, object] = {
            "year": None if at == 5 else 2020 + at % 6,
            "zone": ZONES[at % len(ZONES)],
            "day": [None, "2024-02-29", "1969-12-30"][at % 3],
            "rate": RATES[at % len(RATES)],
            "flag": [True, False, None][at % 3],
            "price": ["1.50", "-99999999999999999999.99", None][at % 3],
        }
        folders = "/".join(f"{name}={hive(value)}" for name, value in values.items())
        put(folder, f"{folders}/{at}.parquet", range(3 * at, 3 * at + 3))
        rows += [{"id": number, **values} for number in range(3 * at, 3 * at + 3)]
    return rows


def as_table(rows: list[dict[str, object]], schema: pa.Schema) -> pa.Table:
    text = {name: [None if row[name] is None else str(row[name]) for row in rows] for name in schema.names}
    return pa.table({name: pa.array(text[name], pa.string()).cast(schema.field(name).type) for name in schema.names})


def answers(table: underlay.Table, where: str | None = None) -> list[str]:
    return [repr(row) for row in table.scan(where=where).to_arrow().sort_by("id").to_pylist()]


@pytest.fixture
def twin(lake: underlay.Lake, folder: Path) -> tuple[underlay.Table, underlay.Table]:
    """A table of files with constants, and one with the same rows in one block, of which nothing can be dropped."""
    table = lake.create_table(NAME, COLUMNS)
    rows = put_many(folder)
    table.register(folder)
    plain = lake.create_table("h.plain", COLUMNS)
    plain.append(as_table(rows, table.schema))
    return table, plain


def test_the_files_of_a_dataset_of_arrow_have_all_columns(lake: underlay.Lake, folder: Path):
    rows = pa.table({"id": range(12), "year": [2023, 2024] * 6, "zone": ["JFK", "a/b c", None] * 4})
    by = pds.partitioning(pa.schema([("year", pa.int64()), ("zone", pa.string())]), flavor="hive")
    pds.write_dataset(rows, folder, format="parquet", partitioning=by)
    table = lake.create_table(NAME, "id bigint, year bigint, zone string")
    assert table.register(f"{folder}/**/*.parquet").file_count == 6
    assert table.to_arrow().sort_by("id").equals(rows.cast(table.schema))
    assert lake.sql("select count(*) from h.t where year = 2024 and zone is null").to_arrow()[0][0].as_py() == 2
    assert table.dataset().to_table(filter=pds.field("zone") == "JFK").num_rows == 4


def test_what_is_pruned_by_constants_is_what_does_not_match(twin: tuple[underlay.Table, underlay.Table]):
    table, plain = twin
    for where in PREDICATES:
        expected = answers(plain, where)
        assert answers(table, where) == expected, where
        assert table.count(where) == len(expected), where


def test_files_are_dropped_by_their_constants(twin: tuple[underlay.Table, underlay.Table]):
    table, _ = twin
    for where, files in [
        ("year = 2021", 2),
        ("zone is null", 2),
        ("price < 0", 4),
        ("rate > 2", 2),
        ("day is null", 4),
    ]:
        assert table.plan(where=where).kept.files == files, where
    assert table.plan(where="year = 2024 and zone = 'nowhere'").kept.files == 0
    assert (table.plan().minimum("year").as_py(), table.plan().maximum("year").as_py()) == (2020, 2025)


def test_constants_stay_through_flushes_merges_and_deletes(lake: underlay.Lake, folder: Path):
    table = lake.create_table(NAME, "id bigint, year int", sort_by=["year"])
    for at in range(24):
        put(folder, f"year={2000 + at % 3}/{at}.parquet", range(3 * at, 3 * at + 3))
    table.register(folder / "year=2000", folder / "year=2001")
    assert table.snapshot().root.format == WITH_CONSTANTS
    for at in range(8):
        table.append(pa.table({"id": [1000 + at], "year": pa.array([1990], pa.int32())}))
        table.register(folder / "year=2002" / f"{3 * at + 2}.parquet")
    names = [file.location for file in table.plan().choices.files()]
    delete_positions(table, {next(at for at, name in enumerate(names) if "year%3D2001" in name): [0, 2]})
    assert table.count("year = 2000") == 24
    assert table.count("year = 2001") == 22
    assert table.scan(["id"], where="year = 2002").to_arrow().num_rows == 24
    assert not run(table.stores.lake, NAME, deep=True).findings


def test_a_large_registration_has_constants_in_its_segment(lake: underlay.Lake, folder: Path):
    table = lake.create_table(NAME, "id bigint, zone string not null", partition_by=["zone"])
    for at in range(70):
        put(folder, f"zone=z{at % 7}/{at}.parquet", range(at, at + 1))
    table.register(folder)
    assert table.snapshot().root.segments
    assert not table.snapshot().root.tail
    assert table.plan(where="zone = 'z3'").kept.files == 10
    assert set(table.scan(["zone"], where="zone >= 'z5'").to_arrow()["zone"].to_pylist()) == {"z5", "z6"}
    assert not run(table.stores.lake, NAME, deep=True).findings


def test_deep_verification_knows_constants(twin: tuple[underlay.Table, underlay.Table]):
    assert not run(twin[0].stores.lake, NAME, deep=True).findings


def test_a_table_without_constants_stays_readable_for_older_releases(lake: underlay.Lake, folder: Path):
    table = lake.create_table(NAME, "id bigint")
    table.register(put(folder, "a.parquet", range(3)))
    assert table.snapshot().root.format == FORMAT


def test_a_portion_carries_constants(twin: tuple[underlay.Table, underlay.Table]):
    table, plain = twin
    sent = [
        msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=Portion)
        for one in portions(table.query(None, None), target_bytes=1)
    ]
    batches = [batch for one in sent for batch in read_portion(one, table.stores, TRUE)]
    found = pa.Table.from_batches(batches).sort_by("id")
    assert [repr(row) for row in found.to_pylist()] == answers(plain)


def test_a_column_that_is_renamed_or_widened_keeps_its_constants(lake: underlay.Lake, folder: Path):
    table = lake.create_table(NAME, "id bigint, year int, rate float, gone string")
    put(folder, "year=2024/rate=0.1/gone=x/a.parquet", range(2))
    table.register(folder)
    widen_column(table, "year", "int64")
    widen_column(table, "rate", "float64")
    rename_column(table, "year", "jahr")
    drop_column(table, "gone")
    add_column(table, "gone", "string")
    (row, _) = table.to_arrow().to_pylist()
    single = pa.scalar(0.1, pa.float32()).as_py()
    assert row == {"id": 0, "jahr": 2024, "rate": single, "gone": None}
    for where, count in [("jahr = 2024", 2), ("rate = 0.1", 0), ("rate > 0.1", 2), ("gone = 'x'", 0)]:
        assert table.count(where) == table.scan(where=where).to_arrow().num_rows == count, where


def test_names_match_in_any_case(lake: underlay.Lake, folder: Path):
    table = lake.create_table(NAME, "id bigint, Year int")
    put(folder, "YEAR=2024/a.parquet", range(2))
    table.register(folder)
    assert table.count("Year = 2024") == 2


def test_folders_can_be_left_alone(lake: underlay.Lake, folder: Path):
    table = lake.create_table(NAME, "id bigint, year int")
    put(folder, "year=2024/other=1/a.parquet", range(2))
    table.register(folder, hive=False)
    assert table.scan(["year"]).to_arrow()["year"].to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("columns", "name", "problem"),
    [
        ("id bigint, year int", "year=20x4", "year is int32 in the table and '20x4' in the path"),
        ("id bigint, year int", "year=", "and '' in the path"),
        ("id bigint, year int not null", f"year={NULL}", "required in the table and null"),
        ("id bigint", "year=2024", "year is in the path and not in the table"),
        ("id bigint, year int", "year=2024/YEAR=2023", "two values"),
        ("id bigint, year array<int>", "year=1", "which a path cannot give"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_file_and_changes_nothing(
    lake: underlay.Lake, folder: Path, columns: str, name: str, problem: str
):
    table = lake.create_table(NAME, columns)
    path = put(folder, f"{name}/a.parquet", range(2))
    good = put(folder, "good.parquet", range(2))
    with pytest.raises(SchemaMismatch) as raised:
        table.register(good, path)
    assert problem in str(raised.value)
    assert "a.parquet" in str(raised.value)
    assert table.snapshot().version == 0


def test_a_name_that_the_table_lacks_may_be_ignored(lake: underlay.Lake, folder: Path):
    table = lake.create_table(NAME, "id bigint")
    put(folder, "year=2024/a.parquet", range(2))
    assert table.register(folder, ignore_surplus=True).row_count == 2


def test_a_path_gives_a_required_column(lake: underlay.Lake, folder: Path):
    table = lake.create_table(NAME, "id bigint, year int not null")
    put(folder, "year=2024/a.parquet", range(2))
    table.register(folder)
    assert table.to_arrow()["year"].to_pylist() == [2024, 2024]


@pytest.mark.parametrize(("values", "fits"), [([2024, 2024], True), ([2024, 2023], False), ([2024, None], False)])
def test_a_column_in_path_and_file_must_be_the_same(
    lake: underlay.Lake, folder: Path, values: list[object], fits: bool
):
    table = lake.create_table(NAME, "id bigint, year int")
    put(folder, "year=2024/a.parquet", range(2), year=pa.array(values, pa.int32()))
    if fits:
        table.register(folder)
        assert table.snapshot().root.format == FORMAT
    else:
        with pytest.raises(SchemaMismatch, match="also in the file"):
            table.register(folder)
        table.register(folder, hive=False)
    assert table.to_arrow()["year"].to_pylist() == values


def test_objects_of_a_remote_store_have_constants():
    store = memory()
    table = quick(store).create_table(NAME, "id bigint, zone string")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1, 2]}), sink)
    store.put("in/zone=a%20b/x.parquet", sink.getvalue().to_pybytes())
    table.register(f"{store.url}/in/")
    assert table.to_arrow()["zone"].to_pylist() == ["a b", "a b"]
