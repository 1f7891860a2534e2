"""The grid: every row by keys, wheel and drag; order, selection, copies, columns, values."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from playwright.sync_api import Page, expect

from tests.page.browser import measuring_frames
from tests.page.lake import NASTY_NAME
from tests.page.sql import cell, copied, grid, names, result, run, says
from tests.server.conftest import wait_until

ROWS = 2_000_000
MANY = f"select range as n, range % 1000 as bucket, 'text ' || range as t from range({ROWS})"
TOP = """grid => Math.min(...[...grid.querySelectorAll('.body .rownumber')].map(one => Number(one.textContent)))"""


def test_the_last_of_two_million_rows_is_reached_by_keys_wheel_and_drag(page: Page, record_property):
    run(page, MANY)
    grid(page).focus()
    page.keyboard.press("Control+End")
    expect(cell(page, ROWS, 0)).to_have_text(str(ROWS - 1))
    page.keyboard.press("Control+Home")
    expect(cell(page, 1, 0)).to_have_text("0")
    page.keyboard.press("PageDown")
    page.keyboard.press("PageDown")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".selection-bar:visible")).not_to_contain_text("Row 1 ")
    # a drag of the scrollbar to its middle, then a wheel: 1:1
    grid(page).evaluate("grid => { grid.scrollTop = grid.scrollHeight / 2; }")
    page.wait_for_function(
        f"grid => {{ const top = ({TOP})(grid); return top > {ROWS * 0.45} && top < {ROWS * 0.55}; }}",
        arg=grid(page).element_handle(),
    )
    expect(grid(page).locator(".body .cell.number").first).not_to_have_text("…")
    before = grid(page).evaluate(TOP)
    assert ROWS * 0.45 < before < ROWS * 0.55
    grid(page).hover()
    with measuring_frames(page) as frames:
        for _ in range(60):
            page.mouse.wheel(0, 240)
        page.wait_for_function(
            f"([grid, before]) => {{ const top = ({TOP})(grid); return top >= before + 595 && top <= before + 605; }}",
            arg=[grid(page).element_handle(), before],
        )
    said = f"{frames.count} frames, {frames.over_50_ms} tasks over 50 ms, the longest {frames.longest_ms} ms"
    record_property("scrolling", said)
    print(said)
    grid(page).evaluate("grid => { grid.scrollTop = grid.scrollHeight; }")
    expect(cell(page, ROWS, 0)).to_have_text(str(ROWS - 1))
    expect(cell(page, ROWS, 2)).to_have_text(f"text {ROWS - 1}")


def test_the_first_paint_of_a_warm_page_is_measured(page: Page, record_property):
    page.reload()
    page.wait_for_selector(".cm-content")
    paints = page.evaluate("() => performance.getEntriesByType('paint').map((one) => [one.name, one.startTime])")
    ready = page.evaluate("() => performance.now()")
    said = f"warm page: {dict(paints)}, editor ready within {ready:.0f} ms"
    record_property("first_paint", said)
    print(said)
    assert "first-contentful-paint" in dict(paints)


def test_rows_are_sorted_by_a_click_and_by_the_menu_each_once(page: Page):
    run(page, "select range as n, range % 3 as third from range(5000)")
    grid(page).locator('[role=columnheader] .name:text-is("third")').click()
    expect(grid(page).locator('[aria-sort="ascending"] .name')).to_have_text("third")
    expect(cell(page, 1, 1)).to_have_text("0")
    grid(page).focus()
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+c")
    says(page, "Copied 5,000 rows")
    rows = [line.split("\t") for line in copied(page).splitlines()]
    assert sorted(int(n) for n, _ in rows) == list(range(5000))
    assert [int(third) for _, third in rows] == sorted(int(third) for _, third in rows)
    page.keyboard.press("Control+Home")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name="Sort descending").click()
    expect(cell(page, 1, 0)).to_have_text("4999")
    page.get_by_role("button", name="Menu of column n").click()
    page.get_by_role("menuitem", name="Do not sort").click()
    expect(cell(page, 1, 0)).to_have_text("0")


def test_a_range_is_summed_exactly_and_copied_in_each_format(page: Page):
    run(
        page,
        "select * from (values (9007199254740993::bigint, 0.10::decimal(9, 2), ''), (2, null, 'NULL'), (3, 2.25, null),"
        " (4, 1.00, 'tab\there')) t(n, d, s)",
    )
    grid(page).focus()
    page.keyboard.press("Control+Home")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowRight")
    bar = page.locator(".selection-bar:visible")
    expect(bar).to_contain_text("6 cells selected")
    expect(bar).to_contain_text("count 5")
    expect(bar).to_contain_text("null 1")
    expect(bar).to_contain_text("sum 9007199254741000.35")
    expect(bar).to_contain_text("min 0.10")
    expect(bar).to_contain_text("max 9007199254740993")
    page.keyboard.press("Control+a")
    texts = {}
    for format in ("Cells", "TSV", "CSV", "JSON", "Markdown", "INSERT"):
        page.evaluate("() => navigator.clipboard.writeText('')")
        page.get_by_role("button", name="Copy the selected cells").click()
        page.get_by_role("menuitem", name=format).click()
        wait_until(lambda: copied(page) != "")
        texts[format] = copied(page)
    assert list(csv.reader(io.StringIO(texts["CSV"]))) == [
        ["n", "d", "s"],
        ["9007199254740993", "0.10", ""],
        ["2", "", "NULL"],
        ["3", "2.25", ""],
        ["4", "1.00", "tab\there"],
    ]
    assert texts["CSV"].splitlines()[1].endswith(',""')
    assert texts["TSV"].splitlines()[0] == "n\td\ts"
    assert texts["Cells"] == texts["TSV"].split("\n", 1)[1]
    assert json.loads(texts["JSON"])[0] == {"n": 9007199254740993, "d": "0.10", "s": ""}
    assert json.loads(texts["JSON"])[2]["s"] is None
    assert texts["Markdown"].splitlines()[2] == "| 9007199254740993 | 0.10 |  |"
    assert "(2, NULL, 'NULL')" in texts["INSERT"]


def test_all_rows_are_downloaded_without_a_second_run(page: Page, tmp_path: Path):
    with page.expect_response("**/v1/statements"):
        run(page, "select range as n, random() as r from range(30000)")
    expect(cell(page, 1, 1)).not_to_have_text("…")
    shown = cell(page, 1, 1).inner_text()
    found = {}
    for format, label in (("csv", "CSV"), ("parquet", "Parquet"), ("arrow", "Arrow")):
        with page.expect_download() as download:
            page.get_by_role("button", name="Download all rows").click()
            page.get_by_role("menuitem", name=label, exact=True).click()
        assert download.value.suggested_filename == f"result.{format}"
        path = tmp_path / f"result.{format}"
        download.value.save_as(path)
        found[format] = path
    rows = list(csv.reader(io.StringIO(found["csv"].read_text())))
    assert rows[0] == ["n", "r"]
    assert len(rows) == 30001
    assert float(rows[1][1]) == float(shown)
    assert pq.read_table(found["parquet"]).equals(pa.ipc.open_stream(found["arrow"].read_bytes()).read_all())


def test_names_that_repeat_and_names_and_values_with_markup_are_shown_as_they_are(page: Page):
    run(page, 'select 1 as a, 2 as a, 3 as "a"')
    expect(grid(page).locator(".name")).to_have_text(["a", "a", "a"])
    for column in range(3):
        expect(cell(page, 1, column)).to_have_text(str(column + 1))
    run(page, "select * from odd.names")
    expect(cell(page, 4, 0)).to_have_text(NASTY_NAME)
    assert names(page) == [NASTY_NAME, "شارع", "🚕"]
    page.keyboard.press("F6")
    page.keyboard.press("Control+Home")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Cell")).to_contain_text(NASTY_NAME)
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("h")
    expect(page.locator(".history li")).to_have_count(2)
    assert page.title() == "Underlay"
    assert page.evaluate("() => document.querySelectorAll('#page img').length") == 0


def test_three_hundred_columns_are_reached_frozen_and_resized(page: Page):
    run(page, "select * from odd.wide")
    grid(page).focus()
    expect(grid(page)).to_have_attribute("aria-colcount", "301")
    assert grid(page).locator("[role=columnheader]").count() < 40
    page.get_by_role("button", name="Menu of column c0", exact=True).click()
    page.get_by_role("menuitem", name="Freeze up to here").click()
    page.keyboard.press("Control+End")
    expect(cell(page, 1, 299)).to_have_text("299")
    expect(cell(page, 1, 0)).to_be_in_viewport()
    before = cell(page, 1, 299).bounding_box()["width"]
    page.keyboard.press("Alt+ArrowRight")
    page.keyboard.press("Alt+ArrowRight")
    assert cell(page, 1, 299).bounding_box()["width"] == before + 32


def test_nested_values_are_a_tree_and_long_ones_are_shown_whole_on_request(page: Page):
    run(page, "select {'a': [1, 2], 'x': {'b': null}, 'm': map{'k': 'v'}} as s, repeat('x', 10000000) as big, 2 as n")
    expect(cell(page, 1, 0)).to_have_text('{"a": [1, 2], "x": {"b": null}, "m": [["k", "v"]]}')
    grid(page).focus()
    page.keyboard.press("Enter")
    viewer = page.get_by_role("complementary", name="Cell")
    expect(viewer.locator(".key").all()[0]).to_have_text("a")
    assert "NULL" in viewer.inner_text()
    page.keyboard.press("Escape")
    expect(viewer).to_have_count(0)
    grid(page).focus()  # it comes back a moment after the viewer went
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(viewer).to_contain_text("10,000,000 characters")
    assert len(viewer.locator("pre").inner_text()) == 100_000
    viewer.get_by_role("button", name="Show more").click()
    expect(viewer).to_contain_text("200,000 of 10,000,000 characters")
    with page.expect_download() as download:
        viewer.get_by_role("button", name="Save all to a file").click()
    assert Path(download.value.path()).read_text() == "x" * 10_000_000
    page.keyboard.press("Escape")
    expect(viewer).to_have_count(0)
    assert len(cell(page, 1, 1).inner_text()) < 400


def test_a_text_is_found_in_rows_that_are_not_shown(page: Page):
    run(page, MANY.replace(str(ROWS), "50000"))
    page.get_by_role("button", name="Find").click()
    page.get_by_label("Text to find").fill("TEXT 4321")
    page.keyboard.press("Enter")
    says(page, "Row 4,322")
    expect(cell(page, 4322, 2)).to_have_class("cell selected focused")
    page.keyboard.press("Enter")
    says(page, "Row 43,211")
    page.keyboard.press("Escape")
    expect(grid(page)).to_be_focused()
    assert result(page).locator(".find-bar").count() == 0
