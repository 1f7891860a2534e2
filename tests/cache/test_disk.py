"""The disk cache gives the right bytes or none, keeps its bound, and is shared without locks."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from deflate import crc32

from tests.cache.remote import remote_store
from underlay.cache.disk import DiskCache, PieceKey
from underlay.errors import ChecksumMismatch, NotFound, Truncated
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.wrapper import StoreMethod
from underlay.values.ranges import ByteRange

CONTENT = bytes(range(256)) * 8
RANGES = [ByteRange(0, 100), ByteRange(1000, 1100), ByteRange(50, 60)]
LARGE = 1 << 30


@pytest.fixture
def store() -> CountingStore:
    store = remote_store()
    store.put("object", CONTENT)
    store.reset()
    return store


@pytest.fixture
def disk(tmp_path: Path) -> DiskCache:
    ticks = count(10**18, 10**9)
    return DiskCache(tmp_path / "cache", LARGE, clock=lambda: next(ticks))


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def piece(number: int, size: int = 100) -> PieceKey:
    return PieceKey("s3://bucket/lake", "object", "v", number * size, (number + 1) * size)


def content_of(key: PieceKey) -> memoryview:
    return memoryview(bytes([key.begin // 100 % 251]) * (key.end - key.begin))


def expected(ranges: list[ByteRange]) -> list[bytes]:
    return [CONTENT[r.begin : r.end] for r in ranges]


def test_misses_are_one_call_and_then_hits_need_none(store: CountingStore, disk: DiskCache) -> None:
    first = disk.fetch_ranges(store, "object", "v", RANGES)
    assert [bytes(view) for view in first] == expected(RANGES)
    assert len(store.log) == 1
    assert [bytes(view) for view in disk.fetch_ranges(store, "object", "v", RANGES)] == expected(RANGES)
    assert len(store.log) == 1
    assert (disk.stats().hits, disk.stats().misses) == (3, 3)


def test_only_what_is_missing_is_fetched(store: CountingStore, disk: DiskCache) -> None:
    disk.fetch_ranges(store, "object", "v", RANGES[:1])
    store.reset()
    found = disk.fetch_ranges(store, "object", "v", RANGES)
    assert [bytes(view) for view in found] == expected(RANGES)
    assert len(store.log) == 1
    assert store.received_bytes(StoreMethod.GET_RANGES) < 1100


def test_an_empty_range_is_empty(store: CountingStore, disk: DiskCache) -> None:
    for _ in range(2):
        assert [bytes(v) for v in disk.fetch_ranges(store, "object", "v", [ByteRange(5, 5)])] == [b""]
    assert disk.fetch_ranges(store, "object", "v", []) == []


def test_another_version_key_or_store_is_another_entry(store: CountingStore, disk: DiskCache) -> None:
    disk.fetch_ranges(store, "object", "v1", RANGES[:1])
    store.put("object", CONTENT[::-1])
    assert bytes(disk.fetch_ranges(store, "object", "v2", RANGES[:1])[0]) == CONTENT[::-1][:100]
    other = remote_store("s3://other/lake")
    other.put("object", b"x" * 100)
    assert bytes(disk.fetch_ranges(other, "object", "v1", RANGES[:1])[0]) == b"x" * 100
    assert bytes(disk.fetch_ranges(store, "object", "v1", RANGES[:1])[0]) == CONTENT[:100]


def test_errors_of_the_store_are_raised_and_nothing_is_kept(store: CountingStore, disk: DiskCache) -> None:
    with pytest.raises(NotFound):
        disk.fetch_ranges(store, "missing", "v", RANGES)
    with pytest.raises(Truncated):
        disk.fetch_ranges(store, "object", "v", [ByteRange(0, 10_000)])
    assert disk.stats().written_bytes == 0


def test_what_was_read_of_an_entry_outlives_the_file(tmp_path: Path, disk: DiskCache) -> None:
    key = PieceKey("s3://bucket/lake", "object", "v", 0, 1 << 20)
    content = os.urandom(1 << 20)
    disk.write(key, memoryview(content))
    view = disk.read(key)
    for path in files(tmp_path):
        os.truncate(path, 100)
    assert view == content
    assert disk.read(key) is None


@pytest.mark.parametrize("size", [0, 1, 100])
def test_every_changed_byte_of_an_entry_is_a_miss_and_the_file_is_deleted(
    tmp_path: Path, disk: DiskCache, size: int
) -> None:
    key = PieceKey("s3://b", "o", "v", 0, size)
    disk.write(key, memoryview(CONTENT[:size]))
    (path,) = files(tmp_path)
    data = path.read_bytes()
    for at in range(len(data)):
        for flip in (1, 0x80):
            path.write_bytes(data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :])
            assert disk.read(key) is None
            assert not path.exists()
    path.write_bytes(data)
    assert disk.read(key) == CONTENT[:size]


def test_every_prefix_and_every_longer_entry_is_a_miss(tmp_path: Path, disk: DiskCache) -> None:
    key = piece(1)
    disk.write(key, content_of(key))
    (path,) = files(tmp_path)
    data = path.read_bytes()
    for damaged in [*(data[:end] for end in range(len(data))), data + b"\0"]:
        path.write_bytes(damaged)
        assert disk.read(key) is None


def test_an_entry_of_another_key_under_this_name_is_a_miss(tmp_path: Path, disk: DiskCache) -> None:
    one, another = piece(1), piece(2)
    disk.write(one, content_of(one))
    (path,) = files(tmp_path)
    data = path.read_bytes()
    path.unlink()
    disk.write(another, content_of(another))
    (path,) = files(tmp_path)
    path.write_bytes(data)
    assert disk.read(another) is None


def test_a_damaged_entry_is_fetched_again(tmp_path: Path, store: CountingStore, disk: DiskCache) -> None:
    disk.fetch_ranges(store, "object", "v", RANGES[:1])
    (path,) = files(tmp_path)
    path.write_bytes(b"damaged")
    assert bytes(disk.fetch_ranges(store, "object", "v", RANGES[:1])[0]) == CONTENT[:100]
    assert len(store.log) == 2
    disk.fetch_ranges(store, "object", "v", RANGES[:1])
    assert len(store.log) == 2


def test_bytes_without_the_known_checksum_are_neither_kept_nor_returned(store: CountingStore, disk: DiskCache) -> None:
    with pytest.raises(ChecksumMismatch, match="object"):
        disk.fetch_ranges(store, "object", "v", RANGES[:1], [1])
    assert disk.stats().written_bytes == 0
    disk.fetch_ranges(store, "object", "v", RANGES[:1])
    with pytest.raises(ChecksumMismatch):
        disk.fetch_ranges(store, "object", "v", RANGES[:1], [1])
    assert disk.fetch_ranges(store, "object", "v", RANGES[:1], [crc32(CONTENT[:100])])


def test_the_bound_holds_and_the_least_recently_read_goes_first(tmp_path: Path) -> None:
    ticks = count(10**18, 10**9)
    disk = DiskCache(tmp_path, 10_000, clock=lambda: next(ticks))
    for number in range(60):
        disk.write(piece(number), content_of(piece(number)))
        assert sum(path.stat().st_size for path in files(tmp_path)) <= 10_000
        assert disk.read(piece(0)) is not None
    assert disk.stats().evictions > 0
    kept = [number for number in range(60) if disk.read(piece(number)) is not None]
    assert kept == [0, *range(kept[1], 60)]


def test_what_is_too_large_for_the_bound_is_not_written(tmp_path: Path) -> None:
    disk = DiskCache(tmp_path, 10_000)
    disk.write(piece(0, 2000), memoryview(bytes(2000)))
    assert files(tmp_path) == []


def test_eviction_leaves_files_alone_that_are_not_its_own(tmp_path: Path) -> None:
    foreign = [tmp_path / "thesis.doc", tmp_path / "ab" / "notes.txt", tmp_path / "photos" / ("a" * 38)]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(50_000))
    disk = DiskCache(tmp_path, 10_000)
    for number in range(100):
        disk.write(piece(number), content_of(piece(number)))
    assert disk.stats().evictions > 0
    assert all(path.exists() for path in foreign)


def test_old_temporary_files_go_before_anything_else(tmp_path: Path) -> None:
    ticks = count(10**18, 10**9)
    disk = DiskCache(tmp_path, 10_000, clock=lambda: next(ticks))
    disk.write(piece(0), content_of(piece(0)))
    left = files(tmp_path)[0].parent / ".tmp-0123456789abcdef"
    left.write_bytes(bytes(9_500))
    os.utime(left, ns=(10**17, 10**17))
    for number in range(1, 10):
        disk.write(piece(number), content_of(piece(number)))
    assert not left.exists()
    assert disk.read(piece(0)) is not None


def test_a_folder_that_cannot_be_written_stops_writing_and_nothing_else(tmp_path: Path, store: CountingStore) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    disk = DiskCache(blocked / "cache", LARGE)
    for _ in range(2):
        assert [bytes(v) for v in disk.fetch_ranges(store, "object", "v", RANGES)] == expected(RANGES)
    assert not disk.stats().is_writing


@pytest.fixture
def full_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes no more once the content is written."""

    def fail(path: object, *, ns: tuple[int, int]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "utime", fail)


