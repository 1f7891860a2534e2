"""The folder of a table of another system, and addresses of objects as its metadata writes them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from urllib.parse import unquote

from underlay.change.register.find_files import FoundFile, absolute_path
from underlay.errors import InvalidRequest
from underlay.scan.read.file_stores import LOCAL, FileStores, ObjectPlace
from underlay.store.store import StoredObject

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(/.*)", re.DOTALL)
_SAME = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "az", "abfss": "az", "wasb": "az", "wasbs": "az"}


class SourceFolder:
    """A folder on any store. Paths in it are unquoted."""

    def __init__(self, url: str, stores: FileStores) -> None:
        scheme, path = absolute_path(url)
        self.stores = stores
        self._scheme = _SAME.get(scheme, scheme)
        self._path = (os.path.realpath(path) if scheme == LOCAL else _without_account(scheme, path)).rstrip("/")
        if not self._path:
            raise InvalidRequest("a table's folder is missing", found=url)
        probe = self.place("_")
        self._store, self._key = probe.store, probe.key[:-2]

    @property
    def url(self) -> str:
        """The folder, as it is noted."""
        return f"{self._scheme}://{self._path}"

    def place(self, path: str) -> ObjectPlace:
        """An object in the folder."""
        return self.stores.locate_path(self._scheme, f"{self._path}/{path}")

    def get(self, path: str) -> memoryview:
        """An object's bytes. Raises NotFound."""
        place = self.place(path)
        return place.store.get(place.key)[0]

    def objects(self, folder: str = "", *, after: str | None = None) -> Iterator[tuple[str, StoredObject]]:
        """The objects below a folder in this one, with their paths in this one."""
        key = f"{self._key}/{folder}".rstrip("/")
        begin = None if after is None else f"{self._key}/{after}"
        for described in self._store.list_objects(key, after=begin):
            yield described.key.removeprefix(f"{self._key}/"), described

    def found(self, path: str) -> FoundFile:
        """A data file in the folder."""
        return found_file(self.place(path), self.stores)

    def found_uri(self, uri: str) -> FoundFile:
        """A data file by its URI, or by its path in this folder."""
        place = locate_uri(uri, self.stores)
        return self.found(uri) if place is None else found_file(place, self.stores)


def found_file(place: ObjectPlace, stores: FileStores) -> FoundFile:
    """A data file."""
    return FoundFile(place=place, location=stores.location(place), path=place.key)


def locate_uri(uri: str, stores: FileStores, *, is_quoted: bool = False) -> ObjectPlace | None:
    """The object of a URI or absolute path, in any of the ways in which Hadoop writes them; None for a relative path.

    `is_quoted`: the URI is percent-encoded.
    """
    match = _SCHEME.fullmatch(uri)
    if match is None:
        return stores.locate_path(LOCAL, os.path.realpath(uri)) if uri.startswith("/") else None
    scheme, rest = match[1].lower(), unquote(match[2]) if is_quoted else match[2]
    if scheme == LOCAL:
        return stores.locate_path(LOCAL, os.path.realpath("/" + rest.lstrip("/")))
    return stores.locate_path(_SAME.get(scheme, scheme), _without_account(scheme, rest.lstrip("/")))


def _without_account(scheme: str, path: str) -> str:
    """`container@account.host/key` of Azure as `container/key`."""
    container, at, rest = path.partition("@")
    if not at or scheme not in _SAME or _SAME[scheme] != "az" or "/" in container:
        return path
    return f"{container}/{rest.partition('/')[2]}"
