"""Columns whose values stand in the paths of sources."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay
from tests.end_to_end.lakes import memory, quick
from underlay.ingest.run.dry_run import dry_run
from underlay.ingest.work.settings import make_settings
from underlay.store import Store
from underlay.table.catalog.lake import LakeCatalog

NAME = "h.t"


@pytest.fixture
def store() -> Store:
    return memory()


@pytest.fixture
def lake(store: Store) -> underlay.Lake:
    return quick(store)


def put(folder: Path, name: str, *numbers: int) -> Path:
    """A source with these ids, of the kind that its name says."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    match path.suffix:
        case ".parquet":
            pq.write_table(pa.table({"id": numbers}), path)
        case ".csv":
            path.write_text("id\n" + "".join(f"{number}\n" for number in numbers))
        case _:
            path.write_text("".join(json.dumps({"id": number}) + "\n" for number in numbers))
    return path


def rows_of(lake: underlay.Lake) -> list[dict[str, object]]:
    found: list[dict[str, object]] = lake.table(NAME).to_arrow().sort_by("id").to_pylist()
    return found


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_a_new_table_has_the_columns_of_paths_with_types_that_hold_all(lake: underlay.Lake, tmp_path: Path, kind: str):
    put(tmp_path, f"year=2024/code=01/day=2024-02-29/zone=a%2Fb/x.{kind}", 1)
    put(tmp_path, f"year=2023/code=2/day=2024-01-01/zone=__HIVE_DEFAULT_PARTITION__/x.{kind}", 2)
    done = lake.ingest(NAME, f"{tmp_path}/")
    assert (done.ingested, done.row_count, done.rejected_count) == (2, 2, 0)
    assert rows_of(lake) == [
        {"id": 1, "year": 2024, "code": "01", "day": date(2024, 2, 29), "zone": "a/b"},
        {"id": 2, "year": 2023, "code": "2", "day": date(2024, 1, 1), "zone": None},
    ]


def test_values_have_the_types_of_the_table(lake: underlay.Lake, tmp_path: Path):
    lake.create_table(NAME, "Year int not null, id bigint, rate double")
    put(tmp_path, "year=07/rate=1e3/x.csv", 1)
    put(tmp_path, "year=20x4/x.csv", 2)
    put(tmp_path, "year=__HIVE_DEFAULT_PARTITION__/x.csv", 3)
    done = lake.ingest(NAME, f"{tmp_path}/")
    assert (done.ingested, done.failed) == (1, 2)
    reasons = sorted(failure.reason for failure in done.failures)
    assert "required, and null" in reasons[0]
    assert "20x4" in reasons[1]
    assert rows_of(lake) == [{"Year": 7, "id": 1, "rate": 1000.0}]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("error", None), ("ignore", {"id": 1}), ("add", {"id": 1, "year": 2024})],
)
def test_a_name_that_the_table_lacks_is_a_new_column(
    lake: underlay.Lake, tmp_path: Path, policy: str, expected: dict[str, object] | None
):
    lake.create_table(NAME, "id bigint")
    put(tmp_path, "year=2024/x.csv", 1)
    done = lake.ingest(NAME, f"{tmp_path}/", new_columns=policy)
    assert done.failed == (expected is None)
    assert rows_of(lake) == ([] if expected is None else [expected])


def test_folders_can_be_left_alone(lake: underlay.Lake, tmp_path: Path):
    put(tmp_path, "year=2024/x.csv", 1)
    lake.ingest(NAME, f"{tmp_path}/", hive=False)
    assert rows_of(lake) == [{"id": 1}]


@pytest.mark.parametrize(("text", "fails"), [("2024", False), ("", False), ("2023", True)])
def test_a_column_in_path_and_source_must_be_the_same(lake: underlay.Lake, tmp_path: Path, text: str, fails: bool):
    lake.create_table(NAME, "id bigint, year int default 1999")
    path = put(tmp_path, "year=2024/x.csv", 1)
    path.write_text(f"id,year\n1,{text}\n")
    done = lake.ingest(NAME, f"{tmp_path}/")
    assert done.failed == fails
    assert rows_of(lake) == ([] if fails else [{"id": 1, "year": 2024}])


def test_a_file_without_a_header_has_the_other_columns(lake: underlay.Lake, tmp_path: Path):
    lake.create_table(NAME, "id bigint, year int, name string")
    path = put(tmp_path, "year=2024/x.csv")
    path.write_text("1,a\n2,b\n")
    lake.ingest(NAME, f"{tmp_path}/", dialect={"has_header": False})
    assert rows_of(lake) == [{"id": 1, "year": 2024, "name": "a"}, {"id": 2, "year": 2024, "name": "b"}]


def test_a_dry_run_tells_the_columns_of_paths(lake: underlay.Lake, store: Store, tmp_path: Path):
    put(tmp_path, "year=2024/x.csv", 1)
    catalog = LakeCatalog(store)
    plan = dry_run(catalog, NAME, make_settings(f"{tmp_path}/"))
    assert plan.columns is not None
    assert plan.columns.names == ["id", "year"]
    lake.create_table(NAME, "id bigint, year int")
    put(tmp_path, "year=x/more=1/x.csv", 2)
    again = dry_run(catalog, NAME, make_settings(f"{tmp_path}/"))
    assert [problem.uri.rpartition("year%3D")[2] for problem in again.problems] == ["x/more%3D1/x.csv"]


def test_a_file_without_a_header_brings_the_new_columns_of_its_path(lake: underlay.Lake, tmp_path: Path):
    lake.create_table(NAME, "id bigint, name string")
    put(tmp_path, "year=2024/x.csv").write_text("1,a\n2,b\n")
    options = {"dialect": {"has_header": False}, "new_columns": "add"}
    assert lake.dry_run(NAME, f"{tmp_path}/", **options).new_columns.names == ["year"]
    done = lake.ingest(NAME, f"{tmp_path}/", **options)
    assert (done.ingested, done.failures) == (1, ())
    assert rows_of(lake) == [{"id": 1, "name": "a", "year": 2024}, {"id": 2, "name": "b", "year": 2024}]


def test_a_dry_run_tells_that_a_file_without_a_header_fails_by_its_path(lake: underlay.Lake, tmp_path: Path):
    lake.create_table(NAME, "id bigint, year int")
    put(tmp_path, "year=20x4/x.csv")
    put(tmp_path, "month=1/x.csv")
    put(tmp_path, "year=2024/x.csv")
    plan = lake.dry_run(NAME, f"{tmp_path}/", dialect={"has_header": False})
    assert sorted(Path(problem.uri).parent.name for problem in plan.problems) == ["month%3D1", "year%3D20x4"]


def test_a_source_that_failed_by_its_path_is_read_when_folders_are_left_alone(lake: underlay.Lake, tmp_path: Path):
    lake.create_table(NAME, "id bigint")
    put(tmp_path, "year=2024/x.csv", 1)
    assert lake.ingest(NAME, f"{tmp_path}/").failed == 1
    assert lake.ingest(NAME, f"{tmp_path}/", hive=False).ingested == 1
    assert rows_of(lake) == [{"id": 1}]
