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
    with running(tmp_path_factory.mktemp("served"), engine="auto", spark_settings=FEW, running=3) as one:
        yield one


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as one:
        yield one
