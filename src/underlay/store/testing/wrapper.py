"""A store around another one, with one place through which every request passes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from underlay.store.coalesce import join
from underlay.store.store import Data, Outcome, Store, StoredObject
from underlay.values.ranges import ByteRange

T = TypeVar("T")

_DELETED_AT_ONCE = 1000


class StoreMethod(StrEnum):
    """The methods of a store."""

    CREATE = "create"
    PUT = "put"
    GET = "get"
    GET_RANGES = "get_ranges"
    GET_TAIL = "get_tail"
    HEAD = "head"
    LIST_OBJECTS = "list_objects"
    LIST_FOLDERS = "list_folders"
    DELETE = "delete"
    NOW = "now"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of a store, before it is made."""

    op: StoreMethod
    keys: tuple[str, ...]
    """The object; the folder of a listing; all objects of a delete."""
    sent_bytes: int = 0
    request_count: int = 1
    """Parallel requests: joined ranges, thousands of deleted keys. A listing counts as one."""


class StoreWrapper(Store):
    """Passes everything on to `inner` through `around`."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.gap_bytes = inner.gap_bytes

    @abstractmethod
    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        """Make the call, or do something else. `received_bytes` measures its result."""

    @property
    def url(self) -> str:
        """That of the inner store."""
        return self.inner.url

    @property
    def is_remote(self) -> bool:
        """Whether the inner store is."""
        return self.inner.is_remote

    @property
    def parallel_requests(self) -> int:
        """As many as of the inner store."""
        return self.inner.parallel_requests

    def create(self, key: str, data: Data) -> Outcome:
        """See Store."""
        request = Request(op=StoreMethod.CREATE, keys=(key,), sent_bytes=len(data))
        return self.around(request, lambda: self.inner.create(key, data), _nothing)

    def put(self, key: str, data: Data) -> None:
        """See Store."""
        request = Request(op=StoreMethod.PUT, keys=(key,), sent_bytes=len(data))
        self.around(request, lambda: self.inner.put(key, data), _nothing)

    def get(self, key: str, *, if_match: str | None = None) -> tuple[memoryview, StoredObject]:
        """See Store."""
        request = Request(op=StoreMethod.GET, keys=(key,))
        return self.around(request, lambda: self.inner.get(key, if_match=if_match), _of_first)

    def get_ranges(
        self,
        key: str,
        ranges: Sequence[ByteRange],
        *,
        if_match: str | None = None,
        size_bytes: int | None = None,
        gap_bytes: int | None = None,
    ) -> Sequence[memoryview]:
        """See Store. What is received counts with the gaps."""
        joined = join(ranges, self.gap_bytes if gap_bytes is None else gap_bytes)
        received = sum(wanted.size_bytes for wanted in joined)
        return self.around(
            Request(op=StoreMethod.GET_RANGES, keys=(key,), request_count=len(joined)),
            lambda: self.inner.get_ranges(key, ranges, if_match=if_match, size_bytes=size_bytes, gap_bytes=gap_bytes),
            lambda _: received,
        )

    def get_tail(self, key: str, size_bytes: int) -> tuple[memoryview, StoredObject]:
        """See Store."""
        request = Request(op=StoreMethod.GET_TAIL, keys=(key,))
        return self.around(request, lambda: self.inner.get_tail(key, size_bytes), _of_first)

    def head(self, key: str) -> StoredObject | None:
        """See Store."""
        return self.around(Request(op=StoreMethod.HEAD, keys=(key,)), lambda: self.inner.head(key), _nothing)

    def list_objects(self, folder: str = "", *, after: str | None = None) -> Iterator[StoredObject]:
        """See Store."""
        request = Request(op=StoreMethod.LIST_OBJECTS, keys=(folder,))
        return self.around(request, lambda: self.inner.list_objects(folder, after=after), _nothing)

    def list_folders(self, folder: str = "") -> Sequence[str]:
        """See Store."""
        request = Request(op=StoreMethod.LIST_FOLDERS, keys=(folder,))
        return self.around(request, lambda: self.inner.list_folders(folder), _nothing)

    def delete(self, keys: Iterable[str]) -> None:
        """See Store."""
        paths = tuple(keys)
        request = Request(op=StoreMethod.DELETE, keys=paths, request_count=-(-len(paths) // _DELETED_AT_ONCE))
        self.around(request, lambda: self.inner.delete(paths), _nothing)

    def now(self) -> datetime:
        """See Store."""
        return self.around(Request(op=StoreMethod.NOW, keys=()), self.inner.now, _nothing)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"


def _nothing(_: object) -> int:
    return 0


def _of_first(result: tuple[memoryview, StoredObject]) -> int:
    return len(result[0])
