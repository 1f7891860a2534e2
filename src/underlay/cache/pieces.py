"""How bytes of an object are fetched best: mapped from a local disk, through the disk cache from a remote store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from underlay.cache.disk import DiskCache
from underlay.store.store import Store
from underlay.values.ranges import ByteRange

Fetch = Callable[[Sequence[ByteRange]], Sequence[memoryview]]
"""The bytes of each range of one object."""

_NEAR = ("file:", "memory:")
"""How the URLs of stores begin from which a read costs less than from the disk cache."""


def is_remote(store: Store) -> bool:
    """Whether a read from the store goes over a network."""
    return not store.url.startswith(_NEAR)


def piece_fetcher(
    store: Store,
    key: str,
    version: str,
    disk: DiskCache | None,
    *,
    crcs: Mapping[ByteRange, int] | None = None,
    if_match: str | None = None,
) -> Fetch:
    """Fetches ranges of the object, whose state `version` names; with `if_match`, only while it has that etag.

    With `crcs`, of all ranges that are asked for, no damaged bytes enter or leave the disk cache: ChecksumMismatch is
    raised. Bytes that come straight from the store are left to their reader to check.
    """
    if is_remote(store) and disk is not None:
        return lambda ranges: disk.fetch_ranges(
            store, key, version, ranges, [crcs[r] for r in ranges] if crcs is not None else None, if_match=if_match
        )
    if if_match is None:
        return lambda ranges: store.map_ranges(key, ranges)
    return lambda ranges: store.get_ranges(key, ranges, if_match=if_match)
