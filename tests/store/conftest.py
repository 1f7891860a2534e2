from __future__ import annotations

import os
from pathlib import Path

import pytest

from underlay.store.open import open_store
from underlay.store.store import Store

pytest.register_assert_rewrite("underlay.store.testing.contract")

KINDS = ["local", "memory", "seaweedfs", "moto"]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def store(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind."""
    if kind == "local":
        return open_store(tmp_path / "lake")
    if kind == "memory":
        return open_store(f"memory://{os.urandom(6).hex()}")
    return request.getfixturevalue(kind).open()
