"""`underlay serve` and `underlay token` as their users run them, and what a server finds and leaves on its disk."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from tests.cli.command import SCRIPT, underlay
from tests.server.conftest import PATIENCE, Served, is_alive, make_lake
from underlay.cli.serve.run import choose_engine
from underlay.errors import InvalidRequest, Unsupported
from underlay.server.access.tokens import TokenFile
from underlay.server.common.settings import ServerSettings
from underlay.server.serve import check_settings
from underlay.server.statements.spool import SpoolFolder


def test_a_process_that_is_told_to_stop_sends_what_runs_to_its_end(tmp_path: Path):
    make_lake(tmp_path / "lake")
    options = ["--port", "0", "--workers", "1", "--lake", "lake", "--spool", "spool"]
    with subprocess.Popen([SCRIPT, "serve", *options], stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        try:
            said = process.stderr.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+", said)
            assert found, said
            with httpx.Client(base_url=found[0], timeout=PATIENCE) as client:
                assert client.get("/v1/info").json()["caller"]["name"] == "anonymous"
                assert client.post("/v1/sql", json={"sql": "delete from shop.orders"}).status_code == 403
                assert client.post("/v1/statements", json={"sql": "select 1"}).json()["rows"] == [[1]]
                asked = {"sql": "select i from range(3000000) t(i)"}
                with client.stream("POST", "/v1/sql", json=asked, headers={"Accept": "text/csv"}) as answer:
                    parts = answer.iter_bytes()
                    rows = next(parts).count(b"\n")  # far more than sockets hold is left to be sent
                    workers = _children(process.pid)
                    process.send_signal(signal.SIGTERM)
                    rows += sum(part.count(b"\n") for part in parts)
            assert rows == 3_000_001
            process.wait(PATIENCE)
        finally:
            process.kill()
    assert workers
    assert [pid for pid in workers if is_alive(pid)] == []
    assert list((tmp_path / "spool").iterdir()) == []


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "127.0.0.1.example.org", ""])
def test_anybody_may_read_on_loopback_only(tmp_path: Path, host: str):
    with pytest.raises(InvalidRequest, match="loopback"):
        check_settings(ServerSettings(lake="x", spool=tmp_path, host=host))
    check_settings(ServerSettings(lake="x", spool=tmp_path, host=host, tokens=tmp_path / "tokens.json"))


def test_a_server_says_at_its_start_what_runs_queries_and_why():
    assert choose_engine(None, "local[*]", None) == (
        "auto",
        "Queries run on DuckDB; on Spark (local[*]) those that ask for it, or read a lot of data.",
    )
    assert choose_engine(None, "local[*]", "no Java") == ("duckdb", "Queries run on DuckDB: no Java.")
    assert choose_engine("duckdb", "local[*]", None) == ("duckdb", "Queries run on DuckDB.")
    assert choose_engine("spark", "spark://a:7077", None)[0] == "spark"
    for asked in ("auto", "spark"):
        with pytest.raises(Unsupported, match="no Java"):
            choose_engine(asked, "local[*]", "no Java")
    with pytest.raises(InvalidRequest, match="--engine"):
        choose_engine("sqlite", "local[*]", None)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "::1", "[::1]"])
def test_anybody_on_this_machine_only_reads(tmp_path: Path, host: str):
    check_settings(ServerSettings(lake="x", spool=tmp_path, host=host))
    with pytest.raises(InvalidRequest, match="only reads"):
        check_settings(ServerSettings(lake="x", spool=tmp_path, host=host, is_writable=True))


def test_tokens_are_made_listed_and_revoked_and_their_file_holds_hashes(tmp_path: Path):
    path = tmp_path / "state" / "tokens.json"
    here = ["--tokens", path]
    reading = TokenFile(path)
    made = underlay("token", "create", "ada", "--read", "taxi", "--write", "shop.orders", "--expires", "90d", *here)
    secret = made.text.strip()
    found = reading.find(secret, datetime.now(UTC))
    assert found is not None
    assert (found.rights.read, found.rights.write, found.rights.is_admin) == (("taxi",), ("shop.orders",), False)
    assert [found.rights.may_read(name) for name in ("taxi.trips", "SHOP.orders", "shop.pay")] == [True, True, False]
    assert [found.rights.may_write(name) for name in ("taxi.trips", "shop.orders")] == [False, True]
    assert found.expires is not None
    assert reading.find(secret, found.expires) is None
    assert reading.find(f"{secret}0", datetime.now(UTC)) is None

    assert secret.rpartition("_")[2] not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    (listed,) = underlay("token", "list", "--json", *here).objects
    assert (listed["name"], listed["read"]) == ("ada", ["taxi"])
    assert "sha256" not in listed
    assert underlay("token", "create", "ada", "--read", "*", *here).code != 0
    assert underlay("token", "create", "bob", *here).code != 0
    assert underlay("token", "revoke", "ada", *here).code == 0
    assert reading.find(secret, datetime.now(UTC)) is None
    assert underlay("token", "revoke", "ada", *here).code != 0


def test_a_file_of_tokens_that_cannot_be_read_lets_nobody_in_and_is_not_named(served: Served):
    path = served.folder / "tokens.json"
    kept = path.read_bytes()
    path.write_bytes(b"{")
    try:
        with served.client() as client:
            answer = client.get("/v1/info")
    finally:
        path.write_bytes(kept)
    assert answer.status_code == 503
    assert str(path) not in answer.text


def test_a_server_that_starts_removes_what_dead_ones_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    dead = tmp_path / "server-dead"
    dead.mkdir()
    (dead / "lock").touch()
    (dead / "st_1.arrow").write_bytes(b"rows")
    monkeypatch.chdir(tmp_path.parent)
    alive = SpoolFolder(Path(tmp_path.name))  # workers, which have other working directories, get its path
    started = SpoolFolder(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([alive.path, started.path])
    started.close()
    alive.close()
    assert list(tmp_path.iterdir()) == []


class _FullDisk:
    """A folder where each new file is one that takes no bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __truediv__(self, name: str) -> Path:
        path = self.folder / name
        os.symlink("/dev/full", path)
        return path


