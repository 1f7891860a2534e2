"""Checks that the objects of a chain follow each other: R14 (docs/commit-rules.md).

Restoring an older copy of a lake under a live process invalidates what the process knows: the objects since the copy
are gone, or others have their numbers. Two checks keep such a chain from being used and from growing. A process that
finds a head checks that its parent is the object before it, and that the object after the one it knew was made from
that one. A process that publishes an object checks, in parallel with its uploads, that the two objects before it are
still those that it knows: its base, and the parent of its base, which may have vanished while the base was being
published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from underlay.errors import Damaged, Inconsistent, NotFound, Truncated
from underlay.index.sealed_json import IDS_BYTES, CommitIds, decode_ids, ids_at_beginning
from underlay.runtime.threads import REQUESTS
from underlay.store.store import Store
from underlay.table.versions.registry_protocol import Known
from underlay.values.ranges import ByteRange

_UNREADABLE = CommitIds("", None)
"""Stands for an object that exists but is damaged, so its id is unknown. `verify` names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainKeys:
    """Where a chain lies, and the names of its objects."""

    folder: str
    object: Callable[[int], str]
    hint: str
    noun: str = "version"


def start_link_check(
    store: Store, keys: ChainKeys, number: int, known: Known | None = None
) -> Callable[[CommitIds], None]:
    """Check that the object of this number, which the caller reads meanwhile, belongs to the chain. `known` is an older
    one that the caller has read, if any.

    No request when `known` is the one before, else one or two small ones; those to a remote store are in progress when
    this returns. Call the returned function with the ids of the object. It raises Inconsistent.
    """
    after = number if known is None else known.number + 1
    is_next = known is not None and after == number
    read = _start_reading(store, keys, [] if is_next else sorted({number - 1, after} - {number, -1}))

    def check(found: CommitIds) -> None:
        links: dict[int, CommitIds] = {}
        for place, link in read().items():
            if link is None:
                raise missing_object(keys.object(place), keys.object(number))
            links[place] = link
        # Only a whole object proves that it is not damaged, so it is read whole before it is refused.
        if known is not None:
            link = links.get(after, found)
            if link is not found and link.parent_id != known.commit_id:
                link = _read_whole(store, keys.object(after)) or link
            if link is not _UNREADABLE:
                check_parent(keys, after, link, known)
        before = links.get(number - 1)
        if before is not None and before.commit_id != found.parent_id:
            before = _read_whole(store, keys.object(number - 1)) or before
        if before is not None and before is not _UNREADABLE:
            check_parent(keys, number, found, Known(number - 1, before.commit_id))

    return check


def start_base_check(store: Store, keys: ChainKeys, base: Known, parent_id: str | None) -> Callable[[], None]:
    """Check that the object after which the caller is about to publish, and the one before it, are in the store.

    Two small requests; those to a remote store are in progress when this returns. The returned function waits for them,
    and raises Inconsistent.
    """
    expected = [base] if parent_id is None else [base, Known(base.number - 1, parent_id)]
    read = _start_reading(store, keys, [one.number for one in expected])

    def check() -> None:
        found = read()
        for one in expected:
            link = found[one.number]
            if link is not None and link.commit_id != one.commit_id:
                link = _read_whole(store, keys.object(one.number))
            if link is not None and (link is _UNREADABLE or link.commit_id == one.commit_id):
                continue
            raise Inconsistent(
                f"{keys.noun} {one.number}, on which this commit is based, is no longer in the store",
                place=keys.object(one.number),
                expected=one.commit_id,
                found="nothing" if link is None else link.commit_id,
                hint="Nothing was committed. The lake was replaced, or an older copy of it was put back, since this "
                "process read it. Open the lake again and repeat the write.",
            )

    return check


def check_parent(keys: ChainKeys, number: int, found: CommitIds, parent: Known) -> None:
    """Raise Inconsistent unless the object of this number was made from `parent`."""
    if found.parent_id != parent.commit_id:
        raise Inconsistent(
            f"{keys.noun} {number} does not follow {keys.noun} {parent.number}: two histories are mixed",
            place=keys.object(number),
            expected=f"parent {parent.commit_id}",
            found=f"parent {found.parent_id}",
            hint="The lake was replaced, or an older copy of it was put back under a process that wrote to it. Stop "
            "all writers and open the lake again. If it is still refused, move this object and those after it, which "
            '"underlay verify" names, out of the lake, and write again what those commits brought.',
        )


def missing_object(key: str, later: str | None = None) -> Inconsistent:
    """The error of a chain with a hole in it; `later` is an object after the hole."""
    hint = "Restore it from a backup; later objects cannot be trusted without it."
    if later is not None:
        hint += (
            " If an older copy of the lake was put back under a process that wrote to it, move "
            f"{later} and those after it out of the lake instead, and write again what those commits brought."
        )
    return Inconsistent("an object of a chain is missing", place=key, hint=hint)


def _start_reading(
    store: Store, keys: ChainKeys, numbers: Sequence[int]
) -> Callable[[], Mapping[int, CommitIds | None]]:
    if not store.is_remote:
        return lambda: {number: _read_ids(store, keys.object(number)) for number in numbers}
    reading = {number: REQUESTS.submit(_read_ids, store, keys.object(number)) for number in numbers}
    return lambda: {number: future.result() for number, future in reading.items()}


def _read_ids(store: Store, key: str) -> CommitIds | None:
    """The ids of an object, None when it is not there. One small request, unless its beginning is not as expected."""
    try:
        found = ids_at_beginning(store.get_ranges(key, [ByteRange(0, IDS_BYTES)])[0])
    except NotFound:
        return None
    except Truncated:
        found = None
    return _read_whole(store, key) if found is None else found


def _read_whole(store: Store, key: str) -> CommitIds | None:
    try:
        return decode_ids(store.get(key)[0])
    except NotFound:
        return None
    except Damaged:
        return _UNREADABLE
