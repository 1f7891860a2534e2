"""Finds what the versions of a revision reference: files, segments and source pages.

All versions whose roots exist count: unexpired ones, and expired ones that a reader may still use. Of each of our
files, only the 64 random bits of its name are held in memory, so that millions of files take 8 bytes each. If two files
shared these bits, one would merely keep the other from deletion.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.errors import SnapshotExpired
from underlay.index.keys import own_token
from underlay.index.root import PageRef, Root, SegmentRef, Sources
from underlay.index.sources.page import Child, decode_page, inner_children
from underlay.index.sources.walk import top_page
from underlay.runtime.threads import side_by_side
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import open_segment

_AT_ONCE = 64
Tokens = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """Referenced objects, by the unique part of their names."""

    files: Tokens
    """Ascending, without duplicates."""
    segments: frozenset[str]
    pages: frozenset[str]

    def has_files(self, tokens: Collection[str]) -> list[bool]:
        """Which of these files are referenced."""
        wanted = tokens_of(tokens)
        places = np.searchsorted(self.files, wanted)
        found = places < len(self.files)
        found[found] = self.files[places[found]] == wanted[found]
        return [bool(one) for one in found]


@dataclass(slots=True)
class _Found:
    tails: list[Tokens] = field(default_factory=list)
    refs: dict[str, SegmentRef] = field(default_factory=dict)
    gone: dict[str, frozenset[str]] = field(default_factory=dict)
    """By segment, its files that none of the versions with this segment have."""
    trees: dict[str, PageRef] = field(default_factory=dict)


def find_references(revision: Revision, head: Root) -> References:
    """What the versions up to `head` reference. Reads each of their roots, the list of files of each segment, and the
    inner pages of source trees. Raises Damaged, also for a missing object: then nothing may be deleted.
    """
    found = _Found()
    for root in _roots(revision, head):
        _take(found, root)
    files = [*found.tails, *(_files_of(revision, ref, found) for ref in found.refs.values())]
    return References(
        files=np.unique(np.concatenate(files)) if files else np.zeros(0, np.uint64),
        segments=frozenset(found.refs),
        pages=frozenset(_pages(revision, found.trees.values())),
    )


def tokens_of(digits: Iterable[str]) -> Tokens:
    """The 16 hexadecimal digits in each name, as numbers."""
    return np.frombuffer(bytes.fromhex("".join(digits)), ">u8").astype(np.uint64)


def _roots(revision: Revision, head: Root) -> Iterator[Root]:
    left = head.retention
    versions = [*(version for version in left.also if version < left.buried), *range(left.buried, head.version)]
    for begin in range(0, len(versions), _AT_ONCE):
        some = versions[begin : begin + _AT_ONCE]
        for root in side_by_side(lambda one: _read(revision, one), some, revision.store.parallel_requests):
            if root is not None:
                yield root
    yield head


def _read(revision: Revision, version: int) -> Root | None:
    try:
        return revision.decode(revision.chain.get(version), version)
    except SnapshotExpired:
        return None


def _take(found: _Found, root: Root) -> None:
    removed = frozenset(root.removed)
    for ref in root.segments:
        found.refs[ref.id] = ref
        found.gone[ref.id] = found.gone[ref.id] & removed if ref.id in found.gone else removed
    found.tails.append(_tokens(file.location for file in root.tail))
    if root.sources.tree is not None:
        found.trees[root.sources.tree.id] = root.sources.tree


def _files_of(revision: Revision, ref: SegmentRef, found: _Found) -> Tokens:
    locations = open_segment(revision.store, revision.keys, ref).locations
    gone = found.gone[ref.id]
    if gone:
        locations = locations.filter(pc.invert(pc.is_in(locations, value_set=pa.array(list(gone), pa.string()))))
    return _tokens(map(str, locations.to_pylist()))


def _tokens(locations: Iterable[str]) -> Tokens:
    """The tokens of our own files. A registered file is never ours: register refuses files of the lake's tables."""
    return tokens_of(token for token in map(own_token, locations) if token is not None)


def _pages(revision: Revision, trees: Iterable[PageRef]) -> set[str]:
    found: set[str] = set()
    level = [top for ref in trees if (top := top_page(Sources(tree=ref))) is not None]
    while level:
        new = {node.ref.id: node for node in level if node.ref.id not in found}
        found |= new.keys()
        inner = [node for node in new.values() if node.ref.height]
        level = [
            child
            for children in side_by_side(lambda node: _children(revision, node), inner, _AT_ONCE)
            for child in children
        ]
    return found


def _children(revision: Revision, node: Child) -> list[Child]:
    data = revision.store.get(revision.keys.source_page(node.ref.id))[0]
    return inner_children(decode_page(data, node), node)
