"""S3 over HTTP on loopback, served by SeaweedFS and by moto. Both start once in a session, in processes of their own.

SeaweedFS checks signatures and is a real store; moto is S3's semantics in memory. A test asks for the fixture
`seaweedfs` or `moto` and calls `.open()` for a store in a folder that nobody else uses.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
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
START_SECONDS = 600
PORTS = (10_240, 32_000)
"""Below those that the kernel gives to connections, which begin with 32,768 on Linux."""


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
    """Ports that nobody listens on. All are held until all are found, so no two are the same.

    None is of those that the kernel gives to connections: such a port may be taken before a server listens on it.
    """
    with ExitStack() as held:
        found: list[int] = []
        while len(found) < count:
            each = held.enter_context(socket.socket())
            port = random.SystemRandom().randrange(*PORTS)
            with suppress(OSError):
                each.bind(("127.0.0.1", port))
                found.append(port)
        return found


@contextmanager
def _running(command: Callable[[], tuple[list[str], S3Server]], log: Path) -> Iterator[S3Server]:
    """A server that has its bucket. It is given other ports when it ends at once: another process took one."""
    deadline = time.monotonic() + START_SECONDS
    for is_last in (False, False, True):
        arguments, server = command()
        with log.open("wb") as out:
            process = subprocess.Popen(arguments, stdout=out, stderr=subprocess.STDOUT, cwd=log.parent)
        try:
            while process.poll() is None and not _has_bucket(server):
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{arguments[0]} does not answer:\n{log.read_text()[-4000:]}")
                time.sleep(0.05)
            if process.poll() is None:
                yield server
                return
            if is_last:
                raise RuntimeError(f"{arguments[0]} did not start:\n{log.read_text()[-4000:]}")
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
        config=Config(retries={"total_max_attempts": 1}, connect_timeout=60, read_timeout=60),
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
    used: list[int] = []

    def command() -> tuple[list[str], S3Server]:
        ports = dict(zip([*names, *(f"{name}.grpc" for name in names)], free_ports(8), strict=True))
        used.extend(ports.values())
        arguments = [
            str(Path(sys.executable).with_name("weed")),
            *("server", f"-dir={home}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
            *("-filer", "-s3", f"-s3.config={home / 's3.json'}", "-s3.autoCreateBucket=false"),
            *("-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.allowEmptyFolder=false"),
            # volumes for the bucket and for the filer's own log, without which it stands still after some minutes
            *("-volume.max=24", "-master.volumeSizeLimitMB=64", "-master.electionTimeout=1s"),
            "-master.telemetry=false",
            *(f"-{name}.port={ports[name]}" for name in names),
            *(f"-{name}.port.grpc={ports[f'{name}.grpc']}" for name in names),
        ]
        return arguments, S3Server(f"http://127.0.0.1:{ports['s3']}")

    with _running(command, home / "log") as server:
        yield server
    shutil.rmtree(home)
    for port in used:  # it makes sockets there whatever it is told, and is killed
        for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
            left.unlink()


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """moto's server, with atomic writes."""

    def command() -> tuple[list[str], S3Server]:
        (port,) = free_ports(1)
        program = Path(__file__).with_name("moto_server.py")
        return [sys.executable, str(program), str(port)], S3Server(f"http://127.0.0.1:{port}")

    with _running(command, tmp_path_factory.mktemp("moto") / "log") as server:
        yield server
