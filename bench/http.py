"""What does SQL over HTTP cost beside the same SQL in process, how many clients does it bear, how fast is a stream?

1. `query`: a selective query, by `lake.sql` and by POST /v1/sql on one open connection, turn by turn; and the CPU time
   of a statement in each process, which other work on the machine disturbs less.
2. `clients`: clients that ask at once, each on its connection, for some seconds. An error fails the run.
3. `stream`: a large result as Arrow, beside what encodes it in process and what two processes send over loopback.
   The worker's CPU time bounds the rate where there is a core for the server: it does what the encoder does.
4. Datasette, where `--datasette` names its program: the same query on the same rows in SQLite, turn by turn.

`python -m bench.http --rows 1000000 --clients 64 --seconds 60`. Servers are warm, on loopback.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from multiprocessing import Process
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pyarrow as pa

import underlay as ul
from bench.common.timing import medians, sample, save
from underlay.api.lake import Lake

_QUERY = "select id, zone, fare from bench.trips where id between {0} and {0} + 4 order by id"
_LARGE = "select i, i * 3 as j, repeat(chr((65 + i % 26)::int), 84) as s from range({0}) t(i)"
_ROW_BYTES = 100
_ARROW = "application/vnd.apache.arrow.stream"
_PROCESSES = 4


class HttpSize(NamedTuple):
    """How much is asked for."""

    rows: int
    rounds: int
    clients: int
    seconds: float
    stream_bytes: int


QUICK = HttpSize(rows=20_000, rounds=1, clients=8, seconds=0.5, stream_bytes=4_000_000)


def run(size: HttpSize, folder: Path, datasette: str | None = None) -> dict[str, Any]:  # Any: as JSON
    """All cases. Raises AssertionError if an answer is wrong, or a client meets an error."""
    lake = ul.connect(folder / "lake", registry="none")
    lake.create_table(
        "bench.trips",
        "id bigint, zone string, fare decimal(9, 2)",
        sort_by=["id"],
        properties={"block_rows": str(max(1000, size.rows // 100))},
    )
    lake.sql(f"insert into bench.trips select i, 'zone ' || i % 263, (i % 9000) / 100 from range({size.rows}) t(i)")
    with _serving(folder) as (host, port, pid):
        found = {"query": _query(lake, host, port, size, folder, datasette) | _cpu(lake, host, port, pid, size)}
        found["clients"] = _many(host, port, size)
        found["stream"] = _stream(lake, host, port, pid, size)
    return {"load": os.getloadavg()[0], "cores": os.cpu_count(), **found}


@contextmanager
def _serving(folder: Path) -> Iterator[tuple[str, int, int]]:
    options = ["--port", "0", "--engine", "duckdb", "--lake", str(folder / "lake"), "--spool", str(folder / "spool")]
    command = [sys.executable, "-m", "underlay", "serve", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            said = server.stderr.readline()
            place = re.search(r"http://(127\.0\.0\.1):(\d+)", said)
            assert place is not None, said + server.stderr.read()
            yield place[1], int(place[2]), server.pid
        finally:
            server.terminate()


def _ask(connection: HTTPConnection, sql: str) -> list[list[Any]]:
    connection.request("POST", "/v1/sql", json.dumps({"sql": sql}), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body[:500]
    rows: list[list[Any]] = json.loads(body)["rows"]
    return rows


def _query(lake: Lake, host: str, port: int, size: HttpSize, folder: Path, datasette: str | None) -> dict[str, float]:
    connection, peer = HTTPConnection(host, port, timeout=600), HTTPConnection("127.0.0.1", timeout=600)
    keys = _keys(size.rows)
    ways: dict[str, Callable[[], object]] = {
        "in process": lambda: lake.sql(_QUERY.format(next(keys))).to_arrow(),
        "http": lambda: _ask(connection, _QUERY.format(next(keys))),
    }
    rows = [[row["id"], row["zone"], str(row["fare"])] for row in lake.sql(_QUERY.format(7)).to_arrow().to_pylist()]
    assert _ask(connection, _QUERY.format(7)) == rows
    with _datasette(lake, folder, datasette) as other:
        if other is not None:
            peer.port = other
            assert [row[0] for row in _ask_datasette(peer, 7)] == [row[0] for row in rows]
            ways["datasette"] = lambda: _ask_datasette(peer, next(keys))
        for way in ways.values():  # plans and caches of all workers are warm
            for _ in range(20):
                way()
        samples = sample(ways, rounds=size.rounds)
    middle, least = medians(samples), {name: min(values) for name, values in samples.items()}
    connection.close()
    peer.close()
    return {
        **{f"{name} p50 ms": round(1000 * value, 3) for name, value in middle.items()},
        **{f"{name} least ms": round(1000 * value, 3) for name, value in least.items()},
        "http beyond in process, p50 ms": round(1000 * (middle["http"] - middle["in process"]), 3),
        "http beyond in process, least ms": round(1000 * (least["http"] - least["in process"]), 3),
    }


def _cpu(lake: Lake, host: str, port: int, pid: int, size: HttpSize) -> dict[str, float]:
    """CPU milliseconds of a statement: in process, and in the server and its workers."""
    keys, count = _keys(size.rows), 10 * size.rounds
    began = time.process_time()
    for _ in range(count):
        lake.sql(_QUERY.format(next(keys))).to_arrow()
    inside = time.process_time() - began
    connection = HTTPConnection(host, port, timeout=600)
    workers = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    before = [_cpu_of([pid]), _cpu_of(workers)]
    for _ in range(count):
        _ask(connection, _QUERY.format(next(keys)))
    spent = [_cpu_of([pid]) - before[0], _cpu_of(workers) - before[1]]
    connection.close()
    named = zip(("in process", "server", "workers"), (inside, *spent), strict=True)
    return {f"{name} CPU ms": round(1000 * seconds / count, 2) for name, seconds in named}


def _cpu_of(pids: list[int]) -> float:
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split() for pid in pids]
    return sum(int(one[11]) + int(one[12]) for one in fields) / os.sysconf("SC_CLK_TCK")


def _keys(rows: int) -> Iterator[int]:
    """Some of the ids, again and again."""
    while True:
        yield from range(0, rows, max(1, rows // 50))


@contextmanager
def _datasette(lake: Lake, folder: Path, program: str | None) -> Iterator[int | None]:
    if program is None:
        yield None
        return
    path = folder / "trips.db"
    with sqlite3.connect(path) as database:
        database.execute("create table trips (id integer primary key, zone text, fare text)")
        rows = lake.sql("select id, zone, fare::varchar from bench.trips").fetchall()
        database.executemany("insert into trips values (?, ?, ?)", rows)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [program, "serve", str(path), "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            while not _listens(port):
                time.sleep(0.05)
            yield port
        finally:
            server.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def _ask_datasette(connection: HTTPConnection, key: int) -> list[list[Any]]:
    sql = f"select id, zone, fare from trips where id between {key} and {key} + 4 order by id"
    connection.request("GET", f"/trips.json?{urlencode({'sql': sql, '_shape': 'arrays'})}")
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body[:500]
    rows: list[list[Any]] = json.loads(body)["rows"]
    return rows


def _many(host: str, port: int, size: HttpSize) -> dict[str, float]:
    each = [size.clients // _PROCESSES + (number < size.clients % _PROCESSES) for number in range(_PROCESSES)]
    with TemporaryDirectory() as folder:
        outs = [Path(folder) / str(number) for number in range(_PROCESSES)]
        chosen = zip(each, outs, strict=True)
        working = [Process(target=_clients, args=(host, port, size, count, out)) for count, out in chosen]
        for one in working:
            one.start()
        for one in working:
            one.join()
        assert [one.exitcode for one in working] == [0] * _PROCESSES, "a client met an error"
        times = [float(line) for out in outs for line in out.read_text().split()]
    times.sort()
    return {
        "clients": size.clients,
        "seconds": size.seconds,
        "statements": len(times),
        "errors": 0,  # one would have ended the run
        "statements/s": round(len(times) / size.seconds, 1),
        "p50 ms": round(1000 * statistics.median(times), 1),
        "p99 ms": round(1000 * times[int(len(times) * 0.99)], 1),
    }


def _clients(host: str, port: int, size: HttpSize, count: int, out: Path) -> None:
    """Clients in one process, each with a connection of its own. Raises on the first error."""
    end = time.monotonic() + size.seconds

    def ask(number: int) -> list[float]:
        connection = HTTPConnection(host, port, timeout=600)
        times = []
        keys = _keys(size.rows)
        while time.monotonic() < end:
            key = next(keys)
            began = time.perf_counter()
            rows = _ask(connection, _QUERY.format(key))
            times.append(time.perf_counter() - began)
            assert [row[0] for row in rows] == list(range(key, min(key + 5, size.rows)))
        connection.close()
        return times

    with ThreadPoolExecutor(count) as pool:
        found = [time for times in pool.map(ask, range(count)) for time in times]
    out.write_text("\n".join(map(str, found)))


def _stream(lake: Lake, host: str, port: int, pid: int, size: HttpSize) -> dict[str, float]:
    sql = _LARGE.format(size.stream_bytes // _ROW_BYTES)
    connection = HTTPConnection(host, port, timeout=600)
    sent = 0

    def served() -> None:
        nonlocal sent
        body = json.dumps({"sql": sql, "timeout": 3600})
        headers = {"Content-Type": "application/json", "Accept": _ARROW, "Accept-Encoding": "identity"}
        connection.request("POST", "/v1/sql", body, headers)
        answer = connection.getresponse()
        assert answer.status == 200
        room = memoryview(bytearray(1 << 20))
        sent = 0
        while count := answer.readinto(room):
            sent += count

    def encoded() -> None:
        batches = iter(lake.sql(sql).to_batches())
        first = next(batches)
        with pa.OSFile("/dev/null", "wb") as sink, pa.ipc.new_stream(sink, first.schema) as writer:
            writer.write_batch(first)
            for batch in batches:
                writer.write_batch(batch)

    ways = {"served": served, "encoded": encoded, "loopback": lambda: _loopback(sent)}
    samples = sample(ways, rounds=3)
    spent: dict[str, float] = {"encoded": -time.process_time()}
    encoded()
    spent["encoded"] += time.process_time()
    workers = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    before = [_cpu_of([pid]), _cpu_of(workers)]
    served()
    spent |= {"server": _cpu_of([pid]) - before[0], "workers": _cpu_of(workers) - before[1]}
    rates = {name: sent / min(values) / 1e6 for name, values in samples.items()}
    connection.close()
    assert sent > size.stream_bytes * 0.9
    return {
        "bytes": sent,
        **{f"{name} MB/s": round(rate, 1) for name, rate in rates.items()},
        "served / the slower of the two": round(rates["served"] / min(rates["encoded"], rates["loopback"]), 3),
        **{f"{name} CPU s/GB": round(seconds / (sent / 1e9), 2) for name, seconds in spent.items()},
    }


def _loopback(size: int) -> None:
    """Bytes from another process, as they come."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sender = Process(target=_send, args=(listening.getsockname()[1], size))
        sender.start()
        connection, _ = listening.accept()
        room = memoryview(bytearray(1 << 20))
        with connection:
            while connection.recv_into(room):
                pass
        sender.join()


def _send(port: int, size: int) -> None:
    part = bytes(1 << 20)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for _ in range(0, size, len(part)):
            connection.sendall(part)


def main() -> None:
    """Print the result as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--stream-bytes", type=int, default=1_000_000_000)
    parser.add_argument("--datasette", metavar="PROGRAM")
    asked = parser.parse_args()
    size = HttpSize(asked.rows, asked.rounds, asked.clients, asked.seconds, asked.stream_bytes)
    with TemporaryDirectory() as folder:
        found = run(size, Path(folder), asked.datasette)
    print(json.dumps(found, indent=2))
    save("http", found)


if __name__ == "__main__":
    main()
