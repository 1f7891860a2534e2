"""What the page keeps: tabs, closed tabs, history, keys; links; logging in; and everything by keyboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page.browser import Watched, is_clean_everywhere, screenshots, watched
from tests.page.lake import fill
from tests.page.sql import cell, copied, grid, result, run, says, write
from tests.server.conftest import Served, running


@pytest.fixture(scope="module")
def locked(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that wants tokens."""
    with running(tmp_path_factory.mktemp("locked"), fill=fill) as one:
        yield one


def titles(page: Page) -> list[str]:
    return page.locator(".tabs [role=tab] bdi").all_inner_texts()


def test_tabs_are_kept_closed_ones_come_back_and_all_go_to_a_file(web: Watched, site: Served, tmp_path: Path):
    page = web.open(f"{site.url}/")
    write(page, "select 'first'")
    page.keyboard.press("Alt+t")
    write(page, "select 'second'")
    page.locator(".tabs [role=tab]").nth(1).dblclick()
    page.get_by_label("Name of the tab").fill('<b>"Two"</b>')
    page.keyboard.press("Enter")
    page.reload()
    expect(page.locator(".cm-content")).to_contain_text("select 'second'")
    assert titles(page) == ["Query 1", '<b>"Two"</b>']
    page.locator(".cm-content").click()
    page.keyboard.press("Alt+w")
    expect(page.locator(".cm-content")).to_contain_text("select 'first'")
    with page.expect_download() as download:
        page.get_by_role("button", name="More of tabs").click()
        page.get_by_role("menuitem", name="Export all tabs").click()
    saved = json.loads(Path(download.value.path()).read_text())
    assert [(tab["title"], tab["text"]) for tab in saved["tabs"]] == [("Query 1", "select 'first'")]
    page.keyboard.press("Alt+Shift+T")
    expect(page.locator(".cm-content")).to_contain_text("select 'second'")
    file = tmp_path / "mine.sql"
    file.write_text("select 'from a file'")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="More of tabs").click()
        page.get_by_role("menuitem", name="Import tabs").click()
    chooser.value.set_files([file])
    expect(page.locator(".cm-content")).to_contain_text("from a file")
    assert titles(page) == ["Query 1", '<b>"Two"</b>', "mine"]
    page.keyboard.press("Alt+1")
    expect(page.locator(".cm-content")).to_contain_text("select 'first'")


def test_a_link_shows_its_text_and_does_not_run_it(web: Watched, site: Served):
    page = web.open(f"{site.url}/")
    write(page, "select 'a & b = 100 %', '#' -- 😀")
    page.keyboard.press("Control+s")
    says(page, "Copied the link")
    link = copied(page)
    assert link.startswith(f"{site.url}/#sql=")
    asked: list[str] = []
    other = web.context.new_page()
    other.on("request", lambda request: asked.append(request.url))
    other.goto(link)
    expect(other.locator(".cm-content")).to_contain_text("select 'a & b = 100 %', '#' -- 😀")
    expect(other.locator(".results:visible")).to_contain_text("its rows appear here")
    assert [url for url in asked if url.endswith("/v1/statements")] == []
    assert "#" not in other.url
    assert all("sql=" not in url.partition("#")[0] for url in asked), "the text is never sent"


def test_the_history_is_searched_and_opened(page: Page):
    run(page, "select 1 as wanted")
    run(page, "select fair from taxi.trips")
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="History").click()
    expect(page.locator(".history li")).to_have_count(2)
    expect(page.locator(".history li").first).to_contain_text("fair")
    expect(page.locator(".history li .bad")).to_contain_text("fair")
    page.get_by_label("Search the history").fill("wanted")
    expect(page.locator(".history li")).to_have_count(1)
    expect(page.locator(".history li")).to_contain_text("1 row")
    page.locator(".history li button").click()
    expect(page.locator(".cm-content")).to_have_text("select 1 as wanted")


