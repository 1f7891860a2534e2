"""What the store says of a revision's versions, read side by side: what `fold` works on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from underlay.errors import Inconsistent, NotFound, UnderlayError
from underlay.index.keys import RevisionKeys
from underlay.index.outline import FileFacts, Outline, decode_outline, facts_of
from underlay.index.segment.segment import Segment
from underlay.index.sources.tree import scan_all
from underlay.registry.mirror.fold import Everything, VersionStep
from underlay.runtime.threads import side_by_side
from underlay.store.store import Store
from underlay.table.versions.chain import missing_object
from underlay.table.versions.snapshot import Snapshot

T = TypeVar("T")
READERS = 16
"""Requests side by side to a store that is far away."""
_MOST_AT_ONCE = 64
"""Versions that are read before any of them is handed on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What lies directly in a revision's index: roots 0 to `root_count` less one, and keys of what is beside them."""

    root_count: int
    intents: tuple[str, ...]
    leases: tuple[str, ...]
    records: tuple[str, ...]


def readers(store: Store) -> int:
    """Threads that read: many wait for a far store; at a near one they would only wait for each other."""
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
            raise missing_object(keys.root(root_count))
        elif keys.job_of(found.key) is not None:
            intents.append(found.key)
        elif keys.reader_of(found.key) is not None:
            leases.append(found.key)
        elif keys.recorded_job_of(found.key) is not None:
            records.append(found.key)
    return Listing(root_count=root_count, intents=tuple(intents), leases=tuple(leases), records=tuple(records))


def steps_after(store: Store, keys: RevisionKeys, head: int, until: int | None = None) -> Iterator[list[VersionStep]]:
    """The versions after `head`, in order, some at a time: up to `until`, or to the first that is not there.

    Without `until` one request finds that there is none; each time all that were asked for exist, twice as many are
    asked for next. Raises Inconsistent for a version up to `until` that is not there.
    """
    count = 1 if until is None else _MOST_AT_ONCE
    while until is None or head < until:
        end = head + count if until is None else min(head + count, until)
        found = _read_together(store, keys, range(head + 1, end + 1))
        steps = [step for step in found[: found.index(None) if None in found else None] if step is not None]
        if steps:
            yield steps
        head += len(steps)
        if len(steps) < len(found):
            if until is not None:
                raise missing_object(keys.root(head + 1))
            return
        count = min(2 * count, _MOST_AT_ONCE)


def read_step(store: Store, keys: RevisionKeys, version: int) -> VersionStep | None:
    """One version, None when it is not there. One request, more when it added segments or went back to a version."""
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
        raise Inconsistent("a root has another version than its key", place=key)
    return complete(store, keys, outline)


def complete(store: Store, keys: RevisionKeys, outline: Outline) -> VersionStep:
    """The version, with what its root only points to. No request for a small append."""
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


def ahead(pool: Executor, tasks: Iterable[Callable[[], T]], depth: int) -> Iterator[T]:
    """The results of the tasks, in order; `depth` of them are under way or wait to be taken."""
    running: deque[Future[T]] = deque()
    try:
        for task in tasks:
            running.append(pool.submit(task))
            if len(running) >= depth:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        for future in running:
            future.cancel()


def _read_together(store: Store, keys: RevisionKeys, versions: Sequence[int]) -> list[VersionStep | None]:
    return side_by_side(partial(read_step, store, keys), versions, readers(store))


def _everything(snapshot: Snapshot) -> Everything:
    root = snapshot.root
    gone = set(root.removed)
    inner = [file for segment in snapshot.segments for file in _files_of(segment) if file.location not in gone]
    return Everything(
        files=(*inner, *map(facts_of, root.tail)), sources=tuple(scan_all(root.sources, snapshot.fetch_pages))
    )


def _files_of(segment: Segment) -> Iterator[FileFacts]:
    """The files of a segment. Fetches its list of files and their blocks' rows."""
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
