"""Stores that obstore reaches: S3 and compatibles, GCS, Azure, and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import obstore
from obstore.exceptions import NotSupportedError

from underlay.errors import InvalidRequest, NotFound, UnderlayError
from underlay.runtime.fork import start_afresh_after_fork
from underlay.runtime.threads import side_by_side
from underlay.store.coalesce import check_size, cut, join
from underlay.store.key import check_folder, check_key
from underlay.store.remote_errors import ERRORS, RequestFailure, create_outcome, explain, read_failure
from underlay.store.store import Data, Outcome, Store, StoredObject
from underlay.values.ranges import ByteRange

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta
    from obstore.store import ObjectStore

T = TypeVar("T")

_PAGE = 1000
"""Objects in a page of a listing: S3's maximum."""
_PART_BYTES = 16 << 20


class _ClientThreads:
    """The threads that obstore starts at the first request of a process, for all stores.

    They do not survive a fork, and obstore starts no others: any request of a child would hang.
    """

    def __init__(self) -> None:
        self._are_started = False
        self._are_lost = False
        start_afresh_after_fork(self)

    def start_afresh(self) -> None:
        """Note, in a forked child, whether its parent had started them."""
        self._are_lost = self._are_started

    def use(self, place: str) -> None:
        """Return when a request can be made. Raises InvalidRequest in a child whose parent has made one."""
        if self._are_lost:
            raise InvalidRequest(
                "a forked process cannot use object stores once its parent has used one, since the threads of the "
                "client do not survive the fork",
                place=place,
                hint='Start processes by multiprocessing.get_context("spawn") or "forkserver" and connect in them, or '
                "fork before the first request.",
            )
        self._are_started = True


_THREADS = _ClientThreads()


