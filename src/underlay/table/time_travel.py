"""Opens older versions by number, time or tag, lists the history, and rolls back to a version by a new commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from math import inf

from underlay.errors import (
    CommitUnknown,
    Damaged,
    InvalidRequest,
    SnapshotExpired,
    Unavailable,
    Unsupported,
    VersionNotFound,
)
from underlay.index.catalog import TagRecord, find_table, find_tag
from underlay.index.operation import Operation
from underlay.index.outline import VersionSummary
from underlay.index.root import Retention, Root
from underlay.runtime.threads import side_by_side
from underlay.table.catalog.changes import tag_version, untag_version
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.commit.commit import commit
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.links import missing_object
from underlay.table.versions.revision import Revision, versions_left

_FIRST_BATCH, _MOST_BATCH = 16, 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at_version(revision: Revision, version: int) -> Root:
    """The root of this version; only the ids of the one before are read. Two requests in parallel. Raises
    VersionNotFound, with the versions that exist, and Inconsistent when the version has vanished, or does not follow
    the one before."""
    if isinstance(version, bool) or not isinstance(version, int):
        raise InvalidRequest("a version must be an integer", found=repr(version))
    if version >= 0:
        try:
            return revision.checked_root(version)
        except SnapshotExpired:
            raise
        except VersionNotFound:
            pass  # the error below says which versions exist
    head = _readable_head(revision)
    newest = revision.newest_version(inf)
    if 0 <= version <= newest:
        raise missing_object(revision.keys.root(version))
    left = versions_left(Retention() if head is None else head.retention, newest)
    raise VersionNotFound(f"there is no version {version}", place=revision.place, hint=f"{left}.")


def _place(tagged: TagRecord) -> tuple[str, int]:
    return tagged.revision, tagged.version


def _readable_head(revision: Revision) -> Root | None:
    """The newest root, None when it cannot be read."""
    try:
        return revision.head()
    except (Damaged, Unsupported):
        return None


def at_time(revision: Revision, moment_us: int) -> Root:
    """The newest root committed at or before this time. O(log versions) requests. Raises VersionNotFound,
    SnapshotExpired when that version expired, and Damaged when it may be the newest, which cannot be read."""
    try:
        found = revision.head()
    except (Damaged, Unsupported):
        newest = revision.newest_version(inf)
        if newest == 0:
            raise
        found = revision.root(newest - 1)
        if found.committed_us < moment_us:
            raise
    if found.committed_us <= moment_us:
        return found
    begin, end = 0, found.version
    while begin < end:
        middle = (begin + end) // 2
        if revision.committed_us(middle) <= moment_us:
            begin = middle + 1
        else:
            end = middle
    if begin == 0:
        oldest = revision.committed_us(0)
        raise VersionNotFound(
            "the table has no version from that time",
            place=revision.place,
            expected=f"{_shown(oldest)} or later",
            found=_shown(moment_us),
        )
    return revision.checked_root(begin - 1)


def at_tag(lake: LakeCatalog, name: str, tag: str) -> tuple[Revision, Root]:
    """The revision and the root that a tag names. Raises TableNotFound, NotFound."""
    record = find_table(lake.catalog(), name)
    found = find_tag(record, name, tag)
    revision = Revision(lake.store, record.folder, found.revision, lake.surroundings)
    return revision, revision.checked_root(found.version)


def tag(lake: LakeCatalog, name: str, tag_name: str, revision: Revision, version: int) -> None:
    """Make `tag_name` name this version. Raises VersionNotFound, and InvalidRequest for a number."""
    if tag_name.isdecimal():
        raise InvalidRequest(
            "a tag cannot be a number", found=tag_name, hint=f"DATASET.TABLE@{tag_name} is version {tag_name}."
        )
    at_version(revision, version)
    before = find_table(lake.catalog(), name).tags.get(tag_name)
    catalog = lake.change(tag_version(name, tag_name, revision.id, version))
    # An expiry that did not see the tag committed before it, or checks the tags again before it deletes anything.
    try:
        head = _readable_head(revision)
    except Unavailable as error:
        raise CommitUnknown(
            f"the tag is set, but it could not be checked that its version is still there ({error})",
            place=revision.place,
            hint="Set the tag again.",
        ).of(catalog.commit_id) from error
    if head is not None and not head.retention.has(version):
        undo = untag_version(name, tag_name) if before is None else tag_version(name, tag_name, *_place(before))
        lake.change(undo)
        raise revision.expired(version, head)


def history(revision: Revision, limit: int | None = None, newest: int | None = None) -> Iterator[VersionSummary]:
    """The versions back in time from `newest`, or from the head, without those that expired; some are fetched in
    parallel, and only what a history shows is decoded. Raises Inconsistent after the first one that does not follow the
    one before it."""
    if limit is not None and limit < 0:
        raise InvalidRequest("a limit must not be negative", found=limit)
    head = revision.head() if newest is None else _readable_head(revision)
    kept = Retention() if head is None else head.retention
    newest = revision.newest_version(inf) if newest is None else newest
    older = [version for version in reversed(kept.also) if version <= newest]
    left = range(newest, kept.begin - 1, -1)
    wanted: Sequence[int] = left if not older else [*left, *older]
    versions = wanted if limit is None else wanted[:limit]
    newer: VersionSummary | None = None
    begin, count = 0, _FIRST_BATCH
    while begin < len(versions):
        batch = versions[begin : begin + count]
        at_once = revision.store.parallel_requests
        size = -(-len(batch) // at_once)  # handing each version to a thread would take as long as reading it
        runs = [batch[at : at + size] for at in range(0, len(batch), size)]
        for found in chain.from_iterable(side_by_side(revision.summaries, runs, at_once)):
            if newer is not None and newer.version == found.version + 1:
                revision.check_parent(newer, found)
            newer = found
            yield found
        # A caller that continues is likely to read more, and each batch starts its own threads.
        begin, count = begin + count, min(2 * count, _MOST_BATCH)


def rollback(revision: Revision, version: int, held: tuple[str, int] | None = None) -> Root:
    """A new version with the contents of an older one. Raises CommitConflict when others changed the table, or took
    over the held job."""
    old = at_version(revision, version)
    transaction = Transaction(revision, revision.head(), Operation.ROLLBACK)
    transaction.restore(old)
    transaction.count("version_restored", version)
    if held is not None:
        transaction.hold(*held)
    return commit(transaction)


def _shown(moment_us: int) -> str:
    try:
        return (_EPOCH + timedelta(microseconds=moment_us)).isoformat()
    except OverflowError:
        return f"{moment_us} µs since 1970"
