"""A registered file stays the same file while its bytes do, whatever became of its modification time, inode or etag.

The etag that a file had when it was registered is the fast check. Where it differs, size and footer checksum decide:
after a copy, a restore or a `touch` they are equal, and the file is then read with its current etag. By that etag a
change during the read is noticed (R12).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from deflate import crc32

from underlay.errors import NotFound, Replaced
from underlay.index.entry import NO_CRC
from underlay.parquet.footer.tail import TAIL_BYTES
from underlay.runtime.locks import ProcessLock
from underlay.store.store import Store
from underlay.values.ranges import ByteRange

T = TypeVar("T")

_ATTEMPTS = 3
_MOST_SEEN = 65536


class KnownFile(NamedTuple):
    """What the index knows of a file. `etag` is None for a file of ours, which is read whatever its etag is."""

    size_bytes: int
    etag: str | None
    footer_bytes: int
    footer_crc: int


class _Seen:
    """The current etags of files that were found unchanged. Safe for many threads."""

    def __init__(self) -> None:
        self._etags: OrderedDict[tuple[str, str, KnownFile], str | None] = OrderedDict()
        self._lock = ProcessLock()

    def get(self, store: Store, key: str, known: KnownFile) -> str | None:
        return self._etags.get((store.url, key, known), known.etag)

    def put(self, store: Store, key: str, known: KnownFile, etag: str | None) -> None:
        with self._lock:
            self._etags[store.url, key, known] = etag
            if len(self._etags) > _MOST_SEEN:
                self._etags.popitem(last=False)


_SEEN = _Seen()


def read_same(store: Store, key: str, known: KnownFile, read: Callable[[str | None], T]) -> T:
    """What `read` returns for the file's current etag. Raises Replaced when it has other bytes; NotFound; what `read`
    raises.

    No request besides those of `read` while the etag is unchanged; one more when it changed.
    """
    if known.etag is None:
        return read(None)
    etag = _SEEN.get(store, key, known)
    try:
        for _ in range(_ATTEMPTS):
            try:
                return read(etag)
            except Replaced:
                etag = current_etag(store, key, known)
                _SEEN.put(store, key, known, etag)
        return read(etag)
    except NotFound as error:
        error.hint = error.hint or 'Bring the file back, or leave it out with "underlay unregister".'
        raise


def get_same_ranges(
    store: Store, key: str, ranges: Sequence[ByteRange], known: KnownFile, *, gap_bytes: int | None = None
) -> Sequence[memoryview]:
    """The bytes of each range, as `Store.get_ranges` gives them. Raises as `read_same` does."""
    return read_same(
        store,
        key,
        known,
        lambda etag: store.get_ranges(key, ranges, if_match=etag, size_bytes=known.size_bytes, gap_bytes=gap_bytes),
    )


def current_etag(store: Store, key: str, known: KnownFile) -> str | None:
    """The current etag of a file. One request. Raises Replaced when size or footer have changed, or when the footer
    was never read; NotFound."""
    end, found = store.get_tail(key, known.footer_bytes + TAIL_BYTES)
    footer = end[: max(len(end) - TAIL_BYTES, 0)]
    is_same = found.size_bytes == known.size_bytes and len(footer) == known.footer_bytes
    if not is_same or known.footer_crc == NO_CRC or crc32(footer) != known.footer_crc:
        raise Replaced(
            "the file was replaced since it was registered: its bytes differ",
            expected=f"{known.size_bytes} bytes, footer {known.footer_crc:#010x}",
            found=f"{found.size_bytes} bytes, footer {crc32(footer):#010x}",
            hint='Put the old file back, take it as it is now with "underlay register --refresh" '
            '(refresh=True), or leave it out with "underlay unregister".',
        )
    return found.etag
