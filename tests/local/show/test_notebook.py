"""Tables, scans and results as notebooks and people look at them."""

from __future__ import annotations

import sys
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import underlay
from underlay.errors import InvalidRequest, Unsupported
from underlay.local.show.html import as_html
from underlay.local.show.text import draw

ROWS = pa.table({"i": range(30), "s": [f"<b>{n}</b>" for n in range(30)]})


@pytest.fixture
def lake():
    lake = underlay.connect("memory://notebook")
    if "a.b" not in [one.name for one in lake.tables()]:
        lake.create_table("a.b", ROWS.schema).append(ROWS)
    return lake


@pytest.fixture(params=["table", "scan", "result"])
def shown(lake, request):
    table = lake["a.b"]
    makers = {"table": lambda: table, "scan": table.scan, "result": lambda: lake.sql("from a.b order by i")}
    return makers[request.param]()


def test_html_is_short_and_escaped(shown):
    html = shown._repr_html_()
    assert html.count("<tr>") <= 23
    assert "&lt;b&gt;0&lt;/b&gt;" in html
    assert "<b>" not in html


def test_head_is_the_first_rows(shown):
    assert shown.head(3).column("i").to_pylist() == [0, 1, 2]
    assert shown.head().num_rows == 10
    assert shown.head(0).num_rows == 0


def test_frames_have_all_rows(lake):
    for make in (lambda: lake["a.b"], lake["a.b"].scan, lambda: lake.sql("from a.b")):
        assert sorted(make().to_pandas()["i"]) == list(range(30))
        assert sorted(make().to_polars()["i"]) == list(range(30))


def test_arrow_reads_them(shown):
    assert pa.schema(shown).names == ["i", "s"]
    assert pa.table(shown).num_rows == 30


def test_polars_and_pandas_read_them(lake):
    assert pl.DataFrame(lake["a.b"]).height == 30
    assert pl.DataFrame(lake.sql("from a.b")).height == 30
    assert isinstance(lake["a.b"].to_pandas(), pd.DataFrame)


def test_a_length_is_that_of_the_version(lake):
    table = lake["a.b"]
    assert (len(table), len(table.at(version=0)), len(table.scan(where="i < 3"))) == (30, 0, 3)
    assert table.at(version=0)
    assert table.scan(where="i < 0")


def test_a_result_knows_its_length_and_is_read_after_it(lake):
    result = lake.sql("from a.b order by i")
    assert (len(result), len(result)) == (30, 30)
    assert [row[0] for row in result] == list(range(30))
    with pytest.raises(InvalidRequest, match="read already"):
        len(result)
    assert [row[0] for row in list(lake.sql("from a.b order by i"))] == list(range(30))
    assert lake.sql("from a.b where i < 0")


def test_what_was_shown_of_a_result_is_read_too(lake):
    result = lake.sql("from a.b order by i")
    result.head(5), result._repr_html_(), repr(result)
    assert [row[0] for row in result] == list(range(30))
    assert "read" in result._repr_html_()
    with pytest.raises(InvalidRequest, match="read already"):
        result.head()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_missing_library_is_named_before_rows_are_read(lake, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    result = lake.sql("from a.b")
    for one in (lake["a.b"], lake["a.b"].scan(), result):
        with pytest.raises(Unsupported, match=f"pip install {library}"):
            getattr(one, f"to_{library}")()
    assert result.to_arrow().num_rows == 30


def test_numbers_are_never_cut_and_columns_in_the_middle_are():
    number = Decimal("123456789012345678901234567890.12345678")
    wide = pa.table({f"c{n}": pa.array([number], pa.decimal128(38, 8)) for n in range(300)})
    text = draw(wide, has_more=False, width=120)
    assert text.count(str(number)) == 2
    assert max(map(len, text.splitlines())) <= 120
    assert text.splitlines()[0].split() == ["c0", "…", "c299"]
    assert "(2 of 300 columns)" in text
    assert as_html(wide).count("<th>") == 21


def test_a_column_wider_than_the_terminal_is_shown_whole():
    text = draw(pa.table({"n": [10**18], "s": ["x" * 99]}), has_more=False, width=10)
    assert str(10**18) in text
    assert text.splitlines()[0].split() == ["n", "…"]


def test_a_lake_finds_its_tables(lake):
    assert lake["a.b"].name == "a.b"
    assert "a.b" in lake
    assert "a.c" not in lake
    assert lake._ipython_key_completions_() == ["a.b"]
    with pytest.raises(TypeError, match="not iterable"):
        iter(lake)


def test_dir_lists_the_surface_and_nothing_else():
    assert [name for name in dir(underlay) if not name.startswith("__")] == sorted(
        set(underlay.__all__) - {"__version__"}
    )


def test_a_scan_is_shown_with_the_name_of_its_table(lake):
    table = lake["a.b"]
    assert repr(table.scan()) == "Scan(a.b, version 1)"
    assert repr(table.scan(where="i = 3")) == "Scan(a.b, version 1, where i = 3)"
    assert repr(table.scan(where="i % 7 = 3")) == "Scan(a.b, version 1, where i % 7 = 3)"
