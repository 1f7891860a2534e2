"""Bytes are mapped from local stores, and go through the disk cache from remote ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from deflate import crc32

from tests.cache.remote import remote_store
from underlay.cache.disk import DiskCache
from underlay.cache.objects import piece_fetcher
from underlay.errors import ChecksumMismatch, Replaced
from underlay.store.open import open_store
from underlay.store.store import Store
from underlay.values.ranges import ByteRange

CONTENT = bytes(range(256))
RANGES = [ByteRange(10, 20), ByteRange(100, 200)]
EXPECTED = [CONTENT[10:20], CONTENT[100:200]]


@pytest.fixture
def disk(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache", 1 << 20)


@pytest.fixture(params=["local", "memory", "remote"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    made = {"local": lambda: open_store(tmp_path / "lake"), "memory": lambda: remote_store("memory://m")}
    store = made.get(request.param, remote_store)()
    store.put("object", CONTENT)
    return store


@pytest.mark.parametrize("has_disk", [True, False])
def test_every_store_gives_the_same_bytes(store: Store, disk: DiskCache, has_disk: bool) -> None:
    fetch = piece_fetcher(store, "object", "v", disk if has_disk else None)
    assert [bytes(view) for view in fetch(RANGES)] == EXPECTED
    assert [bytes(view) for view in fetch(RANGES)] == EXPECTED


def test_only_remote_stores_go_through_the_disk_cache(store: Store, disk: DiskCache) -> None:
    piece_fetcher(store, "object", "v", disk)(RANGES)
    assert (disk.stats().misses > 0) == store.is_remote


def test_a_remote_object_is_fetched_once(disk: DiskCache) -> None:
    store = remote_store()
    store.put("object", CONTENT)
    store.reset()
    for _ in range(3):
        piece_fetcher(store, "object", "v", disk)(RANGES)
    assert len(store.log) == 1


def test_damaged_bytes_never_enter_the_disk_cache(disk: DiskCache) -> None:
    store = remote_store()
    store.put("object", bytes(256))
    crcs = {wanted: crc32(data) for wanted, data in zip(RANGES, EXPECTED, strict=True)}
    fetch = piece_fetcher(store, "object", "v", disk, crcs=crcs)
    with pytest.raises(ChecksumMismatch):
        fetch(RANGES)
    store.put("object", CONTENT)
    assert [bytes(view) for view in fetch(RANGES)] == EXPECTED


def test_an_object_that_was_replaced_is_refused(store: Store, disk: DiskCache) -> None:
    found = store.head("object")
    assert found is not None
    store.put("object", CONTENT[::-1] + b"!")
    with pytest.raises(Replaced):
        piece_fetcher(store, "object", "v", disk, if_match=found.etag)(RANGES)
