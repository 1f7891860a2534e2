from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import underlay
from tests.contract.worlds import World
from underlay.store import open_store

WORLDS = ["local", "memory", "s3", "local-sqlite", "s3-sqlite", "local-postgres", "s3-postgres"]
"""A store, and a registry if it has one."""


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """An empty lake on each kind of store, with each kind of registry."""
    kind, _, registry = request.param.partition("-")
    if kind == "local":
        store = open_store(tmp_path / "lake")
    elif kind == "memory":
        store = open_store(f"memory://{os.urandom(6).hex()}")
    else:
        store = request.getfixturevalue("seaweedfs").open()
    url = "none"
    if registry == "sqlite":
        url = f"sqlite:///{tmp_path / 'registry.sqlite'}"
    elif registry == "postgres":
        url = request.getfixturevalue("postgres").create_database()
    world = World(store, url)
    yield world
    world.close()


@pytest.fixture
def lake(world: World) -> underlay.Lake:
    return world.lake


@pytest.fixture
def memory() -> World:
    """An empty lake in memory, for what does not depend on the store."""
    return World(open_store(f"memory://{os.urandom(6).hex()}"))
