"""How bytes of an object are fetched best: mapped from a local disk, through the disk cache from a remote store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from deflate import crc32

from underlay.cache.disk import DiskCache, Fetch
from underlay.store.store import Store
from underlay.values.ranges import ByteRange


class SharedPieces(Protocol):
    """Bytes that other machines fetched before. It gives the right ones or none, and never raises."""

    def read(self, place: str, version: str, ranges: Sequence[ByteRange]) -> Sequence[memoryview | None]:
        """The bytes of each range of the object at this URL, whose state `version` names, where they are known."""

    def keep(self, place: str, version: str, pieces: Sequence[tuple[ByteRange, memoryview]]) -> None:
        """Others may want these too. Returns at once."""


def piece_fetcher(
    store: Store,
    key: str,
    version: str,
    disk: DiskCache | None,
    shared: SharedPieces | None = None,
    *,
    crcs: Mapping[ByteRange, int] | None = None,
    checksum: Callable[[memoryview], int] = crc32,
    if_match: str | None = None,
) -> Fetch:
    """Fetches ranges of the object, whose state `version` names; with `if_match`, only while it has that etag.

    With `crcs`, of all ranges that are asked for, no damaged bytes enter or leave a cache: ChecksumMismatch is raised.
    Bytes that come straight from the store are left to their reader to check.
    """
    if not store.is_remote:  # a read costs less than one from the disk cache
        if if_match is None:
            return lambda ranges: store.map_ranges(key, ranges)
        return lambda ranges: store.get_ranges(key, ranges, if_match=if_match)

    def fetch(ranges: Sequence[ByteRange]) -> Sequence[memoryview]:
        return store.get_ranges(key, ranges, if_match=if_match)

    def is_sound(wanted: ByteRange, piece: memoryview) -> bool:
        return crcs is None or checksum(piece) == crcs[wanted]

    source = fetch if shared is None else _through(shared, store.place_of(key), version, fetch, is_sound)
    if disk is None:
        return source

    def fetch_cached(ranges: Sequence[ByteRange]) -> Sequence[memoryview]:
        expected = [crcs[wanted] for wanted in ranges] if crcs is not None else None
        return disk.fetch_ranges(store, key, version, ranges, expected, checksum=checksum, fetch=source)

    return fetch_cached


def _through(
    shared: SharedPieces, place: str, version: str, fetch: Fetch, is_sound: Callable[[ByteRange, memoryview], bool]
) -> Fetch:
    """Asks the store for what nobody has fetched yet, and lets the others know."""

    def fetch_missing(ranges: Sequence[ByteRange]) -> Sequence[memoryview]:
        found = zip(ranges, shared.read(place, version, ranges), strict=True)
        known = [piece if piece is not None and is_sound(wanted, piece) else None for wanted, piece in found]
        missing = [wanted for wanted, piece in zip(ranges, known, strict=True) if piece is None]
        if not missing:
            return [piece for piece in known if piece is not None]
        fetched = fetch(missing)
        sound = [pair for pair in zip(missing, fetched, strict=True) if is_sound(*pair)]
        shared.keep(place, version, sound)
        rest = iter(fetched)
        return [next(rest) if piece is None else piece for piece in known]

    return fetch_missing
