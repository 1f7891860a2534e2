"""Replaces the roots of expired versions by tombstones: R2 (docs/commit-rules.md).

A version expires with the commit that leaves it out. Its root stays as long as a reader may remain that opened the
version while it was the newest: for the reader age after its successor was put, by the store's clock. Until then its
references count for a sweep. Then its tombstone replaces it. That is an ordinary put, since a conditional replace would
not be portable across stores; it is safe because:

- The head says that the version expired before anything is put, and tags, leases and jobs are looked up after that head
  was read. Whoever tags or leases an older version reads the head afterwards. So one of the two sees the other.
- The tombstone is derived from the root that it replaces, and the same root gives the same bytes: it does not matter
  how often, how late, or by how many processes it is put. A crash between two puts leaves roots that the next expiry,
  or the next sweep, replaces.
- The ids are in the same place as in a root, so the chain can be checked (R14) whatever is a tombstone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from underlay.errors import NotFound
from underlay.index.root import Root, decode_tombstone, encode_tombstone
from underlay.maintain.expire.holders import Holders
from underlay.runtime.threads import side_by_side
from underlay.table.versions.revision import Revision

_AT_ONCE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Buried:
    """How many roots of expired versions were replaced, and how many still wait."""

    count: int
    """Roots that were replaced, or would be in a dry run."""
    size_bytes: int
    """The bytes of these roots."""
    waiting: tuple[int, ...]
    """Versions that may still have readers, or that are held again."""
    end: int
    """All expired versions before this one are tombstones."""


Progress = Callable[[int, int], None]
"""Called with the number of finished roots, and of all."""


def bury(
    revision: Revision,
    head: Root,
    holders: Holders,
    reader_age: timedelta,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Buried:
    """Replace the roots that `head` says are expired and that nobody can be reading. `holders` was read after `head`.

    One listing of the versions that were not replaced before; for each of them one request, and one more to put it.
    """
    left = head.retention
    expired = [version for version in range(left.buried, left.begin) if version not in left.also]
    due, waiting = list[int](), list[int]()
    if expired:
        stamps = dict(_stamps(revision, expired[0], left.begin))
        for version in expired:
            put_at = stamps.get(version + 1)
            is_late = put_at is not None and holders.now - put_at > reader_age
            (due if is_late and version not in holders.versions else waiting).append(version)
    count = size_bytes = 0
    for begin in range(0, len(due), _AT_ONCE):
        some = due[begin : begin + _AT_ONCE]
        work = partial(_replace, revision, dry_run=dry_run)
        for replaced_bytes in side_by_side(work, some, revision.store.parallel_requests):
            count += replaced_bytes is not None
            size_bytes += replaced_bytes or 0
        if progress is not None:
            progress(begin + len(some), len(due))
    end = left.begin if not waiting else waiting[0]
    return Buried(count=count, size_bytes=size_bytes, waiting=tuple(waiting), end=left.buried if dry_run else end)


def _stamps(revision: Revision, first: int, last: int) -> Iterator[tuple[int, datetime]]:
    """When the roots of these versions were put, by the store's clock."""
    number = first
    after = revision.keys.root(first - 1) if first else None
    for found in revision.store.list_objects(revision.chain.keys.folder, after=after):
        while number <= last and found.key > revision.keys.root(number):
            number += 1
        if number > last:
            return
        if found.key == revision.keys.root(number):
            yield number, found.modified
            number += 1


def _replace(revision: Revision, version: int, *, dry_run: bool) -> int | None:
    """The size of the root that was replaced; None when it had been replaced before."""
    key = revision.keys.root(version)
    try:
        data = revision.store.get(key)[0]
    except NotFound:
        return None  # another process is deleting the revision
    if decode_tombstone(data) is not None:
        return None
    root = revision.decode(data, version)
    if not dry_run:
        revision.store.put(key, encode_tombstone(root))
    return len(data)
