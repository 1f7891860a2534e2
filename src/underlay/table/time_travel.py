"""Older versions: by number, by time, by tag; the history; and back to one of them as a new commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from math import inf

from underlay.errors import Damaged, InvalidRequest, Unsupported, VersionNotFound
from underlay.index.catalog import find_table, find_tag
from underlay.index.operation import Operation
from underlay.index.outline import VersionSummary
from underlay.index.root import Root
from underlay.runtime.threads import side_by_side
from underlay.table.catalog.changes import tag_version
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.commit.commit import commit
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.links import missing_object
from underlay.table.versions.revision import Revision

_FIRST_BATCH, _MOST_BATCH = 16, 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at_version(revision: Revision, version: int) -> Root:
    """The root of this version; of the one before only the ids are read. Two requests side by side. Raises
    VersionNotFound, with the versions that there are, and Inconsistent when it was there and is missing, or does not
    follow the one before."""
    if isinstance(version, bool) or not isinstance(version, int):
        raise InvalidRequest("a version must be an integer", found=repr(version))
    if version >= 0:
        with suppress(VersionNotFound):
            return revision.checked_root(version)
    newest = revision.newest_version()
    if 0 <= version <= newest:
        raise missing_object(revision.keys.root(version))
    raise VersionNotFound(f"there is no version {version}", place=revision.place, hint=f"Versions are 0 to {newest}.")


def at_time(revision: Revision, moment_us: int) -> Root:
    """The newest root committed at or before this time. O(log versions) requests. Raises VersionNotFound, and Damaged
    when it may be the newest one of all and that cannot be read."""
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
    best: Root | None = None
    while begin < end:
        middle = (begin + end) // 2
        root = revision.root(middle)
        if root.committed_us <= moment_us:
            best, begin = root, middle + 1
        else:
            end = middle
    if best is None:
        oldest = revision.root(0).committed_us
        raise VersionNotFound(
            "the table has no version from that time",
            place=revision.place,
            expected=f"{_shown(oldest)} or later",
            found=_shown(moment_us),
        )
    revision.check_root(best)
    return best


def at_tag(lake: LakeCatalog, name: str, tag: str) -> tuple[Revision, Root]:
    """The revision and the root that a tag stands for. Raises TableNotFound, NotFound."""
    record = find_table(lake.catalog(), name)
    found = find_tag(record, name, tag)
    revision = Revision(lake.store, record.folder, found.revision, lake.surroundings)
    return revision, revision.checked_root(found.version)


def tag(lake: LakeCatalog, name: str, tag_name: str, revision: Revision, version: int) -> None:
    """`tag_name` stands for this version from now on. Raises VersionNotFound, and InvalidRequest for a number."""
    if tag_name.isdecimal():
        raise InvalidRequest(
            "a tag cannot be a number", found=tag_name, hint=f"DATASET.TABLE@{tag_name} is version {tag_name}."
        )
    at_version(revision, version)
    lake.change(tag_version(name, tag_name, revision.id, version))


def history(revision: Revision, limit: int | None = None, newest: int | None = None) -> Iterator[VersionSummary]:
    """Versions from `newest` on, or the head, back in time; some are fetched side by side, and of each root only what a
    history shows is decoded. Raises Inconsistent after the first one that does not follow the one before it."""
    if limit is not None and limit < 0:
        raise InvalidRequest("a limit must not be negative", found=limit)
    newest = revision.head().version if newest is None else newest
    oldest = 0 if limit is None else max(newest - limit + 1, 0)
    versions = range(newest, oldest - 1, -1) if limit != 0 else range(0)
    newer: VersionSummary | None = None
    begin, count = 0, _FIRST_BATCH
    while begin < len(versions):
        batch = versions[begin : begin + count]
        for found in side_by_side(revision.summary, batch, revision.store.parallel_requests):
            if newer is not None:
                revision.check_parent(newer, found)
            newer = found
            yield found
        # Who reads on reads more: each batch starts threads of its own.
        begin, count = begin + count, min(2 * count, _MOST_BATCH)


def rollback(revision: Revision, version: int, held: tuple[str, int] | None = None) -> Root:
    """A new version with all that an older one consisted of. Raises CommitConflict when others changed the table, or
    took over the job that is held."""
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
