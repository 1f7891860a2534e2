"""Caches decoded objects of a lake: segments, sidecars, footers, roots.

All of them are immutable and identified by store, key and checksum. A segment fetches more of itself later, and a
root's checksum is not known before it is read, so these two belong to the store object that they were read from; the
others are shared by all stores with the same URL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from deflate import crc32

from underlay.cache.disk import DiskCache, Fetch
from underlay.cache.memory import Key, MemoryCache
from underlay.cache.same_file import KnownFile, read_same
from underlay.errors import ChecksumMismatch, UnderlayError
from underlay.index.root import Root, SegmentRef, decode_root
from underlay.index.segment.directory import decode_directory
from underlay.index.segment.segment import Segment
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.tail import TAIL_BYTES
from underlay.pm.format.checksum import identity
from underlay.pm.format.sidecar import Sidecar
from underlay.pm.format.sidecar import decode as decode_sidecar
from underlay.store.store import Store
from underlay.values.ranges import ByteRange

# The best way to fetch bytes of an object: read from a local disk, through the disk cache from a remote store.


class SharedPieces(Protocol):
    """Bytes that other machines fetched before. It gives the right bytes or none, and never raises."""

    def read(self, place: str, version: str, ranges: Sequence[ByteRange]) -> Sequence[memoryview | None]:
        """The bytes of each range of the object at this URL, whose state `version` names; None where unknown."""

    def keep(self, place: str, version: str, pieces: Sequence[tuple[ByteRange, memoryview]]) -> None:
        """Offer these to other machines. Returns at once."""


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

    With `crcs` of all ranges that will be fetched, no damaged bytes enter or leave a cache: ChecksumMismatch is raised.
    Callers check bytes that come straight from the store.
    """
    if not store.is_remote:  # reading it directly is cheaper than from the disk cache
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
    """Asks the store for what no machine has fetched yet, and shares it."""

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


T = TypeVar("T")

_SPREAD = 4
"""How much more memory decoded objects take than their bytes, about."""
_SEGMENT_BYTES = 1024
"""The weight of a segment with nothing fetched."""


@dataclass(frozen=True, slots=True)
class _Decoded(Generic[T]):
    value: T
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedCache:
    """Objects in `memory`; where the store is remote, their bytes come through `disk`, and then `shared`."""

    memory: MemoryCache
    disk: DiskCache | None
    shared: SharedPieces | None = None

    def segment(self, store: Store, key: str, ref: SegmentRef) -> Segment:
        """The opened segment; its pieces are fetched on demand. Weighed again at every call."""
        name: Key = ("segment", store, key, ref.crc)

        def load() -> Segment:
            crcs = {piece.range: piece.crc for piece in decode_directory(ref.pieces, ref.size_bytes).values()}
            fetch = piece_fetcher(store, key, f"{ref.crc:08x}", self.disk, self.shared, crcs=crcs)
            return Segment.open(ref, fetch, store.place_of(key))

        segment = self.memory.get(name, _placed(load, store.place_of(key)), _weigh_segment)
        self.memory.reweigh(name, _weigh_segment(segment))
        return segment

    def sidecar(self, store: Store, key: str, *, size_bytes: int, crc: int, file_bytes: int) -> Sidecar:
        """The sidecar with this size and identity (`pm.format.checksum.identity`) of a file of `file_bytes`. One
        request. Raises NotFound, or Damaged when the object is a different one: then it must be rebuilt."""

        def load() -> _Decoded[Sidecar]:
            version = f"{crc:08x}-{size_bytes}"
            whole = ByteRange(0, size_bytes)
            fetch = piece_fetcher(store, key, version, self.disk, self.shared, crcs={whole: crc}, checksum=identity)
            (data,) = fetch([whole])
            _check(identity(data), crc)
            return _Decoded(decode_sidecar(data, parquet_size=file_bytes), size_bytes)

        return self._get(("sidecar", store.url, key, size_bytes, crc, file_bytes), load, store.place_of(key))

    def footer(
        self, store: Store, key: str, *, file_bytes: int, footer_bytes: int, footer_crc: int, etag: str | None = None
    ) -> Footer:
        """The Parquet footer of a file of `file_bytes`. One request; with `etag` it must be the same file
        (`same_file`). Raises NotFound, Replaced, or Damaged when the footer is a different one."""
        wanted = ByteRange(file_bytes - TAIL_BYTES - footer_bytes, file_bytes - TAIL_BYTES)
        version = f"{footer_crc:08x}-{file_bytes}-{etag or ''}"

        def load() -> _Decoded[Footer]:
            known = KnownFile(file_bytes, etag, footer_bytes, footer_crc)
            data = read_same(
                store,
                key,
                known,
                lambda found: self._checked(store, key, wanted, footer_crc, version, if_match=found),
            )
            return _Decoded(Footer.parse(bytes(data)), footer_bytes)

        return self._get(("footer", store.url, key, version, footer_bytes), load, store.place_of(key))

    def root(self, store: Store, key: str, decode: Callable[[memoryview], Root] = decode_root) -> Root:
        """The root at `key`. One request. Raises NotFound, and what `decode` raises. A root that has expired since it
        was read is still returned."""

        def load() -> _Decoded[Root]:
            data, _ = store.get(key)
            return _Decoded(decode(data), len(data))

        return self._get(("root", store, key), load, store.place_of(key))

    def _get(self, key: Key, load: Callable[[], _Decoded[T]], place: str) -> T:
        return self.memory.get(key, _placed(load, place), lambda decoded: _SPREAD * decoded.size_bytes).value

    def _checked(
        self, store: Store, key: str, wanted: ByteRange, crc: int, version: str, *, if_match: str | None = None
    ) -> memoryview:
        fetch = piece_fetcher(store, key, version, self.disk, self.shared, crcs={wanted: crc}, if_match=if_match)
        (data,) = fetch([wanted])
        _check(crc32(data), crc)
        return data


def _check(found: int, expected: int) -> None:
    if found != expected:
        raise ChecksumMismatch(
            "not the object that was described", expected=f"{expected:#010x}", found=f"{found:#010x}"
        )


def _weigh_segment(segment: Segment) -> int:
    return _SEGMENT_BYTES + segment.nbytes


def _placed(load: Callable[[], T], place: str) -> Callable[[], T]:
    """The same load, whose errors name the place."""

    def placed() -> T:
        try:
            return load()
        except UnderlayError as error:
            raise error if error.place and place in error.place else error.at(place) from None

    return placed
