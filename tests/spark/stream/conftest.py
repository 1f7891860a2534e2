"""What tests of streams into a table begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

import underlay as ul
from tests.spark.streams import Feed


@pytest.fixture
def table(tmp_path: Path) -> ul.Table:
    """An empty table of a lake with a blank in its path."""
    return ul.connect(tmp_path / "a lake").create_table("some.table", "id bigint, name string")


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    """Where a stream finds its rows."""
    return Feed(tmp_path / "in")
