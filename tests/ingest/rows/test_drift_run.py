"""Sources whose columns are not the table's: each policy, and what is refused, with the source and the line."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.ingest.lakes import NAME, ids, memory_lake, rejected, rows, run
from underlay.errors import InvalidRequest
from underlay.table.catalog.lake import LakeCatalog

MAP = pa.map_(pa.string(), pa.struct([("x", pa.int64())]))
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


def test_a_value_of_another_type_is_taken_or_rejected_and_text_fails_the_source(lake: LakeCatalog, tmp_path: Path):
    narrow = pa.table({"id": pa.array([1], pa.int8()), "fare": pa.array([1.5], pa.float32())})
    pq.write_table(narrow, tmp_path / "a.parquet")
    pq.write_table(
        pa.table({"id": pa.array([2.0, 2.5, None, 3.0]), "fare": [7, 8, 9, 2**53 + 1]}), tmp_path / "b.parquet"
    )
    pq.write_table(pa.table({"id": pa.array(["3"])}), tmp_path / "c.parquet")
    wide = pa.table({"id": pa.array([4, 2**63], pa.uint64()), "kind": pa.array(["x", "y"], pa.string_view())})
    with pa.ipc.new_file(tmp_path / "d.arrow", wide.schema) as file:
        file.write(wide)
    done = run(lake, f"{tmp_path}/*", columns=COLUMNS)
    assert [(row["id"], row["fare"], row["kind"]) for row in rows(lake)] == [
        (1, 1.5, "none"), (2, 7.0, "none"), (4, None, "x")
    ]  # fmt: skip
    assert [one.reason.partition(" (")[0] for one in done.failures] == ["id: the column has another type"]
    assert [(source, line) for source, line, _ in rejected(lake)] == [
        ("b.parquet", 2), ("b.parquet", 3), ("b.parquet", 4), ("d.arrow", 2)
    ]  # fmt: skip
    reasons = sorted(row["reason"] for row in rows(lake, f"{NAME}_rejected"))
    assert reasons == [
        "column fare: a value does not fit the column's type: 9007199254740993",
        "column id: a value does not fit the column's type: 2.5",
        "column id: a value does not fit the column's type: 9223372036854775808",
        "column id: null in a required column",
    ]


def test_a_month_with_many_values_that_do_not_fit_is_rejected_row_by_row(lake: LakeCatalog, tmp_path: Path):
    values = [float(one) if one % 2 else one + 0.5 for one in range(6_000)]
    pq.write_table(pa.table({"id": values}), tmp_path / "a.parquet")
    done = run(lake, tmp_path / "a.parquet", columns=COLUMNS)
    assert (done.row_count, done.rejected_count) == (3_000, 3_000)


def test_a_column_of_parquet_that_differs_only_in_case_is_the_tables(lake: LakeCatalog, tmp_path: Path):
    pq.write_table(pa.table({"ID": [1], "Fare": [1.5]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [2], "FARE": [2]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"id": [3], "Fare": [3.5], "FARE": [4.5]}), tmp_path / "c.parquet")
    pq.write_table(pa.table({"id": [4], "fare": [4.5], "FARE": [5.5]}), tmp_path / "d.parquet")
    for policy in ("error", "add"):
        done = run(lake, f"{tmp_path}/*", columns=COLUMNS, new_columns=policy, retry_failed=True)
        assert [(row["id"], row["fare"]) for row in rows(lake)] == [(1, 1.5), (2, 2.0)]
        assert [one.uri[-9:] for one in done.failures] == ["c.parquet", "d.parquet"]


def test_the_first_sources_of_a_new_table_agree_on_names_and_types(lake: LakeCatalog, tmp_path: Path):
    first = {"id": pa.array([1], pa.int32()), "Fee": pa.array([1.5]), "at": pa.array([0], pa.timestamp("us")),
             "count": pa.array([1.0]), "flag": pa.array(["N"]), "none": pa.nulls(1)}  # fmt: skip
    other = {"id": pa.array([2]), "fee": pa.array([2]), "at": pa.array([1], pa.timestamp("ns")),
             "count": pa.array([2]), "flag": pa.array(["Y"]).dictionary_encode(), "none": pa.array([0.5])}  # fmt: skip
    pq.write_table(pa.table(first), tmp_path / "a.parquet")
    pq.write_table(pa.table(other), tmp_path / "b.parquet")
    assert run(lake, f"{tmp_path}/*", columns=None).ingested == 2
    assert [(row["id"], row["Fee"], row["count"], row["flag"], row["none"]) for row in rows(lake)] == [
        (1, 1.5, 1.0, "N", None), (2, 2.0, 2.0, "Y", 0.5)
    ]  # fmt: skip


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
    (tmp_path / "a.csv").write_text("id,Fare,FARE\n1,0.5,0.5\n")
    done = run(lake, f"{tmp_path}/*", columns=COLUMNS, new_columns="ignore")
    assert (done.failed, done.row_count) == (1, 0)
    assert "Did you mean fare?" in done.failures[0].reason


@pytest.mark.parametrize("new_columns", ["error", "ignore", "add"])
def test_columns_of_csv_and_json_match_in_any_case(lake: LakeCatalog, tmp_path: Path, new_columns: str):
    (tmp_path / "a.csv").write_text("ID,Fare\n1,0.5\n")
    (tmp_path / "b.jsonl").write_text('{"ID": 2, "fare": 1.5}\n{"id": 3, "FARE": 2.5}\n{"id": 4}\n')
    done = run(lake, f"{tmp_path}/*", columns=COLUMNS, new_columns=new_columns)
    assert (done.failures, done.row_count) == ((), 4)
    assert ids(lake) == [1, 2, 3, 4]


def test_a_new_field_of_json_is_refused_with_what_can_be_done_and_then_added(lake: LakeCatalog, tmp_path: Path):
    (tmp_path / "a.jsonl").write_text('{"u": {"a": 1}, "l": [{"x": 1}]}\n')
    run(lake, tmp_path / "a.jsonl", columns=None)
    (tmp_path / "b.jsonl").write_text(
        '{"u": {"a": 2, "b": 2}}\n{"u": {"a": 3, "c": {"d": "x"}}, "l": [{"x": 1, "y": true}]}\n'
    )
    [failure] = run(lake, tmp_path / "b.jsonl").failures
    assert "line 1: the table has no column u.b. Run it again with --new-columns add" in failure.reason
    done = run(lake, tmp_path / "b.jsonl", retry_failed=True, new_columns="add")
    assert (done.ingested, done.added_columns) == (1, ("u.b", "u.c", "l.element.y"))
    found = sorted((row for row in rows(lake)), key=lambda row: row["u"]["a"])
    assert [row["u"] for row in found] == [
        {"a": 1, "b": None, "c": None}, {"a": 2, "b": 2, "c": None}, {"a": 3, "b": None, "c": {"d": "x"}}
    ]  # fmt: skip
    assert [row["l"] for row in found] == [[{"x": 1, "y": None}], None, [{"x": 1, "y": True}]]


def test_a_new_field_of_parquet_is_refused_left_out_or_added(tmp_path: Path):
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(pa.table({"u": [{"a": 1}], "m": pa.array([[("k", {"x": 1})]], MAP)}), folder / "a.parquet")
    wider = pa.map_(pa.string(), pa.struct([("x", pa.int64()), ("y", pa.int64())]))
    more = pa.table({"u": [{"b": 2.5, "a": 2}], "m": pa.array([[("k", {"x": 2, "y": 3})]], wider)})
    pq.write_table(more, tmp_path / "b.parquet")
    for policy, expected in (
        ("error", [{"u": {"a": 1}, "m": [("k", {"x": 1})]}]),
        ("ignore", [{"u": {"a": 1}, "m": [("k", {"x": 1})]}, {"u": {"a": 2}, "m": [("k", {"x": 2})]}]),
        ("add", [{"u": {"a": 1, "b": None}, "m": [("k", {"x": 1, "y": None})]},
                 {"u": {"a": 2, "b": 2.5}, "m": [("k", {"x": 2, "y": 3})]}]),
    ):  # fmt: skip
        lake = memory_lake()
        run(lake, folder / "a.parquet", columns=None)
        done = run(lake, tmp_path / "b.parquet", new_columns=policy)
        assert sorted(rows(lake), key=lambda row: row["u"]["a"]) == expected
        assert [one.reason.partition(". ")[0] for one in done.failures] == (
            ["the table has no column u.b"] if policy == "error" else []
        )


def test_a_new_field_beside_one_that_differs_only_in_case_is_refused(lake: LakeCatalog, tmp_path: Path):
    (tmp_path / "a.jsonl").write_text('{"u": {"a": 1}}\n')
    run(lake, tmp_path / "a.jsonl", columns=None)
    (tmp_path / "b.jsonl").write_text('{"u": {"A": 1}}\n')
    [failure] = run(lake, tmp_path / "b.jsonl", new_columns="add").failures
    assert "the column u.A cannot be added beside u.a" in failure.reason
