from __future__ import annotations

import pytest

from tests.end_to_end.lakes import NAME, SCHEMA, memory, quick, rows
from underlay.store import Store


@pytest.fixture
def store() -> Store:
    """A file of four blocks and one of two, of 100 rows each."""
    store = memory()
    table = quick(store).create_table(NAME, SCHEMA, key=["id"], properties={"block_rows": 100})
    table.append(rows(range(400)))
    table.append(rows(range(400, 600)))
    return store
