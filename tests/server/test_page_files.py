"""The page over HTTP, without a browser: what it is sent with, who may open it, and what comes when it is not built."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from tests.server.conftest import Served, running
from underlay.errors import InvalidRequest
from underlay.server.common.settings import ServerSettings
from underlay.server.page import built_page
from underlay.server.serve import check_settings

PATH = "/tools/sql"
SCRIPT = b"console.log('ready');" * 50
INDEX = b'<meta property="csp-nonce" nonce="NONCE-OF-THIS-ANSWER"><script src="./assets/a-1.js"></script>'
PLAIN = {
    None: bytes,
    "br": lambda raw: pa.decompress(raw, len(SCRIPT), codec="brotli", asbytes=True),
    "gzip": gzip.decompress,
}


def build(folder: Path) -> None:
    """What a build leaves."""
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_bytes(INDEX)
    (folder / "licenses.txt").write_text("preact 11 (MIT)")
    script = folder / "assets" / "a-1.js"
    script.write_bytes(SCRIPT)
    script.with_name("a-1.js.gz").write_bytes(gzip.compress(SCRIPT))
    script.with_name("a-1.js.br").write_bytes(pa.compress(SCRIPT, codec="brotli", asbytes=True))
    (folder / "assets" / "source.map").write_text("not sent")


@pytest.fixture(scope="module")
def paged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server below a path, whose page is built only after its start."""
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(built_page.read_page, "__defaults__", (folder / "built",))
        with running(folder, root_path=PATH, running=1) as served:
            assert "make page" in httpx.get(served.url).text
            build(folder / "built")
            yield served


@pytest.fixture
def browser(paged: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=paged.url) as one:
        assert one.get("/").status_code == 200
        yield one


def test_each_answer_allows_styles_by_a_nonce_of_its_own_and_no_inline_scripts(browser: httpx.Client):
    seen = set()
    for _ in range(2):
        answer = browser.get("/")
        policy = dict(rule.strip().split(" ", 1) for rule in answer.headers["content-security-policy"].split(";"))
        assert (policy["default-src"], policy["script-src"], policy["connect-src"]) == ("'none'", "'self'", "'self'")
        assert (policy["frame-ancestors"], policy["base-uri"]) == ("'none'", "'none'")
        assert answer.headers.get_list("content-security-policy") == [answer.headers["content-security-policy"]]
        nonce = policy["style-src"].removeprefix("'self' 'nonce-").removesuffix("'")
        assert f'nonce="{nonce}"' in answer.text
        assert "NONCE" not in answer.text
        seen.add(nonce)
    assert len(seen) == 2
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_assets_are_kept_for_ever_and_come_compressed(browser: httpx.Client):
    for accepted, encoding in (("br, gzip", "br"), ("gzip", "gzip"), ("br;q=0, identity", None), ("", None)):
        with browser.stream("GET", "/assets/a-1.js", headers={"Accept-Encoding": accepted}) as answer:
            raw = b"".join(answer.iter_raw())
        assert answer.headers.get("content-encoding") == encoding
        assert PLAIN[encoding](raw) == SCRIPT
        assert answer.headers["vary"] == "Accept-Encoding"
        assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    known = browser.get("/assets/a-1.js", headers={"If-None-Match": answer.headers["etag"]})
    assert (known.status_code, known.content) == (304, b"")
    assert browser.head("/assets/a-1.js").status_code == 200
    licences = browser.get("/licenses.txt")
    assert (licences.text, licences.headers["cache-control"]) == ("preact 11 (MIT)", "no-cache")


@pytest.mark.parametrize(
    "path",
    [
        "/assets/source.map",
        "/assets/",
        "/assets/..%2f..%2fbuilt_page.py",
        "/assets/%2e%2e/index.html",
        "/assets//etc/passwd",
        "/index.html",
        "/built_page.py",
        "/assets/a-1.js.gz",
        "/assets/a-1.js%00",
        "/tools",
    ],
)
def test_nothing_else_can_be_asked_for(browser: httpx.Client, path: str):
    answer = browser.get(path)
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


def test_it_is_below_the_proxys_path_whether_the_proxy_takes_that_away_or_not(browser: httpx.Client):
    assert browser.get(f"{PATH}/").text.startswith("<meta")
    assert browser.get(f"{PATH}/assets/a-1.js").status_code == 200
    assert browser.get(f"{PATH}/healthz").json() == {"status": "alive"}
    moved = browser.get(PATH)
    assert (moved.status_code, moved.headers["location"]) == (308, f"{PATH}/")
    assert browser.get(f"{PATH}s/").status_code == 404
    assert browser.get("/openapi.json").json()["servers"] == [{"url": PATH}]


@pytest.mark.parametrize("path", ["sql", "/sql/", "/", "//evil.example", "/a?b", "/a b", "/a\r\nx: y", "/ä"])
def test_a_path_that_no_proxy_has_is_refused(path: str):
    with pytest.raises(InvalidRequest, match="root-path"):
        check_settings(ServerSettings(lake="/lake", spool=Path("/spool"), root_path=path))


LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


def test_a_link_on_another_site_opens_the_page_and_nothing_else(browser: httpx.Client, paged: Served):
    assert browser.get("/", headers=LINK).status_code == 200
    assert browser.get(f"{PATH}/", headers=LINK).status_code == 200
    assert browser.get("/", headers={**LINK, "sec-fetch-dest": "iframe"}).status_code == 403
    assert browser.get("/", headers={**LINK, "sec-fetch-mode": "no-cors"}).status_code == 403
    assert browser.post("/", headers=LINK).status_code == 403
    assert browser.get("/", headers={**LINK, "host": "evil.example"}).status_code == 421
    for path in ("/v1/info", "/assets/a-1.js", "/openapi.json", "/v1/sql?query=select+1"):
        assert browser.get(path, headers=LINK).status_code == 403
    assert browser.get("/v1/info").status_code == 401, "the page's files need no token, its requests do"
