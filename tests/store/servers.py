"""S3 over HTTP on loopback, served by SeaweedFS and by moto. Both start once in a session, in processes of their own.

SeaweedFS checks signatures and is a real store; moto is S3's semantics in memory. A test asks for the fixture
`seaweedfs` or `moto` and calls `.open()` for a store in a folder that nobody else uses.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from underlay.errors import UnderlayError
from underlay.store.open import Option, open_store
from underlay.store.store import Store

BUCKET = "lake"
ACCESS_KEY = "AKIDUNDERLAYTESTS"
SECRET_KEY = "loopback-secret-of-the-tests"
START_SECONDS = 180


@dataclass(frozen=True)
class S3Server:
    """A server that runs, with an empty bucket."""

    endpoint: str

    @property
    def options(self) -> dict[str, Option]:
        return {
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "access_key_id": ACCESS_KEY,
            "secret_access_key": SECRET_KEY,
            "max_retries": 0,
        }

    def open(self, folder: str | None = None, *, bucket: str = BUCKET, **options: Option) -> Store:
        return open_store(f"s3://{bucket}/{folder or os.urandom(6).hex()}", self.options | options)

    def through(self, endpoint: str) -> S3Server:
        """The same server behind a proxy."""
        return replace(self, endpoint=endpoint)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on. All are held until all are found, so no two are the same."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


@contextmanager
def _running(command: list[str], log: Path, is_ready: Callable[[], bool]) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=log.parent)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} did not start:\n{log.read_text()[-4000:]}")
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


def _has_bucket(server: S3Server) -> bool:
    """Whether an object can be put, after making the bucket. False while the server starts."""
    client = boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        region_name="us-east-1",
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        config=Config(retries={"total_max_attempts": 1}, connect_timeout=1, read_timeout=5),
    )
    try:
        with suppress(client.exceptions.BucketAlreadyOwnedByYou, client.exceptions.BucketAlreadyExists):
            client.create_bucket(Bucket=BUCKET)
        server.open("start").put("ready", b"")
    except (BotoCoreError, ClientError, UnderlayError):
        return False
    finally:
        client.close()
    return True


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """SeaweedFS with one master, volume, filer and S3 gateway, about 150 MB of memory."""
    home = tmp_path_factory.mktemp("seaweedfs")
    identity = {"name": "tests", "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]}
    (home / "s3.json").write_text(json.dumps({"identities": [{**identity, "actions": ["Admin"]}]}))
    names = ["master", "volume", "filer", "s3"]
    ports = dict(zip([*names, *(f"{name}.grpc" for name in names)], free_ports(8), strict=True))
    server = S3Server(f"http://127.0.0.1:{ports['s3']}")
    command = [
        str(Path(sys.executable).with_name("weed")),
        *("server", f"-dir={home}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
        *("-filer", "-s3", f"-s3.config={home / 's3.json'}", "-s3.autoCreateBucket=false"),
        *("-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.allowEmptyFolder=false"),
        *("-volume.max=3", "-master.volumeSizeLimitMB=64", "-master.electionTimeout=1s", "-master.telemetry=false"),
        *(f"-{name}.port={ports[name]}" for name in names),
        *(f"-{name}.port.grpc={ports[f'{name}.grpc']}" for name in names),
    ]
    with _running(command, home / "log", lambda: _has_bucket(server)):
        yield server
    shutil.rmtree(home)


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """moto's server, with atomic writes."""
    (port,) = free_ports(1)
    server = S3Server(f"http://127.0.0.1:{port}")
    command = [sys.executable, str(Path(__file__).with_name("moto_server.py")), str(port)]
    with _running(command, tmp_path_factory.mktemp("moto") / "log", lambda: _has_bucket(server)):
        yield server
