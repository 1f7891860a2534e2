"""Chooses objects from a listing page by page, and deletes them in batches: memory does not grow with the lake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from underlay.index.keys import ObjectKind
from underlay.maintain.sweep.swept import EXAMPLES, Progress
from underlay.store.store import Store, StoredObject

T = TypeVar("T")
_LOOKED_AT = 5000
_DELETED_AT_ONCE = 1000

Found = tuple[ObjectKind, str, StoredObject]
"""An object's kind, the unique part of its name, and its description by the store."""
Choose = Callable[[list[Found]], list[Found]]
"""Returns those of these objects that are to be deleted."""


@dataclass(slots=True)
class Tally:
    """How many objects were looked at, and which are deleted."""

    listed_count: int = 0
    object_count: int = 0
    size_bytes: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def add(self, chosen: Iterable[Found]) -> None:
        """Count these as deleted."""
        for kind, _, found in chosen:
            self.object_count += 1
            self.size_bytes += found.size_bytes
            self.kinds[kind.value] += 1
            if len(self.examples) < EXAMPLES:
                self.examples.append(found.key)


def delete_chosen(
    store: Store,
    listed: Iterable[Found],
    choose: Choose,
    forbid: Callable[[], Choose] | None,
    progress: Progress | None,
) -> Tally:
    """Delete what `choose` chooses. Before the first deletion, `forbid` ensures that nobody uses such objects any
    longer, and returns how to choose from then on; without it nothing is deleted.

    Deleted objects are not listed again, so the next sweep continues one that was interrupted.
    """
    tally = Tally()
    is_forbidden = False
    for some in _some_at_a_time(listed, _LOOKED_AT):
        tally.listed_count += len(some)
        chosen = choose(some)
        if chosen and forbid is not None and not is_forbidden:
            choose, is_forbidden = forbid(), True
            chosen = choose(chosen)
        if forbid is not None:
            for batch in _some_at_a_time(chosen, _DELETED_AT_ONCE):
                store.delete([found.key for _, _, found in batch])
        tally.add(chosen)
        if progress is not None:
            progress(tally.object_count, tally.listed_count)
    return tally


def _some_at_a_time(items: Iterable[T], count: int) -> Iterator[list[T]]:
    rest = iter(items)
    while some := list(islice(rest, count)):
        yield some
