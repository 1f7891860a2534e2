"""Decides which sources are read together: a large one alone, small neighbours in groups whose rows share files.

Groups are cut from the sources in order, since neighbours by name are mostly neighbours in time, and more queries can
skip blocks with a narrow range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from underlay.ingest.source.source import Source

SMALL_BYTES = 32 << 20
"""A larger source is read alone."""
GROUP_BYTES = 128 << 20
_SOURCE_BYTES = 64 << 10
"""The cost of opening a source, as the bytes that could be read in that time."""


def group(found: Sequence[Source], parallelism: int) -> list[tuple[Source, ...]]:
    """The groups, most work first: at least as many as are read in parallel, if there are enough sources."""
    large = [(one,) for one in found if one.size_bytes > SMALL_BYTES]
    small = [one for one in found if one.size_bytes <= SMALL_BYTES]
    total = sum(map(_cost, small))
    count = max(-(-total // GROUP_BYTES), min(parallelism - len(large), len(small)), 1)
    return sorted([*large, *_cut(small, total, count)], key=lambda one: -sum(map(_cost, one)))


def _cut(found: Sequence[Source], total: int, count: int) -> Iterator[tuple[Source, ...]]:
    """`count` parts of about the same cost, none of them empty, if there are enough sources."""
    begin = spent = made = 0
    for at, one in enumerate(found):
        spent += _cost(one)
        following = _cost(found[at + 1]) if at + 1 < len(found) else 0
        is_near = (spent + following / 2) * count >= total * (made + 1)
        is_last_chance = len(found) - at - 1 < count - made
        if is_near or is_last_chance:
            yield tuple(found[begin : at + 1])
            begin, made = at + 1, made + 1


def _cost(found: Source) -> int:
    return found.size_bytes + _SOURCE_BYTES
