"""Finds gaps and misplaced objects in a chain of numbered objects, from a listing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

_MAX_HOLES = 10_000
"""At most this many objects may be missing before the last one that exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What ties an object of a chain to its neighbours."""

    commit_id: str
    parent_id: str | None
    committed_us: int


def find_numbers(keys: Collection[str], key_of: Callable[[int], str]) -> range:
    """All numbers up to the last one whose key is listed. A number in between that is not listed may be missing, or
    have been put during the listing.
    """
    end = found = number = 0
    while found < len(keys) and number < len(keys) + _MAX_HOLES:
        if key_of(number) in keys:
            found, end = found + 1, number + 1
        number += 1
    return range(end)


def find_strangers(links: Mapping[int, Link]) -> set[int]:
    """The numbers of objects that do not belong to this chain: the fewest that explain every broken link.

    Of two neighbours that contradict only each other, the newer is the stranger, and so is everything derived from it;
    unless the older is the first object and all later ones are consistent with each other.
    """
    broken = [n for n in sorted(links) if n + 1 in links and links[n + 1].parent_id != links[n].commit_id]
    strangers = {0} if 0 in links and links[0].parent_id is not None else set[int]()
    for older in broken:
        if older in strangers or older + 1 in strangers:
            continue
        is_first = older == 0 and older + 1 not in broken and older + 2 in links
        strangers.add(older if is_first else older + 1)
        if not is_first and older + 1 not in broken:
            strangers |= _made_from(links, older + 1, set(broken))
    return strangers


def _made_from(links: Mapping[int, Link], number: int, broken: set[int]) -> set[int]:
    """The objects after this one, as long as each follows its predecessor."""
    found = set[int]()
    while number not in broken and number + 1 in links:
        number += 1
        found.add(number)
    return found


def find_backward(links: Mapping[int, Link]) -> list[int]:
    """The numbers of objects whose time is not after their predecessor's."""
    return [n for n in sorted(links) if n - 1 in links and links[n].committed_us <= links[n - 1].committed_us]
