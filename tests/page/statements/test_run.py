"""Statements are run, watched, stopped, and their errors shown."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.page.browser import Watched
from tests.page.sql import cell, grid, names, result, run, says, write
from tests.server.conftest import Served

ENDLESS = "select count(*) from range(1000000000) a, range(100000) b where a.range + b.range = -1"


def test_a_statement_is_run_and_its_rows_are_exact(page: Page):
    run(
        page,
        "select 9223372036854775807 as big, 18446744073709551615::ubigint as bigger, 0.1::decimal(38, 20) as exact,"
        " sum(9007199254740993) as huge, null as nothing, '' as empty, 'NULL' as text",
    )
    expect(cell(page, 1, 0)).to_have_text("9223372036854775807")
    expect(cell(page, 1, 1)).to_have_text("18446744073709551615")
    expect(cell(page, 1, 2)).to_have_text("0.10000000000000000000")
    expect(cell(page, 1, 3)).to_have_text("9007199254740993")
    looks = [cell(page, 1, column).get_attribute("class") for column in (4, 5, 6)]
    assert [("null" in look, "empty" in look) for look in map(str, looks)] == [
        (True, False),
        (False, True),
        (False, False),
    ]
    assert names(page) == ["big", "bigger", "exact", "huge", "nothing", "empty", "text"]
    says(page, "1 rows in")


def test_the_statement_at_the_cursor_runs_and_all_run_in_order(page: Page):
    run(page, "select 1 as first;\nselect 2 as second")
    expect(grid(page).locator("[role=columnheader] .name")).to_have_text(["second"])
    page.keyboard.press("Control+Home")
    page.keyboard.press("Control+Enter")
    expect(grid(page).locator(".name")).to_have_text(["first"])
    page.keyboard.press("Control+Shift+Enter")
    expect(page.locator(".run-choice option")).to_have_count(2)
    expect(grid(page).locator(".name")).to_have_text(["second"])
    page.locator(".run-choice select").select_option("0")
    expect(grid(page).locator(".name")).to_have_text(["first"])


def test_run_all_ends_with_the_first_error(page: Page):
    write(page, "select 1; select fair from taxi.trips; select 3")
    page.keyboard.press("Control+Shift+Enter")
    expect(result(page).locator(".problem")).to_be_visible()
    expect(page.locator(".run-choice option")).to_have_count(2)


def test_a_wrong_name_is_underlined_and_mended_by_a_click(page: Page):
    run(page, "select 1;\n-- 😀\nselect '😀é', fair\nfrom taxi.trips limit 1")
    expect(page.locator(".cm-wrong")).to_have_text("fair")
    expect(result(page).get_by_role("button", name="Go to line")).to_have_text("Go to line 3, column 14")
    result(page).get_by_role("button", name="Use fare").click()
    expect(page.locator(".cm-content")).to_contain_text("select '😀é', fare")
    page.keyboard.press("Control+Enter")
    expect(grid(page).locator(".name")).to_have_text(["'😀é'", "fare"])
    expect(page.locator(".cm-wrong")).to_have_count(0)


def test_a_wrong_table_is_mended_by_a_click(page: Page):
    run(page, "select count(*) from taxi.trip")
    result(page).get_by_role("button", name="Use taxi.trips").click()
    page.keyboard.press("Control+Enter")
    expect(cell(page, 1, 0)).to_have_text("19990")


def test_a_long_statement_is_stopped_and_says_when(page: Page):
    write(page, ENDLESS)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".cm-running")).to_have_count(1)
    expect(page.locator(".status.running .elapsed")).to_contain_text("s")
    page.locator(".status.running").get_by_role("button", name="Stop").click()
    expect(page.locator(".status.stopped")).to_contain_text("Stopped after")
    says(page, "Stopped after")
    expect(page.locator(".cm-running")).to_have_count(0)
    run(page, "select 1 as after")
    expect(grid(page).locator("[role=columnheader] .name")).to_have_text(["after"])


def test_escape_in_the_result_stops_only_this_tab(page: Page):
    write(page, ENDLESS)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".status.running")).to_be_visible()
    page.keyboard.press("Alt+t")
    write(page, ENDLESS)
    page.keyboard.press("Control+Enter")
    expect(page.locator('.tab [aria-label="running"]')).to_have_count(2)
    page.keyboard.press("F6")
    page.keyboard.press("Escape")
    expect(page.locator(".kept:not([hidden]) .status.stopped")).to_be_visible()
    expect(page.locator('.tab [aria-label="running"]')).to_have_count(1)
    page.keyboard.press("Alt+1")
    page.get_by_role("toolbar", name="Statement").get_by_role("button", name="Stop").click()
    expect(page.locator(".kept:not([hidden]) .status.stopped")).to_be_visible()


def test_an_error_after_the_first_rows_is_seen(page: Page):
    late = "select cast(case when range = 4999999 then 'x' else '1' end as int) from range(5000000)"
    shown = run(page, late)
    expect(shown.locator(".problem")).to_contain_text("Could not convert string 'x'")
    expect(page.locator(".status.failed")).to_contain_text("Failed after")


def test_no_rows_and_no_result_say_so(page: Page):
    shown = run(page, "select * from odd.nothing")
    expect(shown).to_contain_text("No rows")
    expect(shown.locator(".columns li")).to_have_text(["a bigint", "b string"])
    write(page, "")
    page.keyboard.press("Control+Enter")
    says(page, "There is no statement to run")


def test_parameters_become_fields(page: Page):
    write(page, "select count(*) as n, $text as t from taxi.trips where id >= $least")
    page.get_by_label("$text", exact=True).fill("7")
    page.get_by_label("Type of $text").select_option("string")
    page.get_by_label("$least", exact=True).fill("19000")
    page.get_by_label("$least", exact=True).press("Enter")
    expect(cell(page, 1, 0)).to_have_text("1000")
    expect(cell(page, 1, 1)).to_have_text("7")
    expect(grid(page).locator(".type")).to_have_text(["bigint", "string"])


def test_the_result_tells_blocks_version_and_engine(page: Page):
    shown = run(page, "select * from taxi.trips where \"at\" < timestamp '2024-01-01 10:00:00'")
    expect(shown.locator(".status")).to_contain_text("of 21 blocks")
    expect(shown.locator(".status")).to_contain_text(re.compile(r"taxi.trips version \d+, (just now|\d+ (s|min) ago)"))
    shown.locator(".reason summary").click()
    expect(shown.locator(".reason")).to_contain_text("this server has no other engine")


def test_tables_are_read_as_of_a_time(page: Page):
    page.get_by_role("button", name="As of…").click()
    page.get_by_label("As of").fill("2000-01-01T00:00:00")
    shown = run(page, "select count(*) from taxi.trips")
    expect(shown.locator(".problem")).to_be_visible()
    page.get_by_role("button", name="Read the newest versions").click()
    run(page, "select count(*) from taxi.trips")
    expect(cell(page, 1, 0)).to_have_text("19990")


def test_rows_that_the_server_no_longer_keeps_are_run_again(page: Page, site: Served):
    with page.expect_response("**/v1/statements") as answer:
        run(page, "select range as n from range(50000)")
    page.request.delete(f"{site.url}/v1/statements/{answer.value.json()['id']}")
    grid(page).focus()
    page.keyboard.press("Control+End")
    expect(result(page).locator(".late")).to_contain_text("no longer keeps")
    result(page).locator(".late").get_by_role("button", name="Run again").click()
    expect(cell(page, 1, 0)).to_have_text("0")


def test_a_server_that_is_gone_is_said(web: Watched, site: Served):
    page = web.open(f"{site.url}/")
    page.context.set_offline(True)
    shown = run(page, "select 1")
    expect(shown.locator(".problem")).to_contain_text("The server does not answer")
    expect(page.locator(".connection")).to_contain_text("The server does not answer")
    page.context.set_offline(False)
    run(page, "select 1")
    expect(page.locator(".connection")).to_contain_text("Connected")
