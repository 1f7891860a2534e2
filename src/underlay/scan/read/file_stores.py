"""Which store holds a file, and under which key: the lake's own, or for a registered file another one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple
from urllib.parse import quote, unquote

from underlay.errors import InvalidRequest
from underlay.index.keys import HOT_SCHEME, RevisionKeys, in_lake, plain_location
from underlay.runtime.locks import ProcessLock, cached_property
from underlay.runtime.posix import need_posix
from underlay.store import Store, open_store
from underlay.store.open import StoreOptions

LOCAL = "file"
"""The scheme of local files' URLs: the only one whose paths are quoted."""


_PATHS = (LOCAL, HOT_SCHEME)


class ObjectPlace(NamedTuple):
    """An object."""

    store: Store
    key: str


class FileStores:
    """Opens each store once. Other stores get the lake's options if they have the lake's scheme."""

    def __init__(self, lake: Store, options: Mapping[str, str] | None = None) -> None:
        self.lake = lake
        self.options = StoreOptions(options or {})
        self._opened: dict[str, Store] = {}
        self._lock = ProcessLock()

    @cached_property
    def local_root(self) -> str | None:
        """The real path of the lake's folder, None for a lake that is not on this machine."""
        scheme, path = self._lake_path
        return os.path.realpath(path) if scheme == LOCAL else None

    def locate(self, keys: RevisionKeys, location: str) -> ObjectPlace:
        """Where a file of the revision with `keys` lies."""
        key = keys.file(location)
        if key is not None:
            return ObjectPlace(self.lake, key)
        scheme, _, rest = plain_location(location).partition("://")
        return self.locate_path(scheme, unquote(rest) if scheme in _PATHS else rest)

    def locate_path(self, scheme: str, path: str) -> ObjectPlace:
        """Where `scheme://path` lies; the path is unquoted, and may be a pattern."""
        own_scheme, own_path = self._lake_path
        if scheme == own_scheme and path.startswith(f"{own_path}/"):
            return ObjectPlace(self.lake, path[len(own_path) + 1 :])
        bucket, _, key = ("", "", path.lstrip("/")) if scheme in _PATHS else path.partition("/")
        if not key or not scheme:
            raise InvalidRequest(
                "not the URL of an object", found=f"{scheme}://{path}", hint="Write s3://bucket/key or file:///path."
            )
        root = f"{scheme}://{bucket or '/'}"
        with self._lock:
            if root not in self._opened and scheme == HOT_SCHEME:
                self._opened[root] = growing_files()
            if root not in self._opened:
                is_alike = scheme == own_scheme and scheme != LOCAL
                self._opened[root] = open_store(root, self.options if is_alike else None)
            return ObjectPlace(self._opened[root], key)

    def location(self, place: ObjectPlace) -> str:
        """The index's name for a registered file; a file below the lake keeps it when the lake is moved."""
        if place.store is self.lake:
            return in_lake(place.key)
        url = place.store.url
        if url.startswith(f"{LOCAL}://"):
            return f"{url if url.endswith('/') else f'{url}/'}{quote(place.key)}"
        return f"{url}/{place.key}"

    @cached_property
    def _lake_path(self) -> tuple[str, str]:
        scheme, _, rest = self.lake.url.partition("://")
        return scheme, (unquote(rest) if scheme == LOCAL else rest).rstrip("/")


@cache
def growing_files() -> Store:
    """The store of hot partitions: all files of this machine. Raises Unsupported where they cannot be."""
    need_posix("hot partitions")
    from underlay.scan.read.growing import GrowingStore  # after the check: its modules need POSIX

    return GrowingStore("/")
