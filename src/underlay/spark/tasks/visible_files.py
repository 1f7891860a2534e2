"""Files that tasks wrote are seen by the driver, which is about to commit them.

Executors on other machines may have a folder of the same name on disks of their own. A commit of files that lie there
would lose rows, and say nothing of it. Object stores are the same from everywhere, and are not asked.
"""

from __future__ import annotations

from collections.abc import Iterable

from underlay.change.rows.staged import Staged
from underlay.errors import Unavailable
from underlay.index.keys import RevisionKeys
from underlay.store import Store
from underlay.store.directory import local_root

_HINT = "Put the lake on a disk that all of them share, or into an object store."


def check_seen(store: Store, folder: str, staged: Iterable[Staged]) -> None:
    """Raises Unavailable when this process does not see what a task put into a revision's folder of a local store."""
    if local_root(store.url) is None:
        return
    keys = RevisionKeys(folder)
    for one in staged:
        key = keys.file(one.entries[0].location) if one.entries else None  # a task has one machine
        if key is not None and store.head(key) is None:
            raise not_seen(key)


def not_seen(place: str) -> Unavailable:
    """What to raise for files that are on another machine's disk."""
    return Unavailable("an executor wrote to a disk that the driver does not see", place=place, hint=_HINT)
