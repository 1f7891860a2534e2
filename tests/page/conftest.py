"""For each module of tests one server, whose page is built from these sources, and one Chromium."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hatch_build import BUILT, CannotBuild, build_page
from playwright.sync_api import Browser, Page

from tests.page.browser import Watched, one_chromium, watched
from tests.page.chromium import MISSING, find_chromium
from tests.page.lake import fill
from tests.server.conftest import Served, running

IS_CI = bool(os.environ.get("CI"))


@pytest.fixture(scope="session")
def built() -> None:
    """The page, built from the sources as they are now."""
    try:
        build_page()
    except CannotBuild as error:
        # one that was built elsewhere is tested as it is
        if not (BUILT / "index.html").is_file():
            missing(str(error))


@pytest.fixture(scope="module")
def chromium(built: None) -> Iterator[Browser]:
    if find_chromium() is None:
        missing(MISSING)
    with one_chromium() as browser:
        yield browser


def missing(what: str) -> None:
    """Skip, but not in CI, which has to notice."""
    (pytest.fail if IS_CI else pytest.skip)(what)


@pytest.fixture(scope="module")
def site(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that anybody on the machine may read, so that the page needs no token."""
    with running(tmp_path_factory.mktemp("site"), fill=fill, with_tokens=False) as one:
        yield one


@pytest.fixture
def web(chromium: Browser, site: Served) -> Iterator[Watched]:
    """A fresh context; pages of it fail the test at its end for what they must not do."""
    with watched(chromium, site.url) as one:
        yield one


@pytest.fixture
def page(web: Watched, site: Served) -> Page:
    """The page, just opened."""
    return web.open(f"{site.url}/")
