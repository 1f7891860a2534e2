"""What tests of several kinds of care begin with."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.maintain.late_store import LateStore
from underlay.store import open_store


@pytest.fixture
def store() -> LateStore:
    """An empty store in memory, whose clock can be late."""
    return LateStore(open_store(f"memory://{uuid4()}"))
