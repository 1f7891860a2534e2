from __future__ import annotations

from uuid import uuid4

import pytest

from tests.maintain.meddling_store import MeddlingStore
from underlay.store import open_store


@pytest.fixture
def store() -> MeddlingStore:
    return MeddlingStore(open_store(f"memory://{uuid4()}"))
