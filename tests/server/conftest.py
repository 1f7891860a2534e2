"""One server for each module of tests: real uvicorn on loopback, real workers, gone at the end."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

import underlay as ul
import underlay.client
from underlay.server.access.rights import Rights
from underlay.server.access.tokens import TokenFile
from underlay.server.common.hot_settings import HotSettings
from underlay.server.common.settings import ServerLimits, ServerSettings
from underlay.server.serve import DrainingServer, bind, make_server
from underlay.server.statements.service import StatementService

PATIENCE = 300.0
"""Seconds until a test gives up: the machine may be busy."""


class Served(NamedTuple):
    """A server that runs, and what belongs to it."""

    url: str
    folder: Path
    settings: ServerSettings
    server: DrainingServer
    tokens: dict[str, str]

    @property
    def service(self) -> StatementService:
        return self.server.config.app.state.service

    @property
    def lake(self) -> ul.Lake:
        return ul.connect(self.settings.lake, registry="none")

    def client(self, name: str | None = "reader", **options: object) -> httpx.Client:
        headers = {} if name is None else {"Authorization": f"Bearer {self.tokens[name]}"}
        return httpx.Client(base_url=self.url, timeout=PATIENCE, headers=headers, **options)


def make_lake(folder: Path) -> None:
    lake = ul.connect(str(folder), registry="none")
    lake.sql("create table shop.orders (id bigint, zone varchar, price decimal(9, 2))")
    lake.sql("insert into shop.orders select i, 'zone ' || i % 7, i / 4 from range(5000) t(i)")
    lake.sql("create table secret.pay (id bigint, salary bigint)")
    lake.sql("insert into secret.pay values (1, 4711)")


@contextmanager
def running(
    folder: Path,
    *,
    is_writable: bool = True,
    with_tokens: bool = True,
    engine: str = "duckdb",
    master: str = "local[2]",
    spark_settings: Mapping[str, str] | None = None,
    root_path: str = "",
    flight: bool = False,
    certificate: Path | None = None,
    certificate_key: Path | None = None,
    options: Mapping[str, object] | None = None,
    lake: str | None = None,
    registry: str = "none",
    fill: Callable[[Path], None] | None = None,
    hot: HotSettings | None = None,
    **limits: float,
) -> Iterator[Served]:
    (fill or make_lake)(folder / "lake")
    tokens = {}
    now = datetime.now(UTC)
    file = TokenFile(folder / "tokens.json")
    for name, rights in {
        "reader": Rights(read=("shop",)),
        "writer": Rights(read=("shop",), write=("shop", "new.table")),
        "admin": Rights(read=("*",), write=("*",), is_admin=True),
    }.items():
        _, tokens[name] = file.create(name, rights, now)
    own = {"running": 2, "memory_bytes": 512 << 20, "spark_memory_bytes": 1 << 30, "cancel_seconds": 20.0}
    chosen = {**own, "statement_seconds": PATIENCE, "idle_write_seconds": PATIENCE, "drain_seconds": PATIENCE, **limits}
    settings = ServerSettings(
        lake=lake or str(folder / "lake"),
        options=options or {},  # type: ignore[arg-type]
        registry=registry,
        port=0,
        spool=folder / "spool",
        audit=folder / "audit.ndjson",
        tokens=folder / "tokens.json" if with_tokens else None,
        is_writable=is_writable and with_tokens,
        engine=engine,
        master=master,
        root_path=root_path,
        flight=("127.0.0.1", 0) if flight else None,
        certificate=certificate,
        certificate_key=certificate_key,
        spark_settings=spark_settings or {},
        threads=1,
        hot=hot,
        limits=replace(ServerLimits(), **chosen),  # type: ignore[arg-type]
    )
    server = make_server(settings)
    listening = bind(settings)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive())
    assert server.started
    scheme = "http" if certificate is None else "https"
    served = Served(f"{scheme}://127.0.0.1:{listening.getsockname()[1]}", folder, settings, server, tokens)
    pids = [*served.service.workers.pids, *served.service.readers.pids]
    try:
        yield served
    finally:
        pids += [*served.service.workers.pids, *served.service.readers.pids]
        spark = served.service.spark.pid
        server.should_exit = True
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert [pid for pid in pids if is_alive(pid)] == []
    wait_until(lambda: spark is None or not group_of(spark))  # Java takes a moment to be gone
    assert list((folder / "spool").iterdir()) == []


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "waited for minutes"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def group_of(pid: int) -> list[int]:
    """The processes that this one leads, such as its Java; not those that only wait to be reaped."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, group, *_ = path.read_text().rpartition(") ")[2].split()
            if int(group) == pid and state not in "ZX":
                found.append(int(path.parent.name))
    return found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with running(tmp_path_factory.mktemp("served")) as one:
        yield one


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as one:
        yield one


def run(client: httpx.Client, sql: str, **body: object) -> httpx.Response:
    headers = body.pop("headers", {})
    return client.post("/v1/sql", json={"sql": sql, **body}, headers=headers)
