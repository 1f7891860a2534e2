"""EXPLAIN: DuckDB's plan, and what each scan of a table reads."""

from __future__ import annotations

import json
from uuid import uuid4

import pyarrow as pa
import pytest

from underlay.api.lake import Lake, connect


@pytest.fixture
def lake() -> Lake:
    """a.b with four files of ten rows by id, and a.c with two rows."""
    lake = connect(f"memory://{uuid4()}", registry="none")
    table = lake.create_table("a.b", "id bigint, v string")
    for begin in range(0, 40, 10):
        table.append(pa.table({"id": range(begin, begin + 10), "v": [str(n) for n in range(10)]}))
    lake.create_table("a.c", "id bigint, w double").append(pa.table({"id": [1, 2], "w": [1.0, 2.0]}))
    return lake


def plans(lake: Lake, text: str, parameters: list[object] | None = None) -> list[str]:
    """What is said of each table, below DuckDB's drawing."""
    ((key, value),) = lake.sql(text, parameters).fetchall()
    assert key in ("physical_plan", "analyzed_plan")
    return [f"a.{part}" for part in value.split("\na.")[1:]]


def test_json_stays_json_and_has_the_tables_beside_it(lake: Lake):
    plan, table = lake.sql("explain (format json) select * from a.b where id = 3").fetchall()
    assert json.loads(plan[1])
    assert table[0] == "underlay_plan"


def test_a_scan_says_what_it_reads_and_why_no_more(lake: Lake):
    (plan,) = plans(lake, "explain select * from a.b where id > 35")
    assert plan.startswith("a.b, version 4: reads 1 of 4 blocks in 1 of 4 files\n")
    assert "id > 35: 3 of 4 files dropped by range" in plan
    assert "bytes of 2 columns" in plan


def test_each_table_of_a_join_is_explained(lake: Lake):
    first, second = plans(lake, "explain select v, w from a.b join a.c using (id) where id between 5 and 12")
    assert first.startswith("a.b, version 4: reads 2 of 4 blocks")
    assert second.startswith("a.c, version 1: reads 0 of 1 blocks")


def test_an_older_version_and_a_parameter_are_explained(lake: Lake):
    (plan,) = plans(lake, "explain select * from a.b version as of 2 where id < ?", [5])
    assert plan.startswith("a.b, version 2: reads 1 of 2 blocks")


def test_explain_analyze_says_what_was_read(lake: Lake):
    (plan,) = plans(lake, "explain analyze select sum(id) from a.b where id = 3")
    assert plan.startswith("a.b, version 4: reads 1 of 4 blocks")


def test_what_metadata_answers_reads_nothing(lake: Lake):
    assert plans(lake, "explain select count(*) from a.b") == [
        "a.b, version 4\n  counted from metadata: no data is read\n"
    ]
    assert plans(lake, "explain (select * from a.b limit 0)") == [
        "a.b, version 4\n  not read: DuckDB needs none of its rows\n"
    ]


def test_it_is_printed_as_a_drawing(lake: Lake):
    text = str(lake.sql("explain select * from a.b where id > 35"))
    assert "Filters: id>35" in text
    assert text.splitlines()[-1].startswith("  read: 1 file, 1 block, 10 rows")


def test_nothing_of_the_tables_is_read_to_explain(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("underlay.scan.query.Query.batches", lambda *_: pytest.fail("rows were read"))
    assert plans(lake, "explain select v, sum(id) from a.b where id in (3, 4) group by v")


def test_a_query_that_only_computes_is_interrupted(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("underlay.local.sql.explain.PROBE_SECONDS", 0.2)
    counted = "select count(*) from range(1000000000000) where range % 7 = 3"
    (plan,) = plans(lake, f"explain select id, ({counted}) from a.b where id = 3")
    assert plan.startswith("a.b, version 4")
