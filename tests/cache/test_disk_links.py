from __future__ import annotations

import os
from pathlib import Path

from underlay.cache.disk import DiskCache, PieceKey
from underlay.values.ranges import ByteRange

KEY = PieceKey.of("s3://bucket/lake", "a", "1", ByteRange(0, 4))


def test_a_link_inside_the_folder_of_the_cache_is_not_followed(tmp_path: Path):
    folder, elsewhere = tmp_path / "cache", tmp_path / "elsewhere"
    DiskCache(folder, 1 << 20).write(KEY, memoryview(b"data"))
    [inner] = folder.iterdir()
    inner.rename(elsewhere)
    [file] = elsewhere.iterdir()
    os.unlink(file)
    inner.symlink_to(elsewhere)
    cache = DiskCache(folder, 1 << 20)
    cache.write(KEY, memoryview(b"data"))
    assert list(elsewhere.iterdir()) == []
    assert not cache.stats().is_writing
    assert cache.read(KEY) is None
