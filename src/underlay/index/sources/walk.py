"""Walks from the root page of the source tree down to the leaves, one fetch for each level."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from underlay.errors import Inconsistent, Malformed
from underlay.index.root import PageRef, Sources
from underlay.index.sources.page import MAX_HEIGHT, Child, decode_page, inner_children

Fetch = Callable[[Sequence[PageRef]], Sequence[bytes | memoryview]]
"""The bytes of each page, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A page with the keys that belong below it, ascending: `keys[begin:end]` of all requested keys."""

    node: Child
    rows: pa.Table
    begin: int
    end: int


def descend(sources: Sources, keys: Sequence[str], fetch: Fetch) -> list[list[Visit]]:
    """The pages that hold, or would hold, the ascending `keys`, level by level, the leaves last; at least one level."""
    top = top_page(sources)
    if top is None or not keys:
        return [[]]
    levels = [_visits([(top, 0, len(keys))], fetch)]
    for _ in range(top.ref.height):
        below = [part for visit in levels[-1] for part in _share_out(visit, keys)]
        levels.append(_visits(below, fetch))
    return levels


def _share_out(visit: Visit, keys: Sequence[str]) -> Iterator[tuple[Child, int, int]]:
    """The children that keys belong to. Keys less than every low belong to the first."""
    begin = visit.begin
    for child in inner_children(visit.rows, visit.node):
        # The last child has only the page's own bound, by which the keys were already divided.
        end = visit.end if child.high is None else bisect_left(keys, child.high, begin, visit.end)
        if begin < end:
            yield child, begin, end
        begin = end


def _visits(parts: Sequence[tuple[Child, int, int]], fetch: Fetch) -> list[Visit]:
    pages = read_pages([node for node, _, _ in parts], fetch)
    return [
        Visit(node=node, rows=rows, begin=begin, end=end) for (node, begin, end), rows in zip(parts, pages, strict=True)
    ]


def top_page(sources: Sources) -> Child | None:
    """The root page."""
    ref = sources.tree
    if ref is None:
        return None
    if not 0 <= ref.height <= MAX_HEIGHT:
        raise Malformed("the source tree has an impossible height", expected=f"0 to {MAX_HEIGHT}", found=ref.height)
    return Child(ref=ref, low=None)


def read_pages(nodes: Sequence[Child], fetch: Fetch) -> list[pa.Table]:
    """The rows of the pages, in one fetch."""
    if not nodes:
        return []
    fetched = fetch([node.ref for node in nodes])
    if len(fetched) != len(nodes):
        raise Inconsistent("the wrong number of source pages was returned", expected=len(nodes), found=len(fetched))
    return [decode_page(data, node) for data, node in zip(fetched, nodes, strict=True)]