@pytest.mark.usefixtures("full_device")
def test_a_full_disk_leaves_no_temporary_file(tmp_path: Path, disk: DiskCache) -> None:
    disk.write(piece(0), content_of(piece(0)))
    assert not disk.stats().is_writing
    assert files(tmp_path) == []


def test_an_entry_that_cannot_be_touched_is_still_a_hit(disk: DiskCache, request: pytest.FixtureRequest) -> None:
    disk.write(piece(0), content_of(piece(0)))
    request.getfixturevalue("full_device")
    assert disk.read(piece(0)) == content_of(piece(0))


def test_a_folder_that_is_deleted_meanwhile_is_made_again(tmp_path: Path, disk: DiskCache) -> None:
    disk.write(piece(0), content_of(piece(0)))
    for path in sorted((tmp_path / "cache").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (tmp_path / "cache").rmdir()
    assert disk.read(piece(0)) is None
    disk.write(piece(0), content_of(piece(0)))
    assert disk.read(piece(0)) == content_of(piece(0))


def test_a_bound_of_nothing_keeps_nothing(tmp_path: Path, store: CountingStore) -> None:
    disk = DiskCache(tmp_path, 0)
    assert [bytes(v) for v in disk.fetch_ranges(store, "object", "v", RANGES)] == expected(RANGES)
    assert files(tmp_path) == []


def test_many_threads_read_and_write_one_folder(tmp_path: Path) -> None:
    caches = [DiskCache(tmp_path, 20_000) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda seed: work(caches[seed % 2], seed), range(8)))
    assert all(cache.stats().is_writing for cache in caches)


def test_many_processes_share_one_folder_and_never_see_wrong_bytes(tmp_path: Path) -> None:
    bound = 20_000
    command = [sys.executable, "-c", f"from tests.cache.test_disk import main; main({str(tmp_path)!r}, {bound})"]
    workers = [subprocess.Popen(command, cwd=Path(__file__).parents[2]) for _ in range(3)]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    assert files(tmp_path)
    assert sum(path.stat().st_size for path in files(tmp_path)) <= bound + 3 * bound // 16
    assert not [path for path in files(tmp_path) if path.name.startswith(".tmp-")]


def main(folder: str, bound: int) -> None:
    """What each of the processes does."""
    disk = DiskCache(Path(folder), bound)
    is_right = all(work(disk, seed) for seed in range(3))
    sys.exit(0 if is_right and disk.stats().is_writing else 1)


def work(disk: DiskCache, seed: int) -> bool:
    """Read and write entries, more than there is room for; whether all that was read was right."""
    for step in range(200):
        key = piece((seed * 31 + step * 7) % 150)
        found = disk.read(key)
        if found is None:
            disk.write(key, content_of(key))
        elif found != content_of(key):
            return False
    return True
