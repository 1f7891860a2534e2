"""One Chromium, and pages in it that are watched: whatever they ask of others, and whatever goes wrong in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from hatch_build import ROOT, WEB
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

from tests.page.chromium import find_chromium, libraries_of

PATIENCE_MS = 300_000
"""Until a test gives up: the machine may be busy."""

THEMES = ("light", "dark")
WIDTHS = (1280, 390)
_HEIGHTS = {1280: 800, 390: 844}
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # offline: no name but loopback's is known
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
_LOCAL = ("blob", "data", "about")


@dataclass
class Watched:
    """A context of the browser, and what must be empty at its end: a test that means one of them removes it."""

    context: BrowserContext
    origin: str
    outside: list[str] = field(default_factory=list)
    """Requests to anywhere but the server."""
    errors: list[str] = field(default_factory=list)
    """Errors in the console, among them what the content security policy refused; and errors that nobody caught.
    Answers of the API that are no success are not among them."""

    def open(self, url: str, *, width: int = 1280, theme: str = "light", waits: bool = True) -> Page:
        """A page of the server, ready to be used. Its timeouts are minutes."""
        page = self.context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        look(page, width=width, theme=theme)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._hear)
        page.goto(url)
        if waits:
            page.wait_for_selector("#page > *")
        return page

    def see(self, request: Request) -> None:
        if not request.url.startswith(f"{self.origin}/") and urlsplit(request.url).scheme not in _LOCAL:
            self.outside.append(request.url)

    def _hear(self, message: ConsoleMessage) -> None:
        is_answer = message.text.startswith("Failed to load resource") and "/v1/" in message.location["url"]
        if message.type == "error" and not is_answer:
            self.errors.append(message.text)


@contextmanager
def one_chromium() -> Iterator[Browser]:
    program = find_chromium()
    assert program is not None
    with sync_playwright() as playwright:
        environment = {**os.environ, **libraries_of(program)}
        browser = playwright.chromium.launch(executable_path=program, args=_FLAGS, env=environment, timeout=PATIENCE_MS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched(browser: Browser, origin: str) -> Iterator[Watched]:
    """A context without any memory of earlier ones; fails at its end if the page did what it must not do."""
    context = browser.new_context(reduced_motion="reduce", accept_downloads=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=origin)
    one = Watched(context, origin)
    context.on("request", one.see)
    try:
        yield one
    finally:
        context.close()
    assert one.outside == [], f"the page asked others than its server: {one.outside}"
    assert one.errors == [], f"errors in the browser's console: {one.errors}"


def look(page: Page, *, width: int, theme: str) -> None:
    """The size of the window, and the system's theme."""
    page.set_viewport_size({"width": width, "height": _HEIGHTS.get(width, 800)})
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")


class Violation(NamedTuple):
    """What axe-core found."""

    rule: str
    help: str
    places: list[str]


_AXE = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map(
    (one) => [one.id, one.help, one.nodes.map((node) => `${node.target.join(" ")}: ${node.failureSummary}`)])"""


def axe(page: Page) -> list[Violation]:
    """What is wrong for people who use a keyboard, a screen reader, or need contrast."""
    if not page.evaluate("() => 'axe' in window"):
        # by the debugger's protocol: the content security policy lets no script in
        page.evaluate(f"() => {{ {(WEB / 'node_modules' / 'axe-core' / 'axe.min.js').read_text()} }}")
    return [Violation(*one) for one in page.evaluate(_AXE)]


def is_clean_everywhere(page: Page) -> dict[str, list[Violation]]:
    """What axe finds in both themes and both widths, where it finds anything."""
    found = {}
    for theme in THEMES:
        for width in WIDTHS:
            look(page, width=width, theme=theme)
            if violations := axe(page):
                found[f"{theme} {width}"] = violations
    return found


def screenshots(page: Page, name: str) -> list[Path]:
    """The page as it is, in both themes and both widths. Into the folder that UNDERLAY_SCREENSHOTS names, else
    `build/screenshots`."""
    folder = Path(os.environ.get("UNDERLAY_SCREENSHOTS") or ROOT / "build" / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for theme in THEMES:
        for width in WIDTHS:
            look(page, width=width, theme=theme)
            # two frames: what depends on the size is drawn by then
            page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            paths.append(folder / f"{name}-{theme}-{width}.png")
            page.screenshot(path=paths[-1], animations="disabled", caret="hide")
    return paths


@dataclass
class Frames:
    """How smooth the page was. Times are said, never asserted: the machine may be busy."""

    longest_ms: float = 0.0
    """The longest task of the main thread."""
    over_50_ms: int = 0
    """Tasks of more than 50 ms, which skip frames."""
    count: int = 0
    """Frames that were drawn."""


_WATCH = """() => {
  const seen = { tasks: [], frames: 0, goes: true };
  const watcher = new PerformanceObserver((list) => seen.tasks.push(...list.getEntries().map((one) => one.duration)));
  watcher.observe({ type: "longtask" });
  const tick = () => { seen.frames += 1; if (seen.goes) requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
  window.__frames = { seen, watcher };
}"""
_READ = """() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => {
  const { seen, watcher } = window.__frames;
  seen.tasks.push(...watcher.takeRecords().map((one) => one.duration));
  watcher.disconnect();
  seen.goes = false;
  done([seen.tasks, seen.frames]);
})))"""


@contextmanager
def measuring_frames(page: Page) -> Iterator[Frames]:
    """Measures what happens inside; its numbers are there afterwards."""
    found = Frames()
    page.evaluate(_WATCH)
    yield found
    tasks, found.count = page.evaluate(_READ)
    found.longest_ms, found.over_50_ms = max(tasks, default=0.0), len(tasks)
