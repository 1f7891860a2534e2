"""Bounds and folders come from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from underlay.cache.settings import disk_bound, disk_folder, memory_bound, memory_cache
from underlay.errors import InvalidRequest


def test_memory_is_a_quarter_of_a_small_machine_and_half_a_gibibyte_of_a_large_one() -> None:
    assert memory_bound({}, 1 << 30) == 1 << 28
    assert memory_bound({}, 64 << 30) == 512 << 20


def test_the_environment_says_how_much() -> None:
    assert memory_bound({"UNDERLAY_CACHE_BYTES": "1000"}, 1 << 30) == 1000
    assert disk_bound({"UNDERLAY_DISK_CACHE_BYTES": "0"}) == 0
    assert disk_bound({}) == 2 << 30


@pytest.mark.parametrize("text", ["-1", "1e9", "1 GB", "many"])
def test_what_is_no_number_of_bytes_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="UNDERLAY_CACHE_BYTES"):
        memory_bound({"UNDERLAY_CACHE_BYTES": text}, 1 << 30)


def test_the_folder_is_the_chosen_one_else_in_the_users_cache() -> None:
    home = Path("/home/somebody")
    assert disk_folder({"UNDERLAY_CACHE_DIR": "/c", "XDG_CACHE_HOME": "/x"}, home) == Path("/c")
    assert disk_folder({"XDG_CACHE_HOME": "/x"}, home) == Path("/x/underlay")
    assert disk_folder({}, home) == home / ".cache/underlay"


def test_all_of_a_process_share_one_memory_cache() -> None:
    assert memory_cache() is memory_cache()
    assert memory_cache().stats().bound_bytes > 0
