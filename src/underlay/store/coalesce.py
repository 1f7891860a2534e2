"""Joins byte ranges that lie close together into one fetch, and splits what was fetched."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from underlay.errors import InvalidRequest, Replaced, Truncated
from underlay.values.ranges import ByteRange, coalesce


def join(ranges: Sequence[ByteRange], gap_bytes: int) -> list[ByteRange]:
    """What to fetch for `ranges`: ascending, disjoint, none empty."""
    for begin, end in ranges:
        if not 0 <= begin <= end:
            raise InvalidRequest("not a range of bytes", expected="0 <= begin <= end", found=f"{begin}..{end}")
    return coalesce(ranges, gap_bytes=gap_bytes)


def cut(fetched: Sequence[memoryview], joined: Sequence[ByteRange], ranges: Sequence[ByteRange]) -> list[memoryview]:
    """The bytes of each of `ranges` out of what was fetched for `joined`; Truncated when something is missing."""
    for view, wanted in zip(fetched, joined, strict=True):
        if len(view) != wanted.size_bytes:
            raise past_the_end(wanted, wanted.begin + len(view))
    begins = [wanted.begin for wanted in joined]
    pieces = []
    for begin, end in ranges:
        if begin == end:
            pieces.append(memoryview(b""))
            continue
        which = bisect_right(begins, begin) - 1
        base = begins[which]
        pieces.append(fetched[which][begin - base : end - base])
    return pieces


def past_the_end(wanted: ByteRange, size_bytes: int | None = None) -> Truncated:
    """The error of a range that reaches past the end of its object; `size_bytes` is the object's when known."""
    return Truncated(
        f"the bytes {wanted.begin}..{wanted.end} reach past the end of the object",
        found=None if size_bytes is None else f"{size_bytes} bytes",
    )


def check_size(found: int, expected: int | None, place: Callable[[], str]) -> None:
    """Refuse an object of another size than the caller knows it to have."""
    if expected is not None and found != expected:
        raise Replaced(
            "the object has changed size since it was described",
            place=place(),
            expected=f"{expected} bytes",
            found=f"{found} bytes",
        )
