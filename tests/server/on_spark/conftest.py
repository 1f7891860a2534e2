"""One server with Spark for each module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.server.conftest import Served, running

FEW = {"spark.sql.shuffle.partitions": "3", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Rows are few: less time goes into compiling, and into tasks without rows."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    with running(folder, engine="auto", spark_settings=FEW, running=3, spark_from_bytes=1) as one:
        yield one


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as one:
        yield one


def ended(client: httpx.Client, asked: dict[str, object]) -> dict[str, object]:
    """A statement that has ended."""
    answer = client.post("/v1/statements", json={**asked, "wait": 0})
    assert answer.status_code == 202, answer.text
    found = answer.json()
    while found["state"] in ("queued", "running"):
        found = client.get(f"/v1/statements/{found['id']}?wait=60").json()
    return found
