"""A statement that comes again is not planned again by DuckDB, and nobody can tell but by the time."""

from __future__ import annotations

import gc
import weakref

import duckdb
import pyarrow as pa
import pytest

import underlay
from underlay.errors import InvalidRequest
from underlay.local.dataset.scanner import TableScanner
from underlay.local.sql import run as module
from underlay.local.sql.kept_views import _MOST_PLANS, KeptPlans

pytestmark = pytest.mark.skipif(
    not duckdb.__version__.startswith("1."), reason="DuckDB 2 keeps all rows of a statement before it hands them over"
)


@pytest.fixture
def lake(tmp_path):
    with underlay.connect(tmp_path / "lake", registry="none") as lake:
        lake.create_table("a.t", "id bigint, word string").append(pa.table({"id": range(5), "word": list("ab3d5")}))
        yield lake


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch):
    """What DuckDB is asked to run."""
    found: list[str] = []
    stream = module.stream_rows

    def note(connection, text, parameters):
        found.append(text.split()[0])
        return stream(connection, text, parameters)

    monkeypatch.setattr(module, "stream_rows", note)
    return found


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch):
    """The statements whose plans were kept."""
    found: list[str] = []
    plan = KeptPlans._plan

    def note(self, connection, text):
        is_planned = plan(self, connection, text)
        found.extend([text] if is_planned else [])
        return is_planned

    monkeypatch.setattr(KeptPlans, "_plan", note)
    return found


def test_a_statement_that_comes_again_is_planned_once(lake, texts, planned):
    text = "select id from a.t where id > 2 -- again"
    for _ in range(5):
        assert sorted(lake.sql(text).fetchall()) == [(3,), (4,)]
    assert texts == ["select", *["EXECUTE"] * 4]
    assert planned == [text]


def test_rows_and_columns_are_those_of_now(lake, texts):
    table = lake.table("a.t")
    for number in range(10, 14):
        table.append(pa.table({"id": [number], "word": ["x"]}))
        assert lake.sql("select max(id), min(word) from a.t").fetchall() == [(number, "3")]
    with table.evolve() as change:
        change.rename_column("word", "letter")
    for _ in range(3):
        assert lake.sql("select * from a.t order by id limit 1").to_arrow().column_names == ["id", "letter"]
        with pytest.raises(InvalidRequest, match="word"):
            lake.sql("select max(id), min(word) from a.t")
    assert texts.count("EXECUTE") > 3


def test_clocks_and_chance_are_those_of_each_query(lake):
    found = {lake.sql("select now(), random() from a.t limit 1").fetchall()[0] for _ in range(4)}
    assert len({moment for moment, _ in found}) == len({number for _, number in found}) == 4


def test_a_seed_is_not_left_to_the_next_query(lake, planned):
    for _ in range(3):
        lake.sql("select setseed(0.5) from a.t").fetchall()
    assert planned == []


def test_values_beside_the_text_are_those_of_each_query(lake, planned):
    for number in range(4):
        assert lake.sql("select id from a.t where id = ?", [number]).fetchall() == [(number,)]
    assert planned == []


def test_a_result_that_is_left_half_read_disturbs_no_other(lake):
    text = "select id from a.t where id >= 0"
    for _ in range(3):
        left = lake.sql(text)
        assert left.head(1).num_rows == 1
        assert len(lake.sql(text).fetchall()) == 5
        left.close()
    assert len(lake.sql(text).fetchall()) == 5


def test_a_failure_is_said_again_and_leaves_nothing(lake):
    text = "select cast(word as int) from a.t where id in (2, 4)"
    for _ in range(3):
        assert lake.sql(text).fetchall() == [(3,), (5,)]
    lake.table("a.t").append(pa.table({"id": [4], "word": ["no number"]}))
    for _ in range(3):
        with pytest.raises(InvalidRequest, match="Could not convert string 'no number' to INT32"):
            lake.sql(text).fetchall()
    lake.table("a.t").delete("word = 'no number'")
    assert lake.sql(text).fetchall() == [(3,), (5,)]


def test_a_late_cancel_does_not_end_the_next_query(lake):
    text = "select id from a.t where id < 3"
    results = []
    for _ in range(20):
        results.append(lake.sql(text))
        for earlier in results[:-1]:
            earlier.cancel()
        assert results[-1].to_arrow().num_rows == 3


def test_queries_one_after_the_other_use_one_engine(lake, planned):
    text = "select id from a.t where id = 1 -- one engine"
    held = [lake.sql(text) for _ in range(3)]
    for result in held:
        result.close()
    planned.clear()
    for _ in range(6):
        lake.sql(text).fetchall()
    assert planned in ([], [text])


def test_few_plans_are_kept(lake, planned):
    statements = [f"select id from a.t where id = {number} -- few" for number in range(_MOST_PLANS + 3)]
    for _ in range(3):
        for number, text in enumerate(statements):
            assert lake.sql(text).fetchall() == ([(number,)] if number < 5 else [])
    assert len(planned) == 2 * len(statements)


def test_a_plan_keeps_no_rows(lake, monkeypatch: pytest.MonkeyPatch):
    scanners: list[weakref.ref[TableScanner]] = []
    made = TableScanner.__init__

    def note(self, *arguments, **options):
        scanners.append(weakref.ref(self))
        made(self, *arguments, **options)

    monkeypatch.setattr(TableScanner, "__init__", note)
    for _ in range(4):
        lake.sql("select word, count(*) from a.t group by word order by word").fetchall()
    gc.collect()
    assert len(scanners) >= 4
    assert [one() for one in scanners] == [None] * len(scanners)
