"""Charts: chosen by the columns, counted by the service when there are many rows, and said in words too."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser import is_clean_everywhere, screenshots
from tests.page.sql import run
from tests.server.conftest import Served

LINE = 'select "at", zone, fare from taxi.trips where id < 3000'
QUERIES = {
    "line": LINE,
    "bar": "select zone, sum(fare) as fares from taxi.trips group by zone",
    "scatter": "select km, fare from taxi.trips",
    "histogram": "select fare from taxi.trips where id < 5000",
    "bands": 'select "at", fare, km from taxi.trips',
}


def chart(page: Page, sql: str) -> Page:
    """The chart of a statement that was run."""
    run(page, sql)
    page.get_by_role("tab", name="Chart", exact=True).click()
    expect(page.locator(".chart figcaption")).to_be_visible()
    return page


def test_lines_are_drawn_over_time_one_for_each_value_of_a_text(page: Page):
    chart(page, LINE)
    expect(page.get_by_role("button", name="Line", pressed=True)).to_be_visible()
    expect(page.locator(".chart-plot canvas")).to_be_visible()  # what draws it is loaded with the first chart
    lines = page.get_by_role("list", name="Lines").get_by_role("button")
    expect(lines).to_have_text(["EWR", "JFK", "LGA"])
    expect(page.locator(".chart figcaption")).to_contain_text("3 lines of fare over at, from 2024-01-01 00:10:00")
    said = page.locator(".chart figcaption").inner_text().strip()
    expect(page.get_by_role("img")).to_have_attribute("aria-label", said)
    lines.first.press("Enter")
    expect(lines.first).to_have_attribute("aria-pressed", "false")
    assert page.evaluate(INK) > 100
    page.get_by_role("button", name="Zoom in").press("Enter")
    page.get_by_role("button", name="All", exact=True).press("Enter")


INK = """() => {
  const canvas = document.querySelector(".chart-plot canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let at = 3; at < data.length; at += 4) found += data[at] > 0 ? 1 : 0;
  return found;
}"""


def test_bars_are_a_table_with_their_numbers(page: Page, site: Served):
    sql = "select zone, count(*) as n from taxi.trips group by zone"
    chart(page, sql)
    counts = site.lake.sql(f"{sql} order by n desc, zone").to_arrow().to_pylist()
    rows = [row.locator("th, td").all_inner_texts() for row in page.locator(".chart-bars tbody tr").all()]
    assert [(row[0], row[-1]) for row in rows] == [(one["zone"], f"{one['n']:,}") for one in counts]


def test_many_rows_are_counted_by_the_service(page: Page):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    chart(page, "select fare from taxi.trips")
    assert [url for url in asked if "/bins?kind=histogram&x=0" in url]
    page.get_by_text("The numbers as a table").click()
    table = page.get_by_role("group", name="The numbers of the chart")
    expect(table.locator("tbody tr").first).to_be_visible()
    counts = [int(row.locator("td").last.inner_text().replace(",", "")) for row in table.locator("tbody tr").all()]
    assert sum(counts) == 19_990
    assert not [url for url in asked if "/rows" in url and "limit=10000" in url]


def test_another_chart_and_other_columns_are_chosen_by_keys(page: Page):
    chart(page, LINE)
    page.get_by_role("button", name="Bar", exact=True).press("Enter")
    page.get_by_label("by", exact=True).select_option(label="zone")
    expect(page.locator(".chart-bars tbody tr")).to_have_count(3)
    page.get_by_label("sum of", exact=True).select_option(label="number of rows")
    expect(page.locator(".chart-bars tbody tr").first).to_contain_text("997")
    page.get_by_role("button", name="Histogram").press("Enter")
    page.get_by_label("x", exact=True).select_option(label="fare")
    expect(page.locator(".chart figcaption")).to_contain_text("fare in")


def test_a_result_without_numbers_or_rows_says_so(page: Page):
    run(page, "select [1] as a, {'b': 2} as c")
    page.get_by_role("tab", name="Chart", exact=True).click()
    expect(page.locator(".chart-note")).to_contain_text("No column holds")


def test_texts_of_markup_and_names_that_repeat_are_drawn(page: Page):
    odd = "'<img src=x onerror=\"document.title=1\">'"
    chart(page, f"select {odd} as a, 2 as a union all select null, 3 union all select '', 4")
    labels = page.locator(".chart-bars tbody th").all_inner_texts()
    assert labels == ["(empty)", "NULL", '<img src=x onerror="document.title=1">']
    assert page.title() == "Underlay"


@pytest.mark.parametrize(
    "kind", ["line", *(pytest.param(one, marks=pytest.mark.storm) for one in QUERIES if one != "line")]
)
def test_everybody_can_use_a_chart(page: Page, kind: str):
    chart(page, QUERIES[kind])
    expect(page.locator(".chart-plot canvas, .chart-bars")).to_be_visible()
    assert is_clean_everywhere(page) == {}
    screenshots(page, f"chart-{kind}")
