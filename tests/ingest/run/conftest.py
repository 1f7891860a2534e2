from __future__ import annotations

import pytest

from tests.ingest.lakes import (
    memory_lake,
)
from underlay.table.catalog.lake import LakeCatalog


@pytest.fixture
def lake() -> LakeCatalog:
    return memory_lake()