def test_a_full_disk_fails_the_statement_whose_rows_it_cannot_hold(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked = {"sql": "select i from range(1000000) t(i)"}
    with served.client() as client:
        with monkeypatch.context() as patch:
            patch.setattr(served.service._spool, "path", _FullDisk(tmp_path))
            answer = client.post("/v1/statements", json=asked)
        assert (answer.status_code, answer.json()["code"]) == (503, "spool_full")
        assert int(answer.headers["Retry-After"]) > 0
        assert list(tmp_path.iterdir()) == []
        assert client.post("/v1/statements", json=asked).json()["row_count"] == 1_000_000


def test_an_answer_before_the_end_of_a_body_ends_the_connection(served: Served):
    """Else the server reads for as long as somebody sends."""
    with served.client() as client:
        refused = client.post(
            "/v1/sql", content=(b"x" * 40_000 for _ in range(5)), headers={"Content-Type": "text/xml"}
        )
        assert (refused.status_code, refused.headers.get("connection")) == (415, "close")
        read = client.post("/v1/sql", content=(part for part in [b'{"sql": ', b'"select 1"}']))
        assert (read.status_code, read.headers.get("connection")) == (200, None)


def test_parameters_nested_beyond_any_stack_are_refused_and_hold_no_place(served: Served):
    nested = "[" * 700 + "]" * 700
    body = f'{{"sql": "select ?", "parameters": [{nested}]}}'
    with served.client() as client:
        for path in ("/v1/sql", "/v1/statements"):
            assert client.post(path, content=body).status_code == 400
        assert client.post("/v1/sql", json={"sql": "select ?", "parameters": [[[[1]]]]}).json()["rows"] == [[[[[1]]]]]
    assert (served.service.turns.running, served.service.turns.waiting) == (0, 0)


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("select $1, $2", [1]),
        ("select 1", [1]),
        ("select $a", {"b": 1}),
        ("select ?", None),
        ("select ?", [10**400]),
        ("select ?", [{"value": "x", "type": "int"}]),
        ("select ?", [{"value": 1, "type": "nosuch"}]),
    ],
)
def test_parameters_that_do_not_fit_are_the_requests_fault(served: Served, sql: str, parameters: object):
    with served.client() as client:
        answer = client.post("/v1/sql", content=json.dumps({"sql": sql, "parameters": parameters}))
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_parameter")


@pytest.mark.parametrize(
    "body",
    [
        rb'{"sql": "select ?", "parameters": ["\ud83d"]}',
        rb'{"sql": "select $a", "parameters": {"\uD83D": 1}}',
        rb'{"sql": "select 1", "tags": {"a": "\ud83d"}}',
        b'{"sql": "select 1", "tags": {"a": "\xed\xa0\xbd"}}',
    ],
)
def test_half_a_character_is_refused_wherever_it_stands(served: Served, body: bytes):
    with served.client() as client:
        assert [client.post(path, content=body).status_code for path in ("/v1/sql", "/v1/statements")] == [400, 400]
        whole = rb'{"sql": "select ? a", "parameters": ["\ud83d\ude00"]}'
        assert client.post("/v1/sql", content=whole).json()["rows"] == [["\U0001f600"]]


def test_errors_do_not_say_where_the_engine_spills(served: Served):
    folders = [str(worker._folder) for worker in served.service.workers._every]
    with served.client() as client:
        found = client.post("/v1/sql", json={"sql": f"select error('{' '.join(folders)}')"}).json()["detail"]
    assert "…" in found
    assert not all(folder in found for folder in folders)


def test_a_full_disk_of_the_audit_log_breaks_no_answer(served: Served, monkeypatch: pytest.MonkeyPatch):
    full = os.open("/dev/full", os.O_WRONLY)
    with served.client() as client, monkeypatch.context() as patch:
        patch.setattr(served.service._audit, "_file", full)
        assert client.post("/v1/sql", json={"sql": "select 1"}).json()["rows"] == [[1]]
        assert client.post("/v1/statements", json={"sql": "select 1"}).json()["rows"] == [[1]]
    os.close(full)
