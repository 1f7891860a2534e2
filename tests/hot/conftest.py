"""A lake with a directory of hot partitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hot.trips import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