def test_completion_knows_columns_tables_and_functions(page: Page):
    write(page, "with c as (select id as number from taxi.trips) select t. from taxi.trips t, c where c.")
    page.keyboard.press("Control+Space")
    choices = page.locator(".cm-tooltip-autocomplete li")
    expect(choices).to_have_text(["numberc"])
    page.keyboard.press("Escape")
    page.keyboard.press("Home")
    for _ in range(len("with c as (select id as number from taxi.trips) select t.")):
        page.keyboard.press("ArrowRight")
    page.keyboard.type("f")
    expect(choices).to_have_text(["faredecimal(9,2) · t"])
    choices.first.click()
    expect(page.locator(".cm-content")).to_contain_text("select t.fare from")
    write(page, "select date_tru")
    page.keyboard.press("Control+Space")
    expect(choices.first).to_have_text("date_trunc(part, timestamp)")
    choices.first.click()
    expect(page.locator(".cm-content")).to_have_text("select date_trunc()")
    write(page, "select * from odd.")
    expect(choices).to_have_count(3)
    page.keyboard.press("Alt+Shift+F")
    says(page, "Formatted")
    expect(page.locator(".cm-content")).to_have_text("select *from odd.")


def test_keys_are_listed_and_changed(web: Watched, site: Served):
    page = web.open(f"{site.url}/")
    page.keyboard.press("F1")
    dialog = page.get_by_role("dialog", name="Keys")
    dialog.get_by_role("button", name="Key of: Run the selection").click()
    page.keyboard.press("F9")
    expect(dialog.get_by_role("button", name="Key of: Run the selection")).to_have_text("F9")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    run(page, "select 1 as x", keys="F9")
    expect(cell(page, 1, 0)).to_have_text("1")
    page.keyboard.press("Escape")
    page.keyboard.press("F6")
    page.keyboard.press("?")
    page.get_by_role("button", name="Usual keys").click()
    expect(dialog.get_by_role("button", name="Key of: Run the selection")).to_have_text("Ctrl+Enter")


def test_everything_is_reached_by_keyboard(page: Page):
    page.locator("body").press("F6")  # the catalog
    expect(page.locator(".catalog :focus")).to_have_count(1)
    page.keyboard.press("F6")
    page.keyboard.insert_text("select range as n from range(100)")
    page.keyboard.press("Control+Enter")
    expect(cell(page, 1, 0)).to_have_text("0")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")  # out of the editor
    expect(page.get_by_role("separator", name="Height of the text")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("separator", name="Height of the text")).to_have_attribute("aria-valuenow", "44")
    page.keyboard.press("Tab")
    expect(page.get_by_role("tab", name="Result")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Chart")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", name="Result")).to_be_focused()
    for name in ("DuckDB", "Find", "Copy the selected cells", "Download all rows"):
        page.keyboard.press("Tab")
        expect(page.locator(":focus")).to_contain_text(name.split()[0])
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="CSV")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Download all rows")).to_be_focused()
    page.keyboard.press("Tab")
    expect(grid(page)).to_be_focused()
    page.keyboard.press("ArrowDown")
    active = grid(page).get_attribute("aria-activedescendant")
    expect(page.locator(f"#{active}")).to_have_text("1")
    page.keyboard.press("Shift+F6")
    expect(page.locator(".cm-content")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("button", name="As of…")).to_be_focused()