class RemoteStore(Store):
    """An obstore store under our contract. Made by `open_store`.

    obstore repeats failed requests by itself, so REFUSED may mean that our own earlier attempt succeeded. No attribute
    is the obstore store, whose configuration shows the credentials; a pickled store contains them, so that another
    process can open it.
    """

    gap_bytes = 1 << 20

    def __init__(self, inner: ObjectStore, url: str) -> None:
        self._inner: Callable[[], ObjectStore] = lambda: inner
        self._url = url

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._inner(), self._url)

    @property
    def url(self) -> str:
        """See Store."""
        return self._url

    def create(self, key: str, data: Data) -> Outcome:
        """See Store. Always a single upload: a multipart one cannot be conditional everywhere."""
        check_key(key)
        try:
            obstore.put(self._client(), key, _sendable(data), mode="create", use_multipart=False)
            return Outcome.DONE
        except ERRORS as e:
            failure = read_failure(e)
        outcome = create_outcome(failure)
        if outcome is None:
            raise explain(failure, self._place(key), is_write=True)
        return outcome

    def put(self, key: str, data: Data) -> None:
        """See Store. Above 16 MiB a multipart upload."""
        check_key(key)
        sendable = _sendable(data)
        self._ask(
            key,
            lambda: obstore.put(
                self._client(), key, sendable, use_multipart=len(data) > _PART_BYTES, chunk_size=_PART_BYTES
            ),
            is_write=True,
        )

    def get(self, key: str, *, if_match: str | None = None) -> tuple[memoryview, StoredObject]:
        """See Store."""
        check_key(key)
        return self._ask(key, lambda: self._get(key, {"if_match": if_match} if if_match else {}))

    def get_ranges(
        self,
        key: str,
        ranges: Sequence[ByteRange],
        *,
        if_match: str | None = None,
        size_bytes: int | None = None,
        gap_bytes: int | None = None,
    ) -> Sequence[memoryview]:
        """See Store. Up to ten requests at once."""
        check_key(key)
        joined = join(ranges, self.gap_bytes if gap_bytes is None else gap_bytes)
        if if_match is None and size_bytes is None:
            fetched = self._ask(key, lambda: self._get_joined(key, joined))
        else:
            fetched = self._ask(key, lambda: self._get_joined_checked(key, joined, if_match, size_bytes))
        try:
            return cut(fetched, joined, ranges)
        except UnderlayError as e:
            raise e.at(self._place(key)) from None

    def get_tail(self, key: str, size_bytes: int) -> tuple[memoryview, StoredObject]:
        """See Store."""
        check_key(key)
        try:
            return self._get(key, {"range": {"suffix": size_bytes}})
        except NotSupportedError:
            failure = None
        except ERRORS as e:
            failure = read_failure(e)
        if failure is not None and not failure.is_range_past_end:
            raise explain(failure, self._place(key))
        return self._tail_by_size(key, size_bytes)

    def head(self, key: str) -> StoredObject | None:
        """See Store."""
        check_key(key)
        try:
            return _described(obstore.head(self._client(), key))
        except ERRORS as e:
            failure = read_failure(e)
        if failure.is_missing_object:
            return None
        raise explain(failure, self._place(key))

    def list_objects(self, folder: str = "", *, after: str | None = None) -> Iterator[StoredObject]:
        """See Store. One request for a thousand objects."""
        return self._pages(check_folder(folder), check_key(after) if after else None)

    def list_folders(self, folder: str = "") -> Sequence[str]:
        """See Store."""
        folder = check_folder(folder)
        found = self._ask(folder, lambda: obstore.list_with_delimiter(self._client(), folder or None))
        return sorted(found["common_prefixes"])

    def delete(self, keys: Iterable[str]) -> None:
        """See Store."""
        paths = [check_key(key) for key in keys]
        failure = self._delete(paths)
        if failure is not None and failure.status == 404:
            # GCS and Azure report a missing object as an error, and then do not say what became of the others.
            failures = [failure for path in paths if (failure := self._delete([path])) is not None]
            failure = next((failure for failure in failures if not failure.is_missing_object), None)
        if failure is not None:
            raise explain(failure, self._url, is_write=True)

    def _delete(self, paths: list[str]) -> RequestFailure | None:
        try:
            obstore.delete(self._client(), paths)
        except ERRORS as e:
            return read_failure(e)
        return None

    def _get(self, key: str, options: GetOptions) -> tuple[memoryview, StoredObject]:
        result = obstore.get(self._client(), key, options=options)
        return memoryview(result.bytes()), _described(result.meta)

    def _get_joined(self, key: str, joined: Sequence[ByteRange]) -> list[memoryview]:
        begins, ends = [r.begin for r in joined], [r.end for r in joined]
        return [
            memoryview(piece) for piece in obstore.get_ranges(self._client(), key, starts=begins, ends=ends, coalesce=0)
        ]

    def _get_joined_checked(
        self, key: str, joined: Sequence[ByteRange], if_match: str | None, size_bytes: int | None
    ) -> list[memoryview]:
        """obstore's `get_ranges` accepts no condition and returns no size, so each range is a separate get."""
        condition: GetOptions = {"if_match": if_match} if if_match else {}

        def fetch(wanted: ByteRange) -> memoryview:
            result = obstore.get(self._client(), key, options={"range": wanted, **condition})
            check_size(result.meta["size"], size_bytes, lambda: self._place(key))
            return memoryview(result.bytes())

        return side_by_side(fetch, joined, self.parallel_requests)

    def _tail_by_size(self, key: str, size_bytes: int) -> tuple[memoryview, StoredObject]:
        """The tail, from a store without suffix ranges, of one state of the object."""
        found = self.head(key)
        if found is None:
            raise NotFound("no such object", place=self._place(key))
        begin = max(found.size_bytes - size_bytes, 0)
        if begin == found.size_bytes:
            return memoryview(b""), found
        (tail,) = self.get_ranges(key, [ByteRange(begin, found.size_bytes)], if_match=found.etag)
        return tail, found

    def _pages(self, folder: str, after: str | None) -> Iterator[StoredObject]:
        stream = obstore.list(self._client(), folder or None, offset=after, chunk_size=_PAGE)
        while page := self._ask(folder, lambda: next(stream, None)):
            yield from map(_described, page)

    def _ask(self, key: str, request: Callable[[], T], *, is_write: bool = False) -> T:
        """The answer to `request`, or our error. It is raised outside the handler, so that obstore's text, which may
        quote credentials, is not even its context."""
        _THREADS.use(self._url)
        try:
            return request()
        except ERRORS as e:
            failure = read_failure(e)
        raise explain(failure, self._place(key), is_write=is_write)

    def _client(self) -> ObjectStore:
        """The obstore store, for a request. Raises InvalidRequest where no request can be made."""
        _THREADS.use(self._url)
        return self._inner()

    def _place(self, key: str) -> str:
        return f"{self._url}/{key}" if key else self._url


def _rebuild(inner: ObjectStore, url: str) -> RemoteStore:
    return RemoteStore(inner, url)


def _described(meta: ObjectMeta) -> StoredObject:
    return StoredObject(key=meta["path"], size_bytes=meta["size"], etag=meta["e_tag"], modified=meta["last_modified"])


def _sendable(data: Data) -> bytes | memoryview:
    """obstore takes one-dimensional unsigned bytes."""
    return data if isinstance(data, bytes) else memoryview(data).cast("B")
