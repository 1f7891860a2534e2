"""The page as a user handles it: writes a statement, runs it, and reads the grid."""

from __future__ import annotations

import os

from playwright.sync_api import Locator, Page, expect

from tests.page.browser import PATIENCE_MS

_PATIENCE_MS = float(os.environ.get("UNDERLAY_PATIENCE_MS", PATIENCE_MS))
expect.set_options(timeout=_PATIENCE_MS)


def write(page: Page, sql: str) -> None:
    """Write the text of the tab anew."""
    page.set_default_timeout(_PATIENCE_MS)
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(sql)


def run(page: Page, sql: str, *, keys: str = "Control+Enter") -> Locator:
    """Write a statement and run it; the pane with its result, when it has ended."""
    write(page, sql)
    with page.expect_request(lambda sent: sent.method == "POST" and sent.url.endswith("/v1/statements")):
        page.keyboard.press(keys)
    page.evaluate("() => new Promise(requestAnimationFrame)")  # what ran before is shown no longer
    expect(page.locator(".kept:not([hidden]) .status:not(.running)")).to_be_visible()
    return result(page)


def result(page: Page) -> Locator:
    """The result that is shown."""
    return page.locator(".kept:not([hidden]) .results")


def grid(page: Page) -> Locator:
    """The grid that is shown."""
    return page.locator(".kept:not([hidden]) [role=grid]")


def cell(page: Page, row: int, column: int) -> Locator:
    """A cell, by the number of its row, from 1, and its column, from 0."""
    return grid(page).locator(f'[aria-rowindex="{row + 1}"] > [aria-colindex="{column + 2}"]')


def names(page: Page) -> list[str]:
    """The names of the columns that are drawn."""
    return grid(page).locator("[role=columnheader] .name").all_inner_texts()


def says(page: Page, text: str) -> None:
    """Wait until the page says a text to screen readers."""
    expect(page.locator("[role=status].announced")).to_contain_text(text)


def copied(page: Page) -> str:
    """What is on the clipboard."""
    return str(page.evaluate("() => navigator.clipboard.readText()"))
