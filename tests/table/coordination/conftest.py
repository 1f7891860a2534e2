from __future__ import annotations

import pytest

from tests.table.entries import new_table
from underlay.store.store import Store


@pytest.fixture
def store() -> Store:
    """A lake with one table."""
    return new_table()[1].store
