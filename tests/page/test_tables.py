"""The catalog, and the page of a table: what it says, and where it leads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import underlay as ul
from tests.page.browser import is_clean_everywhere, screenshots
from tests.page.lake import NASTY_NAME
from tests.page.sql import grid
from tests.server.conftest import Served

TREE = "Datasets, tables and columns"


@pytest.fixture(scope="module")
def ingested(site: Served, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A table with a run that rejected a row, and one of many small files."""
    folder: Path = tmp_path_factory.mktemp("sources")
    (folder / "a.csv").write_text("id,name\n1,one\nx,two\n3,three\n")
    lake = ul.connect(site.settings.lake, registry="none")
    lake.create_table("taxi.visits", "id bigint, name string", comment='<b>visits</b> of "people"', key=["id"])
    lake.ingest("taxi.visits", str(folder / "*.csv"))
    crumbs = lake.create_table("taxi.crumbs", "id bigint")
    for number in range(12):
        crumbs.append([{"id": number}])
    lake.close()


def open_table(page: Page, name: str, part: str | None = None) -> None:
    """Show the page of a table, by keys alone."""
    page.get_by_role("tree", name=TREE).get_by_role("treeitem", name=name, exact=True).press("Enter")
    expect(page.get_by_role("heading", name=re.compile(rf"\.{name}$"))).to_be_visible()
    if part is not None:
        page.get_by_role("tab", name="Columns").focus()
        for _ in range(7):
            if page.get_by_role("tab", name=part, exact=True).get_attribute("aria-selected") == "true":
                break
            page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tabpanel", name=part)).to_be_visible()


def cells(page: Page) -> list[list[str]]:
    """The rows of the table that is shown."""
    expect(page.locator(".table-rows tbody tr").first).to_be_visible()
    return [row.locator("td").all_inner_texts() for row in page.locator(".table-rows tbody tr").all()]


def test_the_tree_is_walked_by_keys_and_puts_names_into_the_text(page: Page):
    tree = page.get_by_role("tree", name=TREE)
    expect(tree.get_by_role("treeitem", name="trips")).to_be_visible()
    page.get_by_role("searchbox", name="Search tables and columns").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.type("trips")
    page.keyboard.press("ArrowRight")
    expect(tree.get_by_role("treeitem", name="fare decimal(9,2)")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(tree.get_by_role("treeitem", name="id bigint")).to_be_focused()
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".cm-content")).to_contain_text("id")
    tree.get_by_role("treeitem", name="trips").dblclick()
    expect(page.locator(".cm-content")).to_contain_text("taxi.trips")


def test_a_search_finds_columns_too(page: Page):
    page.get_by_role("searchbox", name="Search tables and columns").fill("salary")
    expect(page.get_by_role("treeitem", name="salary bigint")).to_be_visible()
    expect(page.get_by_role("treeitem", name="trips")).to_have_count(0)
    page.get_by_role("searchbox", name="Search tables and columns").fill("no such name")
    expect(page.get_by_text("Nothing has this name.")).to_be_visible()


def test_columns_have_statistics_from_metadata(page: Page):
    open_table(page, "trips")
    found = {row[0]: row[1:] for row in cells(page)}
    assert found["id"][:3] == ["bigint", "≥ 0", "≤ 19999"]
    assert found["zone"][:3] == ["string", "≥ EWR", "≤ LGA"]
    assert found["fare"][0] == "decimal(9,2)"
    expect(page.locator(".table-facts")).to_contain_text("19,990")
    expect(page.locator(".table-facts")).to_contain_text("Sorted by")


def test_a_version_is_queried_by_a_click(page: Page):
    open_table(page, "trips", "Versions")
    timeline = page.get_by_role("list", name="Versions, the newest first")
    entries = timeline.get_by_role("listitem").filter(has=page.locator("time"))
    expect(entries).to_have_count(4)
    expect(entries.nth(1)).to_contain_text("10 rows deleted")
    expect(entries.nth(2)).to_contain_text("by ")
    entries.nth(2).get_by_role("button", name="Query version 1").click()
    expect(page.locator(".cm-content")).to_contain_text("VERSION AS OF 1")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(grid(page)).to_be_visible()


def test_an_old_version_is_shown_and_left_again(page: Page):
    open_table(page, "trips", "Versions")
    page.get_by_role("button", name="Show version 1", exact=True).click()
    expect(page.get_by_text(re.compile("You look at version 1 of"))).to_be_visible()
    expect(page.locator(".table-facts").first).to_contain_text("20,000")
    page.get_by_role("button", name="Show the newest").click()
    expect(page.locator(".table-facts").first).to_contain_text("19,990")


def test_two_versions_are_compared(page: Page):
    open_table(page, "trips", "Versions")
    page.get_by_role("button", name="Compare version 3 with 2").click()
    expect(page.locator(".table-sum")).to_contain_text("0 rows")
    assert {row[0][2:] for row in cells(page)} == {"added", "rows deleted"}
    page.get_by_label("From version").select_option("0")
    expect(page.locator(".table-sum")).to_contain_text("+19,990 rows")
    assert {row[0][2:] for row in cells(page)} == {"added"}


def test_files_and_health_are_told_with_commands(page: Page, ingested: None):
    page.get_by_role("button", name="Look for new tables").click()
    open_table(page, "crumbs", "Files")
    assert [row[1] for row in cells(page)] == ["1"] * 12
    page.keyboard.press("ArrowRight")
    findings = page.get_by_role("list", name="What care would improve")
    expect(findings).to_contain_text("underlay compact taxi.crumbs")
    findings.get_by_role("button").first.click()
    assert "underlay compact taxi.crumbs" in page.evaluate("() => navigator.clipboard.readText()")


def test_runs_lead_to_the_rows_that_they_rejected(page: Page, ingested: None):
    page.get_by_role("button", name="Look for new tables").click()
    open_table(page, "visits", "Sources")
    expect(page.get_by_role("group", name="Sources, scrolls sideways")).to_contain_text("a.csv")
    expect(page.locator(".table-comment")).to_have_text('<b>visits</b> of "people"')
    page.get_by_title("Query the rejected rows").click()
    page.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(grid(page)).to_contain_text("'x' is not a valid int64")


def test_names_with_markup_and_other_scripts_stay_texts(page: Page):
    open_table(page, "names")
    names = [row[0] for row in cells(page)]
    assert names == [NASTY_NAME, "شارع", "🚕"]
    assert page.title() == "Underlay"
    tree = page.get_by_role("tree", name=TREE)
    tree.get_by_role("treeitem", name="names").press("ArrowRight")
    tree.get_by_role("treeitem", name=f"{NASTY_NAME} string").press("Shift+Enter")
    expect(page.locator(".cm-content")).to_contain_text('"<img src=x onerror=""document.title=1"">"')
    assert page.title() == "Underlay"


PARTS = ["Versions", "Differences", "Blocks", "Files", "Health", "Sources"]


@pytest.mark.parametrize("part", ["Columns", *(pytest.param(one, marks=pytest.mark.storm) for one in PARTS)])
def test_everybody_can_use_the_page_of_a_table(page: Page, ingested: None, part: str):
    open_table(page, {"Sources": "visits", "Health": "crumbs"}.get(part, "trips"), part)
    expect(page.get_by_text("Loading…")).to_have_count(0)
    assert is_clean_everywhere(page) == {}
    screenshots(page, f"table-{part.lower()}")
