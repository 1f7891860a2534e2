"""A server whose Spark is a cluster: a worker that dies costs no answer."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.server.conftest import running, wait_until
from tests.server.on_spark.conftest import FEW, ended
from tests.spark.own_jvm.cluster import HOSTS, WORKER_MB, running_cluster

SETTINGS = {
    **FEW,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.cores.max": str(len(HOSTS)),
    "spark.executor.cores": "1",
    "spark.executor.memory": f"{WORKER_MB}m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
SLOW = "select count(*) from range(0, 6000000000, 1, 24) where id % 7 = 3"


@pytest.mark.own_jvm
def test_an_executor_that_is_killed_in_the_middle_costs_no_answer(tmp_path: Path):
    with (
        running_cluster() as master,
        running(tmp_path, engine="spark", master=master, spark_settings=SETTINGS, running=2) as served,
        served.client() as client,
    ):
        text = "select zone, count(*) n, sum(price) total from shop.orders group by zone order by zone"
        assert ended(client, {"sql": text})["row_count"] == 7
        found: list[dict[str, object]] = []

        def long() -> None:
            with served.client() as own:
                found.append(ended(own, {"sql": SLOW, "timeout": 3000}))

        thread = threading.Thread(target=long)
        thread.start()
        wait_until(lambda: _tasks_done(client) > 0)
        os.kill(_executor(), signal.SIGKILL)
        thread.join()
        (answer,) = found
        assert (answer["state"], answer["engine"]) == ("finished", "spark")
        rows = client.get(f"/v1/statements/{answer['id']}/rows").json()["rows"]
        assert rows == [[857142857]]


def _tasks_done(client: httpx.Client) -> int:
    shown = client.get("/v1/statements").json()["statements"]
    return max((one.get("progress") or {}).get("tasks_done", 0) for one in shown)


def _executor() -> int:
    """One of this process's own cluster: others may run on the machine."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if b"CoarseGrainedExecutorBackend" in path.read_bytes() and os.getpid() in _ancestors(
                int(path.parent.name)
            ):
                return int(path.parent.name)
    raise AssertionError("there is no executor")


def _ancestors(pid: int) -> list[int]:
    found = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
        found.append(pid)
    return found
