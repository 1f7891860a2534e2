"""Which of the sources that are found again and again are to be taken: those that are new, and no longer written to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import xxhash

from underlay.ingest.source.source import Source, local_modified_us, local_path


class Ready:
    """Remembers what is settled, in some hundred bytes for each source that is still found.

    A local file is whole when it was the same at two looks, or was not written to for the time between two. Object
    stores show whole objects only.
    """

    def __init__(self, interval_seconds: float) -> None:
        self._interval_us = interval_seconds * 1_000_000
        self._settled: set[bytes] = set()
        self._seen: dict[str, str] = {}

    def take(self, found: Sequence[Source], now_us: int) -> list[Source]:
        """Those that are whole and not settled, in their order. What is found no more is forgotten."""
        marks = [_mark(one) for one in found]
        self._settled.intersection_update(marks)
        new = [one for one, mark in zip(found, marks, strict=True) if mark not in self._settled]
        taken = [one for one in new if self._is_whole(one, now_us)]
        self._seen = {one.uri: one.identity for one in new}
        return taken

    def settle(self, found: Iterable[Source]) -> None:
        """These are not to be taken again, unless they change."""
        self._settled.update(map(_mark, found))

    def forget(self) -> None:
        """Nothing is settled."""
        self._settled.clear()

    def _is_whole(self, found: Source, now_us: int) -> bool:
        if local_path(found.uri) is None or self._seen.get(found.uri) == found.identity:
            return True
        return now_us - local_modified_us(found.identity) > self._interval_us


def _mark(found: Source) -> bytes:
    return xxhash.xxh3_128_digest(f"{found.uri}\0{found.identity}".encode("utf-8", "surrogateescape"))
