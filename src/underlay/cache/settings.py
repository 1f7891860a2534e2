"""Limits and location of this process's caches, from the environment or set by the process.

UNDERLAY_CACHE_BYTES        memory; 512 MiB or a quarter of the machine's, whichever is less
UNDERLAY_CACHE_DIR          folder of the disk cache; `underlay` in XDG_CACHE_HOME, or in ~/.cache
UNDERLAY_DISK_CACHE_BYTES   bound of the disk cache; 2 GiB. With 0 there is none
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from underlay.cache.memory import MemoryCache
from underlay.errors import InvalidRequest
from underlay.runtime.locks import ProcessLock

if TYPE_CHECKING:
    from underlay.cache.disk import DiskCache

_MEMORY_BYTES = 512 << 20
_MEMORY_SHARE = 4
_DISK_BYTES = 2 << 30
_making = ProcessLock()
"""`functools.cache` may call twice when two threads come first together."""


def memory_bound(environment: Mapping[str, str], machine_bytes: int) -> int:
    """The bound of the memory cache on a machine with `machine_bytes` of memory."""
    return _bytes(environment, "UNDERLAY_CACHE_BYTES", min(_MEMORY_BYTES, machine_bytes // _MEMORY_SHARE))


def disk_bound(environment: Mapping[str, str]) -> int:
    """The bound of the disk cache."""
    return _bytes(environment, "UNDERLAY_DISK_CACHE_BYTES", _DISK_BYTES)


def disk_folder(environment: Mapping[str, str], home: Path) -> Path:
    """The folder of the disk cache."""
    chosen = environment.get("UNDERLAY_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(environment.get("XDG_CACHE_HOME") or home / ".cache") / "underlay"


def memory_cache() -> MemoryCache:
    """The cache that all lakes of this process share. Its `set_bound` changes how much it holds."""
    with _making:
        return _make_memory_cache()


def disk_cache() -> DiskCache | None:
    """The disk cache of this process, which other processes share; None when its bound is 0."""
    with _making:
        return _make_disk_cache()


@cache
def _make_memory_cache() -> MemoryCache:
    machine_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return MemoryCache(memory_bound(os.environ, machine_bytes))


@cache
def _make_disk_cache() -> DiskCache | None:
    from underlay.cache.disk import DiskCache  # loads what a listing does without

    bound = disk_bound(os.environ)
    return DiskCache(disk_folder(os.environ, Path.home()), bound) if bound else None


def _bytes(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit()):
        raise InvalidRequest(f"{name} is not a number of bytes", found=text, hint=f"Set it to {default}, for example.")
    return int(text)
