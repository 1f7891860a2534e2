"""A chain of numbered objects on a store: the roots of a revision, the entries of the catalog.

Numbers are contiguous from 0 and no object of the chain ever vanishes, so the head is found by looking forward from any
lower bound. A hint object holds such a lower bound; the writer of every eighth object updates it in the background. It
is never trusted: a hint that points past the chain, or is unreadable, costs a listing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import msgspec

from underlay.errors import NotFound, UnderlayError, VersionNotFound
from underlay.index.sealed_json import UNDECODED, CommitIds
from underlay.runtime.locks import ProcessLock
from underlay.runtime.threads import REQUESTS
from underlay.store.store import Store
from underlay.table.versions.environment import Surroundings
from underlay.table.versions.links import ChainKeys, missing_object, start_base_check, start_link_check
from underlay.table.versions.publish import Lost, Published, publish
from underlay.table.versions.registry_protocol import Known

HINT_EVERY = 8
NONE = -1
"""The head of a chain without objects."""


class Hint(msgspec.Struct, frozen=True):
    """A lower bound of the head."""

    number: int


class Chain:
    """One chain, as seen by one process: its known head never goes backward, and includes what it published."""

    def __init__(self, store: Store, keys: ChainKeys, surroundings: Surroundings) -> None:
        self.store = store
        self.keys = keys
        self.surroundings = surroundings
        self._lock = ProcessLock()
        self._known = NONE
        self._checked_at: float | None = None

    def head(self, max_staleness_seconds: float = 0.0) -> int:
        """The newest number, or NONE. One request when it is still the one this process knows; none when that was
        checked less than `max_staleness_seconds` ago."""
        with self._lock:
            known, checked_at = self._known, self._checked_at
        begun_at = self.surroundings.monotonic()
        if checked_at is not None and known != NONE and begun_at - checked_at < max_staleness_seconds:
            return known
        if known != NONE:
            return self._remember(self._gallop(known), begun_at)
        return self._remember(self._checked(self._gallop(self._lower_bound())), begun_at)

    def start_at(self, bound: Known, read_id: Callable[[memoryview], str]) -> Callable[[], memoryview | None]:
        """Begin at an object that is said to exist. Requests it and the one after it in parallel, and returns at once a
        function that waits, and returns the object, or None when it is missing or a different one."""
        begun_at = self.surroundings.monotonic()
        getting = REQUESTS.submit(self.store.get, self.keys.object(bound.number))
        is_followed = REQUESTS.submit(self._exists, bound.number + 1)

        def finish() -> memoryview | None:
            try:
                data = getting.result()[0]
            except NotFound:
                return None
            if read_id(data) != bound.commit_id:
                return None
            self._remember(self._gallop(bound.number + 1) if is_followed.result() else bound.number, begun_at)
            return data

        return finish

    def get(self, number: int) -> memoryview:
        """The object of this number. Raises VersionNotFound."""
        try:
            return self.store.get(self.keys.object(number))[0]
        except NotFound as error:
            raise VersionNotFound("there is no such version", place=self.keys.folder, found=number) from error

    def get_all(self, numbers: Sequence[int]) -> Iterator[memoryview]:
        """The objects of these numbers, in order. Raises VersionNotFound."""
        found = self.store.get_all([self.keys.object(number) for number in numbers])
        for number in numbers:
            try:
                yield next(found)
            except NotFound as error:
                raise VersionNotFound("there is no such version", place=self.keys.folder, found=number) from error

    def find(self, number: int) -> memoryview | None:
        """The object of this number, or None; one that exists moves the known head."""
        try:
            data = self.store.get(self.keys.object(number))[0]
        except NotFound:
            return None
        self._remember(number, None)
        return data

    def start_link_check(self, number: int, known: Known | None = None) -> Callable[[CommitIds], None]:
        """Check that the object of this number, which the caller reads meanwhile, belongs to the chain. See `links`."""
        return start_link_check(self.store, self.keys, number, known)

    def start_base_check(self, base: Known, parent_id: str | None) -> Callable[[], None]:
        """Check that the object after which the caller is about to publish still exists. See `links`."""
        return start_base_check(self.store, self.keys, base, parent_id)

    def publish(
        self, number: int, data: bytes, commit_id: str, read_id: Callable[[memoryview], str]
    ) -> Published | Lost:
        """Create the object of this number, which must follow one that exists: `start_base_check` has passed. See
        `publish`."""
        result = publish(self.store, self.keys.object(number), data, commit_id, read_id, self.surroundings)
        self._remember(number, None)
        if isinstance(result, Published) and number % HINT_EVERY == 0:
            self.surroundings.in_background(lambda: self._write_hint(number))
        return result

    def _remember(self, number: int, checked_at: float | None) -> int:
        with self._lock:
            self._known = max(self._known, number)
            if checked_at is not None:
                self._checked_at = checked_at
            return self._known

    def _exists(self, number: int) -> bool:
        return self.store.head(self.keys.object(number)) is not None

    def _gallop(self, bound: int) -> int:
        """The last number that exists, given one that does (or NONE)."""
        step = 1
        while self._exists(bound + step):
            bound, step = bound + step, step * 2
        end = bound + step
        while end - bound > 1:
            middle = (bound + end) // 2
            if self._exists(middle):
                bound = middle
            else:
                end = middle
        return bound

    def _checked(self, head: int) -> int:
        """The head found when a chain is opened, after a check that no object is missing right after it. One
        request."""
        while head != NONE and self._exists(head + 2):
            if not self._exists(head + 1):
                raise missing_object(self.keys.object(head + 1), self.keys.object(head + 2))
            head = self._gallop(head + 2)  # both were created since
        return head

    def _lower_bound(self) -> int:
        try:
            hinted = msgspec.json.decode(self.store.get(self.keys.hint)[0], type=Hint).number
        except (NotFound, *UNDECODED):
            return self._list()
        return hinted if hinted >= 0 and self._exists(hinted) else self._list()

    def _list(self) -> int:
        """The last number by listing. Raises Inconsistent when one is missing before it."""
        number = NONE
        for found in self.store.list_objects(self.keys.folder):
            if found.key == self.keys.object(number + 1):
                number += 1
            elif found.key.removeprefix(f"{self.keys.folder}/")[:1].isdigit():
                raise missing_object(self.keys.object(number + 1), found.key)
            else:
                break
        return number

    def _write_hint(self, number: int) -> None:
        with suppress(UnderlayError):
            self.store.put(self.keys.hint, msgspec.json.encode(Hint(number)))
