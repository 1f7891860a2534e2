"""Queries of few rows run on one thread, larger ones on all; nobody can tell but by the time."""

from __future__ import annotations

import pyarrow as pa
import pytest

import underlay
from underlay.local.sql import run as module
from underlay.local.sql import small_scan
from underlay.local.sql.engine import take_engine
from underlay.local.text.statement import reads_one_table


@pytest.fixture
def lake():
    lake = underlay.connect("memory://small-scan", registry="none")
    if not lake.tables():
        table = lake.create_table("a.t", "id bigint, word string", sort_by=["id"])
        for begin in (0, 100, 200):
            numbers = range(begin, begin + 100)
            table.append(pa.table({"id": numbers, "word": [f"w{n % 7}" for n in numbers]}))
    return lake


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch):
    """How many threads each engine that was taken has."""
    taken: list[int | None] = []

    def take(**options):
        taken.append(options.get("threads"))
        return take_engine(**options)

    monkeypatch.setattr(module, "take_engine", take)
    return taken


def test_few_rows_are_read_on_one_thread(lake, threads):
    assert lake.sql("select count(*), max(word) from a.t where id >= 250").fetchall() == [(50, "w6")]
    assert threads == [1]


def test_many_rows_are_read_on_all_threads_and_once(lake, threads, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(small_scan, "MAX_ROWS", 150)
    assert lake.sql("select sum(id) from a.t").fetchall() == [(sum(range(300)),)]
    assert threads == [1, None]
    assert lake.sql("select sum(id) from a.t where id < 100").fetchall() == [(sum(range(100)),)]
    assert threads == [1, None, 1]


@pytest.mark.parametrize(
    "text",
    [
        "select x.id from a.t x join a.t y on x.id < y.id",
        "select x.id from a.t x, a.t y",
        "select (select max(id) from a.t) from a.t",
        "select id from a.t where id in (select id from a.t)",
        "with c as (from a.t) select * from c",
        "select unnest(range(id)) from a.t",
        "select id from a.t, range(9)",
        "select id, row_number() over () from a.t",
        "select 1",
        "from a.t",
        "explain select id from a.t",
    ],
)
def test_what_may_be_more_than_one_pass_over_a_table_has_all_threads(text: str):
    assert not reads_one_table(text)


@pytest.mark.parametrize(
    "text", ["select * from a.t", "SELECT count(*), max(id) FROM a.t AS x WHERE f(x.id, 1) > 2 GROUP BY 1, 2 LIMIT 3;"]
)
def test_one_pass_over_a_table_is_recognised(text: str):
    assert reads_one_table(text)
