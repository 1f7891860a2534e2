"""Maps large files into memory, few at a time: each map keeps one of the process's few hundred descriptors open, and a
small file is read as fast."""

from __future__ import annotations

import mmap
from weakref import WeakSet

MAP_FROM = 8 << 20
"""Bytes from which on a map is worth a descriptor. All of them are looked at once, for their checksum: mapping saves no
more than a copy, a few milliseconds."""
MOST_MAPS = 128
"""A process is often limited to 1,024 descriptors."""
_living: WeakSet[mmap.mmap] = WeakSet()


def map_file(descriptor: int, size_bytes: int, wanted_bytes: int) -> memoryview | None:
    """The whole file, mapped; None when a read is better: little of it is wanted, or there are too many maps.

    The map lives as long as a view of it does, whatever becomes of the descriptor and the file's name.
    """
    if wanted_bytes < MAP_FROM or len(_living) >= MOST_MAPS:
        return None
    mapped = mmap.mmap(descriptor, size_bytes, access=mmap.ACCESS_READ)
    _living.add(mapped)
    return memoryview(mapped)