def test_a_token_sees_its_tables_only_and_is_asked_for(chromium: Browser, locked: Served):
    with watched(chromium, locked.url) as web:
        page = web.open(f"{locked.url}/")
        dialog = page.get_by_role("dialog", name="Log in")
        dialog.get_by_label("Token").fill("ul_wrong")
        dialog.get_by_role("button", name="Log in").click()
        expect(dialog.get_by_role("alert")).to_be_visible()
        dialog.get_by_label("Token").fill(locked.tokens["reader"])
        dialog.get_by_role("button", name="Log in").click()
        expect(dialog).to_have_count(0)
        expect(page.locator(".caller")).to_have_text("reader")
        expect(page.locator(".catalog")).to_contain_text("shop")
        expect(page.locator(".catalog")).not_to_contain_text("secret")
        shown = run(page, "select * from secret.pay")
        expect(shown.locator(".problem")).to_contain_text("there is no table secret.pay")
        run(page, "select count(*) from shop.orders")
        expect(cell(page, 1, 0)).to_have_text("5000")
        shown = run(page, "delete from shop.orders")
        expect(shown.locator(".problem")).to_be_visible()
        assert page.evaluate("() => JSON.stringify([{...sessionStorage}, {...localStorage}])") == "[{},{}]"
        page.reload()
        dialog.get_by_label("Token").fill(locked.tokens["admin"])
        dialog.get_by_label("Remember it").check()
        dialog.get_by_role("button", name="Log in").click()
        expect(dialog).to_have_count(0)
        shown = run(page, "create table new.made (a bigint)")
        expect(shown).to_contain_text("The change is committed. The table is at version 0.")
        shown = run(page, "insert into new.made values (1), (2)")
        expect(shown).to_contain_text("The change is committed. 2 rows added. The table is at version 1.")
        page.reload()
        expect(page.locator(".caller")).to_have_text("admin")
        page.get_by_role("button", name="Log out").click()
        expect(dialog).to_be_visible()


VIEWS = {
    "result": "select * from taxi.trips where fare > 20 order by fare desc",
    "nested": "select {'name': 'Ada', 'tags': ['a', 'b'], 'at': date '2024-05-01'} as person, null as nothing",
    "error": "select zone, avg(fair)\nfrom taxi.trips\ngroup by zone",
}


@pytest.mark.parametrize("view", [*VIEWS, "history", "keys"])
def test_a_view_is_usable_by_everybody(page: Page, view: str):
    shown = run(page, VIEWS.get(view, VIEWS["result"]))
    page.keyboard.press("Escape")
    if view == "nested":
        expect(cell(page, 1, 1)).to_have_text("NULL")
        grid(page).focus()
        page.keyboard.press("Enter")
    elif view == "history":
        page.get_by_role("tab", name="History").click()
    elif view == "keys":
        page.keyboard.press("F1")
    elif view == "result":
        expect(cell(page, 1, 0)).not_to_have_text("…")
    else:
        expect(shown.locator(".problem")).to_be_visible()
    assert is_clean_everywhere(page) == {}
    screenshots(page, view)


def test_at_four_hundred_percent_the_page_scrolls_in_one_direction(page: Page):
    page.set_viewport_size({"width": 320, "height": 256})
    run(page, "select range as n from range(1000)")
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    grid(page).focus()
    page.keyboard.press("Control+End")
    expect(cell(page, 1000, 0)).to_have_text("999")
    assert result(page).bounding_box()["height"] > 200


def test_each_tab_keeps_its_text_its_undo_and_its_rows(page: Page):
    run(page, "select 'one' as t")
    page.keyboard.press("Alt+t")
    run(page, "select 'two' as t")
    page.locator(".catalog").get_by_role("treeitem", name="orders").focus()
    page.keyboard.press("Enter")  # a table's page, in a tab of its own
    expect(page.locator(".table-page")).to_be_visible()
    page.keyboard.press("Alt+1")
    expect(cell(page, 1, 0)).to_have_text("one")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type(" -- mine")
    page.keyboard.press("Alt+2")
    expect(page.locator(".cm-content")).to_have_text("select 'two' as t")
    page.keyboard.press("Alt+1")
    expect(page.locator(".cm-content")).to_have_text("select 'one' as t -- mine")
    page.keyboard.press("Control+z")
    expect(page.locator(".cm-content")).to_have_text("select 'one' as t")
