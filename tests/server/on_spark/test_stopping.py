"""What is stopped, killed or drained on Spark: nothing is left, and others go on."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import threading
from pathlib import Path

import httpx
import pytest

from tests.cli.command import SCRIPT
from tests.gate import sized
from tests.server.conftest import PATIENCE, Served, group_of, make_lake, run, running, wait_until
from tests.server.on_spark.conftest import FEW, ended

pytestmark = pytest.mark.own_jvm
LONG = "select count(*) from range(0, 9000000000000, 1, 4) where id % 7 = 3"
RUNS = "select count(*) from range(0, 40000000, 1, 4) where id % 7 = 3"


def test_a_long_statement_says_its_stages_and_stops_when_it_is_deleted(served: Served, client: httpx.Client):
    asked = client.post("/v1/statements", json={"sql": LONG, "engine": "spark", "wait": 0}).json()
    path = f"/v1/statements/{asked['id']}"
    wait_until(lambda: client.get(path).json()["progress"].get("tasks", 0) > 0)
    shown = client.get(path).json()
    assert (shown["engine"], shown["state"]) == ("spark", "running")
    assert shown["progress"]["tasks"] > shown["progress"]["tasks_done"]
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404
    assert run(client, RUNS, engine="spark").json()["rows"] == [[5714286]]  # its tasks had cores to run on


def test_threads_of_the_spark_process_level_off(served: Served, client: httpx.Client):
    """Spark's pools take a new thread for each statement until they are full, and keep it for a minute."""
    run(client, "select 1", engine="spark")
    pid = served.service.spark.pid
    assert pid is not None
    counts = []
    for _ in range(5):
        for number in range(25):
            sql = f"select zone, count(*) from shop.orders where id % 5 <> {number % 5} group by zone"
            assert run(client, sql, engine="spark").status_code == 200
        counts.append(threads_of(pid))
    print(f"threads after every 25 statements: {counts}")
    assert served.service.spark.pid == pid
    assert max(counts[3:]) < counts[2] + 30, counts


def threads_of(pid: int) -> int:
    """Of the process and those that it leads, such as Java."""
    return sum(len(os.listdir(f"/proc/{one}/task")) for one in group_of(pid))


def test_statements_cancelled_at_random_moments_leave_the_server_as_it_was(served: Served, client: httpx.Client):
    chance = random.Random(20)
    run(client, "select 1", engine="spark")
    pid = served.service.spark.pid

    def one() -> None:
        with served.client() as own:
            asked = {"sql": chance.choice([LONG, RUNS, "select * from shop.orders"]), "engine": "spark", "wait": 0}
            found = own.post("/v1/statements", json=asked).json()
            own.get(f"/v1/statements/{found['id']}?wait={chance.random():.2f}")
            own.delete(f"/v1/statements/{found['id']}")

    for _ in range(sized(3, 30)):
        threads = [threading.Thread(target=one) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    wait_until(lambda: (served.service.turns.running, served.service.turns.waiting) == (0, 0))
    assert served.service.spark.pid == pid
    assert run(client, RUNS, engine="spark").json()["rows"] == [[5714286]]
    spool = served.service._spool.path
    assert [one.name for one in spool.glob("st_*")] == []


def test_a_client_that_leaves_stops_its_statement(served: Served, client: httpx.Client):
    rows = {"sql": "select id from range(0, 3000000000, 1, 3000)", "engine": "spark"}
    with served.client() as leaving, leaving.stream("POST", "/v1/sql", json=rows) as answer:
        assert next(answer.iter_bytes())
    wait_until(lambda: served.service.turns.running == 0)
    assert run(client, RUNS, engine="spark").json()["rows"] == [[5714286]]


def test_a_timeout_and_a_limit_end_statements_on_spark(client: httpx.Client):
    late = run(client, LONG, engine="spark", timeout=1).json()
    assert (late["status"], late["code"]) == (422, "statement_timeout")
    large = client.post("/v1/statements", json={"sql": "select id from range(0, 9000000000, 1, 2)", "engine": "spark"})
    assert (large.status_code, large.json()["code"]) == (422, "memory_limit")
    assert run(client, "select 1", engine="spark").json()["rows"] == [[1]]


@pytest.mark.parametrize("killed", ["Python", "Java"])
def test_a_spark_that_is_killed_costs_its_own_statements_and_comes_back(
    served: Served, client: httpx.Client, killed: str
):
    run(client, "select 1", engine="spark")
    pid = served.service.spark.pid
    answers: list[httpx.Response] = []

    def on(engine: str, sql: str) -> None:
        with served.client() as own:
            answers.append(run(own, sql, engine=engine))

    thread = threading.Thread(target=on, args=("spark", LONG))
    thread.start()
    wait_until(lambda: any(one.progress.get("tasks") for one in served.service.known.values() if not one.has_ended))
    java = [one for one in group_of(pid) if one != pid and b"java" in Path(f"/proc/{one}/cmdline").read_bytes()]
    os.kill(pid if killed == "Python" else java[0], signal.SIGKILL)
    assert run(client, "select 1", engine="duckdb").json()["rows"] == [[1]]
    thread.join()
    (failed,) = answers
    assert (failed.status_code, failed.json()["code"]) == (503, "engine_gone")
    assert int(failed.headers["Retry-After"]) > 0
    wait_until(lambda: run(client, "select 2", engine="spark").json().get("rows") == [[2]])
    assert served.service.spark.pid != pid
    assert group_of(pid) == []


def test_rows_are_sent_to_the_end_when_the_server_drains_and_nothing_is_left(tmp_path: Path):
    with running(tmp_path, engine="spark", spark_settings=FEW) as one:
        with one.client() as client:
            found = ended(client, {"sql": "select 1 as a"})
            assert (found["engine"], found["engine_reason"]) == ("spark", "this server runs queries on Spark")
            assert ended(client, {"sql": "show tables"})["engine"] == "duckdb"
            asked = {"sql": "select id from range(0, 3000000, 1, 4)"}
            with client.stream("POST", "/v1/sql", json=asked, headers={"Accept": "text/csv"}) as answer:
                parts = answer.iter_bytes()
                rows = next(parts).count(b"\n")
                for pid in group_of(one.service.spark.pid or 0):
                    os.kill(pid, signal.SIGTERM)  # as a service manager does, to all of a server's processes
                one.server.handle_exit(signal.SIGTERM, None)
                rows += sum(part.count(b"\n") for part in parts)
        assert rows == 3_000_001


def test_a_server_that_is_killed_takes_its_spark_with_it(tmp_path: Path):
    make_lake(tmp_path / "lake")
    options = ["--engine", "spark", "--master", "local[2]", "--spark-memory", "1GiB", "--port", "0", "--workers", "1"]
    command = [SCRIPT, "serve", *options, "--lake", "lake", "--spool", "spool"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        try:
            url = re.search(r"http://\S+:\d+", process.stderr.readline())
            assert url
            assert "Queries run on Spark (local[2])" in process.stderr.readline()
            with httpx.Client(base_url=url[0], timeout=PATIENCE) as client:
                assert client.get("/v1/info").json()["engine"] == "spark"
                assert run(client, "select count(*) as n from shop.orders").json()["rows"] == [[5000]]
            started = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            groups = [int(one) for one in started if len(group_of(int(one))) > 1]
            assert groups
        finally:
            process.kill()
        wait_until(lambda: not any(map(group_of, groups)))
