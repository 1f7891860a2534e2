"""Statements that are cancelled at any moment, in every way there is: each ends, and nothing of it is left."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests import gate
from tests.server.conftest import Served, running, wait_until

STATEMENTS = (
    "select count(*) from range(100000000000) a, range(100000000000) b",
    "select i, repeat('x', 100) from range(10000000000) t(i)",
    "select * from range(3000000) t(i) order by hash(i), i",
    "select a.zone, count(*) from shop.orders a, shop.orders b, shop.orders c group by 1",
    "from shop.orders where price > 10",
    "select " + " + ".join(f"(select max(id) from shop.orders where id > {n})" for n in range(40)),
    "select 1",
)
STREAMED = (STATEMENTS[1], STATEMENTS[4], STATEMENTS[6])
"""Their first rows, and with them their ids, come at once."""
FORMATS = ("application/json", "text/csv", "application/vnd.apache.arrow.stream")
CLIENTS = 12
"""More than run at once, so that some are cancelled while they wait."""


@pytest.fixture(scope="module")
def stopping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with running(tmp_path_factory.mktemp("stopping"), running=3, cancel_seconds=1.5, drain_seconds=1) as one:
        yield one


def by_delete(client: httpx.Client, sql: str, dice: random.Random) -> None:
    """After some time or none, whatever it is doing by then."""
    begun = client.post("/v1/statements", json={"sql": sql, "wait": dice.choice([0, 0, 0.01, 0.1])}).json()
    client.get(f"/v1/statements/{begun['id']}", params={"wait": dice.choice([0, 0.005, 0.05, 0.2])})
    client.delete(f"/v1/statements/{begun['id']}")


def by_leaving(client: httpx.Client, sql: str, dice: random.Random) -> None:
    """The client is gone before an answer, or in the midst of one."""
    headers = {"Accept": dice.choice(FORMATS)}
    seconds = dice.choice([0.001, 0.01, 0.1, 0.4])
    try:
        with client.stream("POST", "/v1/sql", json={"sql": sql}, headers=headers, timeout=seconds) as answer:
            for _, _part in zip(range(dice.randrange(5)), answer.iter_raw(), strict=False):
                pass
    except (httpx.TimeoutException, httpx.RemoteProtocolError):
        pass


def by_delete_of_a_stream(client: httpx.Client, sql: str, dice: random.Random) -> None:
    """Another request ends the rows that this one reads."""
    try:
        with client.stream("POST", "/v1/sql", json={"sql": sql}, headers={"Accept": dice.choice(FORMATS)}) as answer:
            parts = answer.iter_raw()
            for _ in range(dice.randrange(3)):
                next(parts, None)
            client.delete(f"/v1/statements/{answer.headers.get('underlay-statement', 'st_none')}")
            for _ in parts:
                pass
    except httpx.RemoteProtocolError:
        pass


def by_timeout(client: httpx.Client, sql: str, dice: random.Random) -> None:
    client.post("/v1/statements", json={"sql": sql, "wait": 60, "limit": 0, "timeout": dice.choice([0.1, 0.2, 0.4])})


WAYS: tuple[Callable[[httpx.Client, str, random.Random], None], ...] = (
    by_delete,
    by_leaving,
    by_delete_of_a_stream,
    by_timeout,
)


def cancel_some(served: Served, count: int, seed: int) -> Counter[str]:
    """Send and cancel; returns how often each way met which statement."""
    plain = ("select 1", "from shop.orders where price > 10")

    def one(number: int) -> str:
        dice = random.Random(seed * 100_003 + number)
        way, sql = dice.choice(WAYS), dice.choice(STATEMENTS)
        if way is by_delete_of_a_stream:
            sql = dice.choice(STREAMED)
        with served.client(dice.choice(["reader", "writer"])) as client:
            way(client, sql, dice)
        return f"{way.__name__} {'short' if sql in plain else 'long'}"

    with ThreadPoolExecutor(CLIENTS) as pool:
        return Counter(pool.map(one, range(count)))


def left_over(served: Served) -> dict[str, object]:
    """What statements may leave in the server and on its disk."""
    children = sorted(int(one) for one in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
    return {
        "turns": (served.service.turns.running, served.service.turns.waiting),
        "tasks": len(served.service._tasks),
        "files": [path.name for path in (served.folder / "spool").rglob("*.arrow*")],
        "spilled": [
            path.name for worker in served.service.workers._every for path in worker._folder.rglob("duckdb_temp*")
        ],
        "kept": served.service.spool_bytes,
        "workers": (served.service.workers.alive, served.service.readers.alive),
        "children": len(children),
        "connections": len(served.server.server_state.connections),
        "busy": [worker.pid for worker in served.service.workers._every if worker.is_busy],
        "threads": sorted(thread.name for thread in threading.enumerate() if thread is not threading.current_thread()),
    }


@pytest.mark.parametrize("count", [30, pytest.param(1000, marks=[pytest.mark.storm, pytest.mark.timeout(3600)])])
def test_statements_that_are_cancelled_at_any_moment_leave_nothing(
    stopping: Served, count: int, capsys: pytest.CaptureFixture[str]
):
    with stopping.client() as client:
        assert client.post("/v1/sql", json={"sql": "select 1"}).status_code == 200
    wait_until(lambda: not stopping.server.server_state.connections)  # that one's end is noticed a moment later
    before = left_over(stopping)
    files = len(os.listdir("/proc/self/fd"))
    ways = cancel_some(stopping, count, gate.SEED)
    assert sum(ways.values()) == count
    wait_until(lambda: stopping.service.turns.running == 0 and stopping.service.turns.waiting == 0)
    ended = list(stopping.service.known.values())
    with stopping.client("admin") as client:
        for statement in ended:  # those that finished first, and keep their rows
            client.delete(f"/v1/statements/{statement.id}")
    wait_until(lambda: left_over(stopping) == before)
    wait_until(lambda: len(os.listdir("/proc/self/fd")) <= files + 2)
    with capsys.disabled():
        print(f"\n{count} statements were cancelled: {dict(ways)}; {stops(stopping)}")
    with stopping.client() as client:
        assert client.post("/v1/sql", json={"sql": "select count(*) from shop.orders"}).json()["rows"] == [[5000]]


def stops(served: Served) -> str:
    """How long statements took to end, as the server counts it. Nothing is asserted about time."""
    with served.client() as client:
        lines = client.get("/metrics").text.splitlines()
    return ", ".join(line.removeprefix("underlay_") for line in lines if line.startswith("underlay_stop_seconds"))
