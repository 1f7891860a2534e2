"""What fails around a server: its store, its registry, and the server itself, while it has work to do."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

import underlay as ul
from tests.gate import sized
from tests.server.conftest import PATIENCE, Served, is_alive, make_lake, run, running, wait_until
from tests.server.operations.command import command
from tests.store.proxy import Action, Answer, DropRequest, Forward, Seen, proxy
from tests.store.servers import ACCESS_KEY, SECRET_KEY, S3Server, free_ports

ENDLESS = "select count(*) from range(100000000000) a, range(100000000000) b"
ENDED = (0, -signal.SIGTERM)
"""Exit codes of a server that drained: uvicorn raises the signal again at its end."""


class RemoteServed(NamedTuple):
    served: Served
    wire: Wire


class Wire:
    """What happens to requests to the store."""

    def __init__(self) -> None:
        self.does: Callable[[], Action] = Forward
        self.goes_on = threading.Event()
        self.held = threading.Event()

    def __call__(self, _: Seen) -> Action:
        return self.does()

    def hold(self) -> Action:
        self.held.set()
        assert self.goes_on.wait(PATIENCE)
        return Forward()


@pytest.fixture(scope="module")
def remote(moto: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteServed]:
    """A server whose lake is on S3, by a wire that can be cut."""
    store, wire = moto.open(), Wire()
    lake = ul.connect(store)
    lake.sql("create table shop.orders (id bigint, zone varchar, price decimal(9, 2))")
    lake.sql("insert into shop.orders select i, 'zone', i from range(100) t(i)")
    with proxy(moto.endpoint, wire) as front:
        options = moto.through(front.endpoint).options | {"max_retries": 1}
        folder = tmp_path_factory.mktemp("remote")
        with running(
            folder, fill=lambda _: None, lake=store.url, options=options, running=2, cancel_seconds=0.5
        ) as served:
            yield RemoteServed(served, wire)


@pytest.mark.parametrize(
    "fault", [DropRequest(), Answer(503), Answer(500, "<Error><Code>InternalError</Code></Error>")]
)
def test_a_store_that_is_away_gives_503_and_is_used_again_when_it_is_back(remote: RemoteServed, fault: Action):
    with remote.served.client() as client:
        remote.wire.does = lambda: fault
        try:
            answers = [run(client, "select sum(price) from shop.orders"), client.get("/v1/tables/shop.orders")]
            assert client.get("/healthz").status_code == 200
        finally:
            remote.wire.does = Forward
        for answer in answers:
            assert (answer.status_code, answer.json()["retryable"]) == (503, True), answer.text
            assert int(answer.headers["Retry-After"]) > 0
            assert not [secret for secret in (ACCESS_KEY, SECRET_KEY, "Traceback") if secret in answer.text]
        assert run(client, "select sum(price) from shop.orders").json()["rows"] == [["4950.00"]]


def test_a_store_that_does_not_answer_holds_its_own_statement_only(remote: RemoteServed):
    """It ends when it is cancelled, and by its timeout."""
    wire, served = remote.wire, remote.served
    wire.goes_on.clear()
    wire.held.clear()
    wire.does = wire.hold
    try:
        with served.client() as client:
            body = {"sql": "select count(*) from shop.orders where price > 50", "wait": 0}
            begun = client.post("/v1/statements", json=body).json()
            assert wire.held.wait(PATIENCE)
            assert client.get("/v1/info").status_code == 200
            assert client.delete(f"/v1/statements/{begun['id']}").status_code == 204
            wait_until(lambda: served.service.turns.running == 0)
            late = run(client, "select count(*) from shop.orders where price > 50", timeout=0.3)
            assert (late.status_code, late.json()["code"]) == (422, "statement_timeout")
            wait_until(lambda: served.service.turns.running == 0)
    finally:
        wire.does = Forward
        wire.goes_on.set()
    wait_until(lambda: served.service.workers.alive == 2)
    with served.client() as client:
        answer = run(client, "select count(*) from shop.orders where price > 50")
    assert answer.json()["rows"] == [[49]]


def test_a_registry_that_is_away_delays_answers_and_fails_none(tmp_path: Path):
    (port,) = free_ports(1)
    registry = f"postgresql://nobody:secret@127.0.0.1:{port}/none"
    with running(tmp_path, registry=registry, running=1) as served, served.client("writer") as client:
        assert run(client, "select count(*) from shop.orders").json()["rows"] == [[5000]]
        assert run(client, "insert into shop.orders values (7000, 'a', 1)").status_code == 200
        assert run(client, "select count(*) from shop.orders").json()["rows"] == [[5001]]
        assert client.get("/v1/tables/shop.orders/versions").status_code == 200
        assert "secret" not in client.get("/readyz").text


def test_a_server_that_is_killed_leaves_no_process_and_the_next_one_sweeps_its_spool(tmp_path: Path):
    make_lake(tmp_path / "lake")
    with command(tmp_path, "--workers", "2") as server, server.client() as client:
        kept = client.post("/v1/statements", json={"sql": "from shop.orders", "wait": 60, "limit": 1}).json()
        assert kept["state"] == "finished"
        begun = client.post("/v1/statements", json={"sql": ENDLESS, "wait": 0}).json()
        wait_until(lambda: client.get(f"/v1/statements/{begun['id']}").json()["state"] == "running")
        workers = server.workers
        assert len(workers) >= 2
        server.stop(signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, workers)))
    left = list((tmp_path / "spool").rglob("*.arrow"))
    assert left, "the killed server could not remove them"
    with command(tmp_path, "--workers", "1") as server, server.client() as client:
        assert client.get("/readyz").status_code == 200
        assert not any(path.exists() for path in left)
        assert server.stop() in ENDED
    assert list((tmp_path / "spool").iterdir()) == []


def test_what_a_server_acknowledged_before_it_was_told_to_stop_is_there_once(tmp_path: Path):
    """SIGTERM while clients write: each gets its answer or none, and one without an answer may have landed, once."""
    make_lake(tmp_path / "lake")
    sent, acknowledged = Counter[int](), Counter[int]()
    enough = threading.Event()
    with command(tmp_path, "--workers", "2") as server:
        workers = server.workers

        def write(writer: int) -> None:
            with server.client() as client:
                for number in range(writer * 1000, writer * 1000 + 1000):
                    sent[number] += 1
                    try:
                        answer = run(
                            client,
                            f"insert into shop.orders values ({10_000 + number}, 'new', 1)",
                            headers={"Idempotency-Key": str(number)} if writer % 2 else {},
                        )
                    except httpx.TransportError:
                        return
                    if answer.status_code == 503:
                        return
                    assert answer.status_code == 200, answer.text
                    acknowledged[number] += 1
                    if acknowledged.total() >= sized(12, 200):
                        enough.set()

        with ThreadPoolExecutor(4) as pool:
            writers = [pool.submit(write, writer) for writer in range(4)]
            assert enough.wait(PATIENCE)
            assert server.stop() in ENDED
            for writer in writers:
                writer.result()
        assert not any(map(is_alive, workers))
    rows = (
        ul.connect(tmp_path / "lake", registry="none").sql("select id from shop.orders where zone = 'new'").fetchall()
    )
    found = Counter(int(row[0]) - 10_000 for row in rows)
    assert set(found.values()) == {1}
    assert set(acknowledged) <= set(found) <= set(sent)
    assert list((tmp_path / "spool").iterdir()) == []
