"""The source tree: every input ever ingested, by uri, so that each is ingested once.

A copy-on-write B+-tree of immutable pages (see `page`) below a journal of the newest records, which the root of the
version holds. A record in the journal takes precedence over one in the pages. Pages hold about 64 kB before
compression, some hundreds of rows, so a million sources take three levels. Adding a source writes no page until the
journal is full, and then at most one path from root to leaf for each of its records, shared where possible.

Pages are fetched by the caller's `fetch`, which is asked for all pages of one level at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from underlay.errors import InvalidRequest
from underlay.index.root import SourceRecord, Sources
from underlay.index.sources.page import (
    Child,
    encode_page,
    inner_children,
    inner_rows,
    leaf_records,
    leaf_rows,
    row_weights,
)
from underlay.index.sources.walk import Fetch, Visit, descend, read_pages, top_page

JOURNAL_RECORDS = 200
JOURNAL_BYTES = 32 << 10
"""About the most that a root holds, as JSON."""
PAGE_BYTES = 64 << 10
"""Weight of a page's rows, before compression."""
MAX_URI_BYTES = 4096
"""So that an inner page has at least 15 children."""

Pages = dict[str, bytes]
"""New pages by id."""


def lookup(sources: Sources, uris: Sequence[str], fetch: Fetch) -> dict[str, SourceRecord]:
    """The records of those uris that are known. One fetch for each level of the tree at most, of needed pages only."""
    wanted = set(uris)
    found = {record.uri: record for record in sources.journal if record.uri in wanted}
    keys = sorted(wanted - found.keys())
    for uri in keys:
        _check_uri(uri)
    for visit in descend(sources, keys, fetch)[-1]:
        asked = pa.array(keys[visit.begin : visit.end], pa.string())
        hits = visit.rows.filter(pc.is_in(visit.rows["uri"], value_set=asked))
        found |= {record.uri: record for record in leaf_records(hits)}
    return found


def insert(
    sources: Sources, records: Iterable[SourceRecord], fetch: Fetch, new_id: Callable[[], str]
) -> tuple[Sources, Pages]:
    """The tree with `records`, each in the place of an older one of the same uri, and its new pages.

    The last of several records of one uri stays. While the journal has room nothing is fetched and no page is made;
    otherwise all of it goes into pages, and those on the path to changed leaves are rewritten. A record that is already
    known changes no page, though it may be in the journal as well.
    """
    journal = {record.uri: record for record in sources.journal}
    for record in records:
        if journal.get(record.uri) != record:
            _check_uri(record.uri)
            # Removed first, so that the newest is last.
            journal.pop(record.uri, None)
            journal[record.uri] = record
    if len(journal) <= JOURNAL_RECORDS and sum(map(_weight, journal.values())) <= JOURNAL_BYTES:
        return Sources(tree=sources.tree, journal=tuple(journal.values())), {}
    return _fold(sources, [journal[uri] for uri in sorted(journal)], fetch, new_id)


def scan_all(sources: Sources, fetch: Fetch) -> Iterator[SourceRecord]:
    """Every record, ascending by uri. Checks every page; fetches the leaves below one inner page at once."""
    journal = sorted(sources.journal, key=lambda record: record.uri)
    at = 0
    for record in _scan_below([top], fetch) if (top := top_page(sources)) else ():
        while at < len(journal) and journal[at].uri < record.uri:
            yield journal[at]
            at += 1
        if at == len(journal) or journal[at].uri != record.uri:
            yield record
    yield from journal[at:]


def page_ids(sources: Sources, fetch: Fetch, known: Set[str] = frozenset()) -> set[str]:
    """The ids of all pages of the tree, without the pages in `known` and what is below them. Fetches no leaves.

    Versions share most of their pages: pass the ids of earlier ones, and each costs only what it changed.
    """
    top = top_page(sources)
    level = [top] if top and top.ref.id not in known else []
    ids: set[str] = set()
    while level:
        ids |= {node.ref.id for node in level}
        inner = [node for node in level if node.ref.height]
        below = map(inner_children, read_pages(inner, fetch), inner)
        level = [child for children in below for child in children if child.ref.id not in known]
    return ids


def _scan_below(nodes: Sequence[Child], fetch: Fetch) -> Iterator[SourceRecord]:
    for node, rows in zip(nodes, read_pages(nodes, fetch), strict=True):
        yield from _scan_below(inner_children(rows, node), fetch) if node.ref.height else leaf_records(rows)


def _fold(
    sources: Sources, records: Sequence[SourceRecord], fetch: Fetch, new_id: Callable[[], str]
) -> tuple[Sources, Pages]:
    """The tree with the ascending `records` in its pages, and an empty journal."""
    pages: Pages = {}
    changes = leaf_rows(records)
    *inner, leaves = descend(sources, [record.uri for record in records], fetch)
    if leaves:
        made = {v.node.ref.id: _change_leaf(v, changes[v.begin : v.end], new_id, pages) for v in leaves}
    else:
        made = {"": _cut(changes, 0, new_id, pages)}
    for level in reversed(inner):
        made = {visit.node.ref.id: _change_inner(visit, made, new_id, pages) for visit in level}
    (tops,) = made.values()
    while len(tops) > 1:
        tops = _cut(inner_rows(tops), tops[0].ref.height + 1, new_id, pages)
    return Sources(tree=tops[0].ref), pages


def _change_leaf(visit: Visit, changes: pa.Table, new_id: Callable[[], str], pages: Pages) -> list[Child]:
    """The leaves that replace one; perhaps the leaf itself."""
    others = visit.rows.filter(pc.invert(pc.is_in(visit.rows["uri"], value_set=changes["uri"].combine_chunks())))
    merged = pa.concat_tables([others, changes]).sort_by("uri").combine_chunks()
    if merged.equals(visit.rows):
        return [visit.node]
    return _cut(merged, 0, new_id, pages)


def _change_inner(visit: Visit, made: dict[str, list[Child]], new_id: Callable[[], str], pages: Pages) -> list[Child]:
    """The inner pages that replace one, where `made` replace some of its children."""
    before = inner_children(visit.rows, visit.node)
    after = [new for child in before for new in made.get(child.ref.id, [child])]
    if [child.ref for child in after] == [child.ref for child in before]:
        return [visit.node]
    return _cut(inner_rows(after), visit.node.ref.height, new_id, pages)


def _cut(rows: pa.Table, height: int, new_id: Callable[[], str], pages: Pages) -> list[Child]:
    """Pages of about equal weight that hold the rows."""
    ends = np.cumsum(row_weights(rows))
    count = -(-int(ends[-1]) // PAGE_BYTES)
    marks = np.searchsorted(ends, ends[-1] * np.arange(1, count) / count, side="right")
    edges = np.unique([0, *marks.tolist(), len(rows)]).tolist()
    children = []
    for begin, end in pairwise(edges):
        child, data = encode_page(rows.slice(begin, end - begin), height, new_id())
        pages[child.ref.id] = data
        children.append(child)
    return children


def _check_uri(uri: str) -> None:
    try:
        size = len(uri.encode())
    except UnicodeEncodeError as error:
        raise InvalidRequest("the uri of a source is not Unicode text", found=ascii(uri)) from error
    if size > MAX_URI_BYTES:
        raise InvalidRequest("the uri of a source is too long", expected=f"at most {MAX_URI_BYTES} bytes", found=size)


def _weight(record: SourceRecord) -> int:
    """The approximate size of a record in a root."""
    optional = (record.owner, record.error, record.content, record.options)
    return sum(map(len, (record.uri, record.identity, record.status, *(text or "" for text in optional)))) + 40
