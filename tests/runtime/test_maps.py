from __future__ import annotations

import os
from pathlib import Path

import pytest

from underlay.runtime import maps
from underlay.runtime.maps import map_file


@pytest.fixture
def descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(maps, "MOST_MAPS", len(maps._living) + 2)
    (tmp_path / "file").write_bytes(b"x" * maps.MAP_FROM)
    return os.open(tmp_path / "file", os.O_RDONLY)


def test_a_process_has_few_maps_and_none_of_what_is_small(descriptor: int):
    size = maps.MAP_FROM
    assert map_file(descriptor, size, size - 1) is None
    views = [map_file(descriptor, size, size) for _ in range(4)]
    os.close(descriptor)
    assert [view is not None for view in views] == [True, True, False, False]
    assert views[0] == b"x" * size


def test_a_map_counts_as_long_as_a_view_of_it_lives(descriptor: int):
    size = maps.MAP_FROM
    views = [map_file(descriptor, size, size) for _ in range(2)]
    assert views[0] is not None
    part = views[0][5:9]
    views[0] = None
    assert map_file(descriptor, size, size) is None
    assert part == b"xxxx"
    views[1] = None
    assert map_file(descriptor, size, size) is not None
    os.close(descriptor)
