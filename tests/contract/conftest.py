from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

import underlay
from tests.contract.chaos import ChaoticRegistry
from tests.contract.worlds import World
from tests.gate import SEED, part, sized
from tests.registry.far import far_store
from underlay.store import open_store

STORES = ["local", "memory", "s3"]
CHAOS = "far-chaos"
"""A registry that misleads stands for all: no answer may depend on a registry."""
REGISTRIES = ["local-sqlite", "s3-sqlite", "local-postgres", "s3-postgres"]
"""Those that there are: for every test in `make test-all`."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "world" in metafunc.fixturenames:
        is_marked = metafunc.definition.get_closest_marker("with_postgres")
        own = ["s3-postgres"] if is_marked else []
        stores = part(STORES, crc32(metafunc.definition.nodeid.encode()))
        metafunc.parametrize("world", [*stores, CHAOS, *sized(own, REGISTRIES)], indirect=True)


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """An empty lake on each kind of store, and with each kind of registry."""
    kind, _, registry = request.param.partition("-")
    if kind == "local":
        store = open_store(tmp_path / "lake")
    elif kind == "memory":
        store = open_store(f"memory://{os.urandom(6).hex()}")
    elif kind == "far":
        store = far_store()
    else:
        store = request.getfixturevalue("seaweedfs").open()
    url: str | ChaoticRegistry = "none"
    if registry == "chaos":
        url = ChaoticRegistry(crc32(f"{SEED} {request.node.name}".encode()))
    elif registry == "sqlite":
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
