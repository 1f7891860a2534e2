"""Which store holds a file, and under which key: the lake's own, or another that a registered file lies in."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

from underlay.errors import InvalidRequest
from underlay.index.keys import RevisionKeys
from underlay.store import Store, open_store


class Place(NamedTuple):
    """An object."""

    store: Store
    key: str


class FileStores:
    """Opens each store once. Other stores get the lake's options when their scheme is the lake's."""

    def __init__(self, lake: Store, options: Mapping[str, str] | None = None) -> None:
        self._lake = lake
        self._options = options
        self._opened: dict[str, Store] = {}
        self._lock = Lock()

    def locate(self, keys: RevisionKeys, location: str) -> Place:
        """Where a file of the revision with `keys` lies."""
        key = keys.file(location)
        return Place(self._lake, key) if key is not None else self.locate_url(location)

    def locate_url(self, url: str) -> Place:
        """Where the object of this URL lies."""
        parts = urlsplit(url)
        path = parts.path.lstrip("/")
        if not path or not parts.scheme:
            raise InvalidRequest("not the URL of an object", found=url, hint="Write s3://bucket/key or file:///path.")
        is_local = parts.scheme == "file"
        root = "file:///" if is_local else urlunsplit((parts.scheme, parts.netloc, "", "", ""))
        with self._lock:
            if root not in self._opened:
                is_alike = urlsplit(self._lake.url).scheme == parts.scheme and not is_local
                self._opened[root] = open_store(root, self._options if is_alike else None)
            return Place(self._opened[root], path)
