"""Sources whose columns are not the table's: each policy, and what is refused, with the source and the line."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.ingest.lakes import ids, memory_lake, rejected, rows, run
from underlay.errors import InvalidRequest
from underlay.table.catalog.lake import LakeCatalog

COLUMNS = "id bigint not null, fare double, kind string default 'none'"


@pytest.fixture
def lake() -> LakeCatalog:
    return memory_lake()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sources with a column more, and one without."""
    (tmp_path / "a.csv").write_text("id,fare\n1,0.5\n")
    (tmp_path / "b.csv").write_text("id,tip,day\n2,3,2024-01-01\n")
    (tmp_path / "c.jsonl").write_text('{"id": 3}\n' * 30_000 + '{"id": 4, "tip": 1.5, "late": [true]}\n')
    pq.write_table(
        pa.table({"id": pa.array([5], pa.int32()), "tip": pa.array([7], pa.int16())}), tmp_path / "d.parquet"
    )
    return tmp_path


def test_a_new_column_fails_its_source_and_no_other(lake: LakeCatalog, folder: Path):
    done = run(lake, f"{folder}/*", columns=COLUMNS)
    assert (done.ingested, ids(lake)) == (1, [1])
    assert [(one.uri[-9:].rpartition("/")[2], one.reason.partition(".")[0]) for one in done.failures] == [
        ("b.csv", "line 1: the table has no column tip"),
        ("c.jsonl", "line 30001: the table has no column tip"),
        ("d.parquet", "the table has no column tip"),
    ]


def test_new_columns_are_left_out(lake: LakeCatalog, folder: Path):
    assert run(lake, f"{folder}/*", columns=COLUMNS, new_columns="ignore").ingested == 4
    assert ids(lake) == [1, 2, *[3] * 30_000, 4, 5]
    assert set(rows(lake)[0]) == {"id", "fare", "kind"}


def test_new_columns_are_added_with_a_type_that_holds_what_all_sources_have(lake: LakeCatalog, folder: Path):
    done = run(lake, f"{folder}/*", columns=COLUMNS, new_columns="add")
    assert (done.ingested, done.failed, done.added_columns) == (4, 0, ("tip", "day", "late"))
    found = {row["id"]: (row["tip"], row["day"], row["late"], row["kind"]) for row in rows(lake)}
    assert found == {
        1: (None, None, None, "none"),
        2: (3.0, date(2024, 1, 1), None, "none"),
        3: (None, None, None, "none"),
        4: (1.5, None, [True], "none"),
        5: (7.0, None, None, "none"),
    }
    assert run(lake, f"{folder}/*", columns=COLUMNS).known == 4


def test_a_source_whose_new_column_has_another_type_fails(lake: LakeCatalog, tmp_path: Path):
    (tmp_path / "a.csv").write_text("id,more\n1,2\n")
    (tmp_path / "b.csv").write_text("id,more\n2,x\n")
    (tmp_path / "c.csv").write_text("id,ID\n3,3\n")
    (tmp_path / "d.jsonl").write_text('{"id": 4, "more": 5}\n')
    done = run(lake, f"{tmp_path}/*", columns=COLUMNS, new_columns="add")
    assert (ids(lake), done.added_columns) == ([1, 4], ("more",))
    assert [one.reason.partition(" (")[0] for one in done.failures] == [
        "other sources and this one: a column has no type that holds the values of both sources",
        "the column ID cannot be added beside id. Names that differ only in case are the same to Spark and others. "
        "Rename it in the source.",
    ]


def test_a_missing_column_is_null_or_its_default_where_that_is_allowed(lake: LakeCatalog, tmp_path: Path):
    (tmp_path / "a.csv").write_text("id\n1\n")
    (tmp_path / "b.csv").write_text("fare\n1\n")
    (tmp_path / "c.jsonl").write_text('{"id": 2, "kind": null}\n{"fare": 1}\n')
    done = run(lake, f"{tmp_path}/*", columns=COLUMNS)
    assert {row["id"]: (row["fare"], row["kind"]) for row in rows(lake)} == {1: (None, "none"), 2: (None, None)}
    assert [one.reason.partition(" (")[0] for one in done.failures] == ["line 1: the column id is missing"]
    assert rejected(lake) == [("c.jsonl", 2, b'{"fare": 1}')]


def test_a_narrower_type_is_widened_and_any_other_refused_with_the_source(lake: LakeCatalog, tmp_path: Path):
    narrow = pa.table({"id": pa.array([1], pa.int8()), "fare": pa.array([1.5], pa.float32())})
    pq.write_table(narrow, tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": pa.array([2.5])}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"id": pa.array(["3"])}), tmp_path / "c.parquet")
    done = run(lake, f"{tmp_path}/*", columns=COLUMNS)
    assert [(row["id"], row["fare"]) for row in rows(lake)] == [(1, 1.5)]
    assert [one.reason.partition(" (")[0] for one in done.failures] == ["id: the column has another type"] * 2


def test_a_source_column_is_never_added_since_older_rows_would_have_no_source(lake: LakeCatalog, tmp_path: Path):
    (tmp_path / "a.csv").write_text("id\n1\n")
    (tmp_path / "b.csv").write_text("id,_source\n2,me\n")
    done = run(lake, [tmp_path / "a.csv", tmp_path / "b.csv"], columns=COLUMNS, new_columns="add")
    assert (done.ingested, ids(lake)) == (1, [1])
    [failure] = done.failures
    assert "the column _source cannot be added" in failure.reason
    (tmp_path / "a.csv").write_text("id\n1\n3\n")
    with pytest.raises(InvalidRequest, match="cannot be replaced"):
        run(lake, tmp_path / "a.csv", changed="replace")
    assert ids(lake) == [1]


def test_a_column_that_differs_by_case_only_is_not_ignored_for_nulls(lake: LakeCatalog, tmp_path: Path):
    (tmp_path / "a.csv").write_text("id,Fare\n1,0.5\n")
    done = run(lake, f"{tmp_path}/*", columns=COLUMNS, new_columns="ignore")
    assert (done.failed, done.row_count) == (1, 0)
    assert "Did you mean fare?" in done.failures[0].reason


def test_the_hint_for_a_new_column_is_not_what_was_just_done(tmp_path: Path):
    lake = memory_lake()
    (tmp_path / "a.jsonl").write_text('{"u": {"a": 1}}\n')
    run(lake, tmp_path / "a.jsonl", columns=None)
    (tmp_path / "b.jsonl").write_text('{"u": {"a": 1, "b": 2}}\n')
    [failure] = run(lake, tmp_path / "b.jsonl").failures
    assert "--retry-failed and --new-columns add or ignore" in failure.reason
    [failure] = run(lake, tmp_path / "b.jsonl", retry_failed=True, new_columns="add").failures
    assert 'the table has no column "u.b". Only whole columns are added' in failure.reason
    assert run(lake, tmp_path / "b.jsonl", retry_failed=True, new_columns="ignore").ingested == 1
