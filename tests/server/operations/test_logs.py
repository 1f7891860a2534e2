"""What a server with `--log-format json` writes: whole lines of JSON, and nothing secret in them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.cli.command import SCRIPT
from tests.server.conftest import PATIENCE, make_lake, run
from underlay.errors import InvalidRequest
from underlay.server.common.settings import ServerSettings
from underlay.server.serve import check_settings

SECRET = "ul_0123456789ab_deadbeefdeadbeefdeadbeefdeadbeef"
LATE = "select cast(case when i = 900000 then 'hidden' else '1' end as int) n from range(1000000) t(i)"


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """Those of a server that answered, refused, and cut an answer."""
    folder = tmp_path_factory.mktemp("logs")
    make_lake(folder / "lake")
    options = ["--port", "0", "--lake", "lake", "--spool", "spool", "--workers", "1", "--engine", "duckdb"]
    command = [SCRIPT, "serve", *options, "--log-format", "json"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        try:
            with httpx.Client(base_url=json.loads(first)["url"], timeout=PATIENCE) as client:
                assert run(client, "select 'hidden', count(*) from shop.orders").status_code == 200
                client.get("/v1/sql", params={"query": "select 'hidden'"})
                client.get("/v1/info", headers={"Authorization": f"Bearer {SECRET}"})
                client.get("/v1/nothing%0d%0aforged", headers={"Host": "evil.example"})
                with pytest.raises(httpx.RemoteProtocolError):
                    run(client, LATE, headers={"Accept": "text/csv"})
                kept = client.post("/v1/statements", json={"sql": "select 1", "wait": 60}).json()["id"]
                link = client.post(f"/v1/statements/{kept}/links", params={"format": "csv"}).json()["url"]
                secret = link.rpartition("/")[2].partition("?")[0]
                assert client.get(link).status_code == 200
        finally:
            process.terminate()
        rest = process.stderr.read()
    assert not [word for word in ("hidden", SECRET, secret) if word in first + rest]
    return [json.loads(line) for line in (first + rest).splitlines()]


def test_it_says_where_it_serves(lines: list[dict[str, object]]):
    assert (lines[0]["message"], lines[0]["level"]) == ("serving", "info")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", str(lines[0]["url"]))


def test_each_request_has_a_line_with_who_what_and_how_it_ended(lines: list[dict[str, object]]):
    asked = [line for line in lines if line["logger"] == "underlay.requests"]
    # a line is written when the work of a request has ended, by when the client may have sent the next one
    ended = [(line["method"], re.sub("st_.*", "st_…", str(line["path"])), line["status"]) for line in asked]
    assert sorted(ended) == [
        ("GET", "/v1/info", 200),
        ("GET", "/v1/links/…", 200),
        ("GET", "/v1/nothing\r\nforged", 421),
        ("GET", "/v1/sql", 200),
        ("POST", "/v1/sql", 200),
        ("POST", "/v1/sql", 200),
        ("POST", "/v1/statements", 200),
        ("POST", "/v1/statements/st_…", 201),
    ]
    assert [line["path"] for line in asked if not line["is_whole"]] == ["/v1/sql"]
    assert all(line["ms"] >= 0 and line["client"] == "127.0.0.1" for line in asked)  # type: ignore[operator]
    callers = {line["path"]: line.get("caller") for line in asked}
    assert (callers["/v1/info"], callers["/v1/sql"], callers["/v1/nothing\r\nforged"]) == (
        "anonymous",
        "anonymous",
        None,
    )
    statements = [str(line["statement"]) for line in asked if line["path"] == "/v1/sql"]
    assert all(one.startswith("st_") for one in statements)
    assert all(int(str(line["bytes"])) > 50 for line in asked if line["path"] == "/v1/info")


def test_a_cut_answer_is_no_error_of_the_server(lines: list[dict[str, object]]):
    assert [line for line in lines if line["level"] in ("error", "critical")] == []


def test_another_format_is_refused(tmp_path: Path):
    with pytest.raises(InvalidRequest, match="log-format"):
        check_settings(ServerSettings(lake="x", spool=tmp_path, log_format="xml"))
