"""What every store promises, tried on each of ours."""

from __future__ import annotations

import pytest

from underlay.store.store import Store
from underlay.store.testing import StoreContract


class TestOurStores(StoreContract):
    @pytest.fixture
    def store(self, store: Store) -> Store:
        return store

    @pytest.fixture
    def sorts_folders_as_keys(self, kind: str) -> bool:
        return kind != "seaweedfs"  # it sorts a folder by its name without the slash
