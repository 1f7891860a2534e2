from __future__ import annotations

import os
from pathlib import Path

import pytest

import underlay
from tests.tables.worlds import World
from underlay.store import open_store


@pytest.fixture(params=["local", "memory", "s3"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """An empty lake on each kind of store."""
    if request.param == "local":
        return World(open_store(tmp_path / "lake"))
    if request.param == "memory":
        return World(open_store(f"memory://{os.urandom(6).hex()}"))
    return World(request.getfixturevalue("seaweedfs").open())


@pytest.fixture
def lake(world: World) -> underlay.Lake:
    return world.lake


@pytest.fixture
def memory() -> World:
    """An empty lake in memory, for what does not depend on the store."""
    return World(open_store(f"memory://{os.urandom(6).hex()}"))
