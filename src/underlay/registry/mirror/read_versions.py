"""Reads a revision's versions from the store, in parallel, as input for `fold`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import TypeVar

from underlay.errors import Inconsistent, NotFound, UnderlayError
from underlay.index.keys import RevisionKeys
from underlay.index.outline import FileFacts, Outline, decode_outline, facts_of, outline_of
from underlay.index.root import decode_root
from underlay.index.segment.segment import Segment
from underlay.index.sources.tree import scan_all
from underlay.registry.mirror.fold import Everything, VersionStep
from underlay.store.store import Store
from underlay.table.versions.links import missing_object
from underlay.table.versions.snapshot import Snapshot

T = TypeVar("T")
READERS = 16
"""Concurrent requests to a remote store."""
DEPTH = 4 * READERS
"""The most tasks that are running, or done and not yet taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The objects directly in a revision's index: roots 0 to `root_count` - 1, and the keys of the others."""

    root_count: int
    intents: tuple[str, ...]
    leases: tuple[str, ...]
    records: tuple[str, ...]


def readers(store: Store) -> int:
    """How many threads read: many for a remote store; on a local one they would only wait for each other."""
    return READERS if store.is_remote else 1


def list_revision(store: Store, keys: RevisionKeys) -> Listing:
    """One listing, which ends before segments and source pages. Raises Inconsistent when a root is missing."""
    root_count = 0
    intents, leases, records = [], [], []
    folder = keys.root(0).rpartition("/")[0]
    ends = tuple(key.rpartition("/")[0] for key in (keys.segment(""), keys.source_page("")))
    for found in store.list_objects(folder):
        if found.key == keys.root(root_count):
            root_count += 1
        elif found.key.startswith(ends):
            break
        elif found.key.removeprefix(f"{folder}/")[:1].isdigit():
            raise missing_object(keys.root(root_count), found.key)
        elif keys.job_of(found.key) is not None:
            intents.append(found.key)
        elif keys.reader_of(found.key) is not None:
            leases.append(found.key)
        elif keys.recorded_job_of(found.key) is not None:
            records.append(found.key)
    return Listing(root_count=root_count, intents=tuple(intents), leases=tuple(leases), records=tuple(records))


def read_step(store: Store, keys: RevisionKeys, version: int) -> VersionStep | None:
    """One version; None when it does not exist. One request, more if it added segments or restored a version."""
    key = keys.root(version)
    try:
        data = store.get(key)[0]
    except NotFound:
        return None
    try:
        outline = decode_outline(data)
    except UnderlayError as error:
        raise error.at(key) from None
    if outline.version != version:
        raise Inconsistent("a root has a different version than its key", place=key)
    return complete(store, keys, outline)


def read_whole_step(store: Store, keys: RevisionKeys, version: int) -> VersionStep:
    """One version with its whole content: what changed in its expired predecessor is no longer known."""
    key = keys.root(version)
    try:
        root = decode_root(store.get(key)[0])
    except UnderlayError as error:
        raise error.at(key) from None
    return VersionStep(outline=outline_of(root), added=(), everything=_everything(Snapshot(store, keys, root)))


def complete(store: Store, keys: RevisionKeys, outline: Outline) -> VersionStep:
    """The version, with the content that its root references. No request for a small append."""
    root = outline.whole
    if root is None:
        return VersionStep(outline=outline, added=outline.added)
    snapshot = Snapshot(store, keys, root)
    if outline.restored is not None:
        return VersionStep(outline=outline, added=(), everything=_everything(snapshot))
    added = set(outline.added_segments)
    pairs = zip(root.segments, snapshot.segments, strict=True)
    inner = [file for ref, segment in pairs if ref.id in added for file in _files_of(segment)]
    return VersionStep(outline=outline, added=(*inner, *outline.added))


def ahead(pool: Executor, tasks: Iterable[Callable[[], T]]) -> Iterator[T]:
    """The results of the tasks, in order. At most `DEPTH` tasks are running or wait to be taken."""
    running: deque[Future[T]] = deque()
    try:
        for task in tasks:
            running.append(_begin(pool, task))
            if len(running) >= DEPTH:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        for future in running:
            future.cancel()


def _begin(pool: Executor, task: Callable[[], T]) -> Future[T]:
    try:
        return pool.submit(task)
    except RuntimeError:  # the interpreter is exiting and starts no more threads, but the follower still catches up
        done: Future[T] = Future()
        done.set_result(task())
        return done


def _everything(snapshot: Snapshot) -> Everything:
    root = snapshot.root
    gone = set(root.removed)
    inner = [file for segment in snapshot.segments for file in _files_of(segment) if file.location not in gone]
    return Everything(
        files=(*inner, *map(facts_of, root.tail)), sources=tuple(scan_all(root.sources, snapshot.fetch_pages))
    )


def _files_of(segment: Segment) -> Iterator[FileFacts]:
    """The files of a segment. Fetches its list of files and the row counts of their blocks."""
    segment.prefetch()
    files = segment.files
    return map(
        FileFacts._make,
        zip(
            files.locations.to_pylist(),
            files.etags.to_pylist(),
            files.size_bytes.tolist(),
            segment.file_rows.tolist(),
            files.block_counts.tolist(),
            strict=True,
        ),
    )
