"""The page as it is served: whole, offline, behind a proxy, within its policy and its size."""

from __future__ import annotations

import gzip
from urllib.parse import urlsplit

from hatch_build import BUILT
from playwright.sync_api import Browser, Page

from tests.page.browser import PATIENCE_MS, Watched, is_clean_everywhere, measuring_frames, screenshots, watched
from tests.page.proxy import proxied
from tests.server.conftest import Served

MOST_BYTES = 250_000
"""All scripts and styles of the page, gzipped."""
BUSY = "const end = performance.now() + 120; while (performance.now() < end);"


def test_it_loads_without_an_error_and_without_a_request_to_others(page: Page):
    assert page.title() == "Underlay"


def test_everybody_can_use_it(page: Page):
    assert is_clean_everywhere(page) == {}


def test_it_works_behind_a_proxy_below_a_path(chromium: Browser, site: Served):
    with proxied(site.url, "/tools/sql") as url, watched(chromium, url.removesuffix("/tools/sql/")) as web:
        page = web.open(url)
        paths = page.evaluate("() => performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname)")
        assert len(paths) >= 2
        assert [path for path in paths if not path.startswith("/tools/sql/")] == []


def test_a_link_on_another_site_opens_it_whole(web: Watched, site: Served):
    other = site.url.replace("127.0.0.1", "localhost")  # to browsers another site
    page = web.context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{other}/")
    page.evaluate(f"() => document.body.insertAdjacentHTML('beforeend', '<a id=link href=\"{site.url}/\">x</a>')")
    page.evaluate("() => document.getElementById('link').click()")
    page.wait_for_url(f"{site.url}/**")
    page.wait_for_selector("#page > *")
    assert {urlsplit(one).hostname for one in web.outside} == {"localhost"}
    web.outside.clear()


def test_what_the_policy_forbids_does_not_run(web: Watched, site: Served):
    page = web.open(f"{site.url}/")
    page.evaluate(
        """() => {
          document.body.insertAdjacentHTML("beforeend", '<img src="assets/none.png" onerror="window.ran = 1">');
          const script = document.createElement("script");
          script.textContent = "window.ran = 2";
          document.body.append(script);
          const style = document.createElement("style");
          style.textContent = "body { --injected: 1 }";
          document.body.append(style);
        }"""
    )
    page.wait_for_function("() => performance.getEntriesByName(new URL('assets/none.png', document.baseURI)).length")
    assert page.evaluate("() => window.ran ?? null") is None
    assert page.evaluate("() => getComputedStyle(document.body).getPropertyValue('--injected')") == ""
    refused = [error for error in web.errors if "Content Security Policy" in error]
    assert len(refused) == 3, web.errors
    web.errors.clear()


def test_a_style_with_the_nonce_of_the_page_is_allowed(page: Page):
    page.evaluate(
        """() => {
          const style = document.createElement("style");
          style.nonce = document.querySelector("meta[property=csp-nonce]").nonce;
          style.textContent = "body { --ours: 1 }";
          document.head.append(style);
        }"""
    )
    assert page.evaluate("() => getComputedStyle(document.body).getPropertyValue('--ours')") == "1"


def test_it_is_small(built: None):
    files = [path for path in (BUILT / "assets").iterdir() if path.suffix in (".js", ".css")]
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 9)) for path in files}
    assert 0 < sum(sizes.values()) <= MOST_BYTES, sizes


def test_the_tools_of_these_tests_see_a_long_task_and_take_pictures(page: Page, monkeypatch, tmp_path):
    with measuring_frames(page) as frames:
        page.evaluate(f"() => new Promise((done) => setTimeout(() => {{ {BUSY} done(); }}))")
    assert frames.over_50_ms >= 1
    assert frames.longest_ms >= 100
    monkeypatch.setenv("UNDERLAY_SCREENSHOTS", str(tmp_path))
    paths = screenshots(page, "start")
    assert len({path.read_bytes() for path in paths}) == 4
