"""The interface of every store, and the values that it uses.

Commits rest on one promise, that of `create`: of all callers that create the same key, at most one is told DONE, and
the bytes that stay are its own. The rest is ordinary: objects are whole or absent, and every later get, head and list
sees a key that was put.

Stores are synchronous and may be used by many threads at once. They log nothing, and neither their `url` and `repr`
nor their errors hold a credential.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from underlay.errors import Inconsistent
from underlay.values.ranges import ByteRange

Data = bytes | bytearray | memoryview
"""What can be put."""

_THIS_MACHINE = ("file:", "memory:")
_REMOTE_REQUESTS = 16
_LOCAL_REQUESTS = 8


class Outcome(Enum):
    """What is known after `create`."""

    DONE = "done"
    """The store acknowledged that it created the object with our bytes."""
    REFUSED = "refused"
    """The key exists. It may be our own: a request repeated after a lost response meets its own first success."""
    UNKNOWN = "unknown"
    """Nothing is known: timeout, lost connection, server error, or a conflict of requests in progress. The object may
    exist, may never exist, or may appear later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """An object as its store describes it."""

    key: str
    size_bytes: int
    etag: str | None
    """Changes when the object is replaced; compare for equality only."""
    modified: datetime
    """When the object was put, by the store's clock, in UTC. S3 and GCS give whole seconds."""


class Store(ABC):
    """A flat mapping from keys to immutable bytes. See `key` for what a key is.

    Every method may raise InvalidRequest for a bad key, and Unavailable when access is denied, the bucket does not
    exist, or the store does not answer after its retries.
    """

    gap_bytes: int = 0
    """Ranges at most this far apart are fetched together unless the caller says otherwise."""

    @property
    def is_remote(self) -> bool:
        """Whether requests go over a network, so that it pays to make fewer and more of them at once."""
        return not self.url.startswith(_THIS_MACHINE)

    @property
    def parallel_requests(self) -> int:
        """How many small reads to make at once. Reads from this machine mostly contend for the interpreter."""
        return _REMOTE_REQUESTS if self.is_remote else _LOCAL_REQUESTS

    @property
    @abstractmethod
    def url(self) -> str:
        """Where the store is, without credentials. `open_store` takes it."""

    @abstractmethod
    def create(self, key: str, data: Data) -> Outcome:
        """Put `data` at `key` unless the key exists. One request.

        Raises only when certainly nothing was written and a retry cannot help: access denied, no such bucket, disk
        full. Any doubt is an Outcome, which the caller resolves by reading the key.
        """

    @abstractmethod
    def put(self, key: str, data: Data) -> None:
        """Put `data` at `key`, replacing what is there. One request, more for large data. After an error the object
        may or may not have been replaced, but it is whole."""

    @abstractmethod
    def get(self, key: str, *, if_match: str | None = None) -> tuple[memoryview, StoredObject]:
        """The object's bytes and description, or NotFound; Replaced when `if_match` is not its etag. One request."""

    def get_all(self, keys: Sequence[str]) -> Iterator[memoryview]:
        """The bytes of each object, in order, one request after the other. Raises NotFound at the first that is
        missing."""
        return (self.get(key)[0] for key in keys)

    @abstractmethod
    def get_ranges(
        self,
        key: str,
        ranges: Sequence[ByteRange],
        *,
        if_match: str | None = None,
        size_bytes: int | None = None,
        gap_bytes: int | None = None,
    ) -> Sequence[memoryview]:
        """The bytes of each range, in the order of `ranges`, which may overlap.

        Ranges at most `gap_bytes` apart (the store's own default when None) are one request, and all requests run in
        parallel. Ranges that were fetched together share memory: holding one holds its neighbours. Raises NotFound,
        Truncated when a range reaches past the end, Replaced when `if_match` is not the etag or `size_bytes` not the
        size of the object.
        """

    @abstractmethod
    def get_tail(self, key: str, size_bytes: int) -> tuple[memoryview, StoredObject]:
        """The last `size_bytes` bytes, or all when there are fewer, and the description. One request; two more for an
        empty object, and always on Azure, which has no suffix ranges."""

    @abstractmethod
    def head(self, key: str) -> StoredObject | None:
        """The object's description, or None when there is no such object. One request. S3 answers a HEAD in a missing
        bucket as it answers for a missing key."""

    @abstractmethod
    def list_objects(self, folder: str = "", *, after: str | None = None) -> Iterator[StoredObject]:
        """The objects below `folder` whose keys follow `after`; ascending by key, one page at a time.

        SeaweedFS sorts a folder by its name without the `/`, so there `a/b` comes before `a-b`, and `after` counts in
        that order. Rely on the order only among keys that lie directly in `folder`.
        """

    @abstractmethod
    def list_folders(self, folder: str = "") -> Sequence[str]:
        """The folders directly in `folder`, as keys without a `/` at their end, ascending.

        Where folders are real (local, SeaweedFS), one whose last object was deleted may be listed.
        """

    @abstractmethod
    def delete(self, keys: Iterable[str]) -> None:
        """Delete the objects; a missing one counts as deleted. One request for up to 1,000 keys on S3, one for each key
        on GCS. After an error some may be left."""

    def now(self) -> datetime:
        """The time by the clock that stamps `modified`. Puts, describes and deletes a small object: three requests."""
        key = f"_clock/{os.urandom(8).hex()}"
        self.put(key, b"")
        found = self.head(key)
        self.delete([key])
        if found is None:
            raise Inconsistent("an object that was just put is not there", place=f"{self.url}: {key}")
        return found.modified

    def place_of(self, key: str) -> str:
        """Where an object is, for messages."""
        return f"{self.url}{key}" if self.url.endswith("/") else f"{self.url}/{key}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"
