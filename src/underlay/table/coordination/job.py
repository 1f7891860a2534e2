"""Taking a job, so that no other process does it at the same time, and holding it (R5, R8).

Who may commit is decided by the root alone. A takeover commits `fences[lock] = epoch + 1`; of two takeovers of one lock
from the same epoch the second to commit is refused; so an epoch belongs to one holder, and a commit is refused when the
head has another epoch than its writer. Whatever becomes of intents, no two holders of a lock can both commit.

Intents only tell whom to wait for, and that at most for their time to live:

- The head is read before the intent, and is the base of the takeover. Whoever took the job later than that refuses
  the takeover by its commit; whoever took it earlier had put an intent before, which is read.
- An absent intent is created, so of many who find none one goes on. One that expired is replaced by a put, which
  several may do; one of them commits. The others leave their intents, since one may have replaced the winner's and an
  absent one would say that the job is free; the winner looks after its commit, and puts its own again.
- A holder looks at the root before it puts its intent again, and not at the intent: a late put by somebody else does
  not end a job, and one who lost it learns that at the next renewal. At the end a holder deletes every intent of its
  own or an earlier epoch, so none of such a late put stays.
- An intent that cannot be read is somebody's who may live, until it is as old as `liveness` says.
- A crash after any step leaves at most an intent that nobody renews. A takeover of unknown fate is a fence that shuts
  out nobody but earlier holders.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Generic, TypeVar

from msgspec.structs import replace

from underlay.errors import (
    Busy,
    CommitConflict,
    CommitUnknown,
    Damaged,
    InvalidRequest,
    LeaseHeld,
    RevisionClosed,
    Unavailable,
    UnderlayError,
    Unsupported,
)
from underlay.index.operation import Operation
from underlay.store.store import Store
from underlay.table.commit.commit import commit
from underlay.table.commit.conflicts import is_fenced_off
from underlay.table.coordination.heartbeat import HEARTBEAT, Heartbeat
from underlay.table.coordination.held import HeldObject
from underlay.table.coordination.intent import Intent, check_job, decode_intent, encode_intent
from underlay.table.coordination.liveness import Beacon, SeenBeacon, find_kept, read_ttl, to_us
from underlay.table.open_table import Head, OpenTable
from underlay.table.versions.environment import Surroundings
from underlay.table.versions.publish import Published, publish
from underlay.table.versions.revision import Revision

T = TypeVar("T")

TTL_SECONDS = 60.0
_ATTEMPTS = 100
"""How often a job may be found free, and be gone when it is taken."""


class Job(HeldObject, Generic[T]):
    """A job that this process holds until it is released, which a `with` does. A thread renews it.

    `table` is the table to write to: its commits raise JobTakenOver once another process has the job, and after the
    release it refuses to change anything.
    """

    def __init__(self, opened: OpenTable, table: T, revision: Revision, intent: Intent, heartbeat: Heartbeat) -> None:
        self.table = table
        self.intent = intent
        self._opened = opened
        self._revision = revision
        self._surroundings = revision.surroundings
        self._key = revision.keys.intent(intent.lock)
        self._tell()
        super().__init__(intent.ttl_us, heartbeat)

    @property
    def name(self) -> str:
        """What it is called."""
        return self.intent.job

    @property
    def epoch(self) -> int:
        """How often the job was taken until now. Each holder has another one."""
        return self.intent.epoch

    def __repr__(self) -> str:
        return f"Job({self._opened.name!r}, {self.name!r}, epoch={self.epoch})"

    def release(self) -> None:
        """Let others have it at once. A second call does nothing."""
        self._opened.end()
        super().release()

    def _put_again(self) -> bool:
        root = self._revision.head()
        if root.terminal is not None or is_fenced_off(root, self._opened.held):
            return False
        self.intent = replace(self.intent, renewed_us=self._surroundings.now_us())
        self._revision.store.put(self._key, encode_intent(self.intent))
        self._tell()
        return True

    def _take_away(self) -> None:
        store = self._revision.store
        found = find_kept(store, self._key, decode_intent)
        if found is None or self._is_mine_to_delete(found):
            if found is not None:
                store.delete([self._key])
            self._tell()

    def _is_mine_to_delete(self, found: Beacon[Intent]) -> bool:
        if found.record is not None:
            return found.record.epoch <= self.intent.epoch
        return not is_fenced_off(self._revision.head(), self._opened.held)

    def _tell(self) -> None:
        if self._surroundings.registry is not None:
            self._surroundings.registry.saw_job(self._revision.keys, self._revision.id, self.intent.lock)


def acquire(
    table: OpenTable,
    job: str,
    show: Callable[[OpenTable], T],
    *,
    ttl_seconds: float = TTL_SECONDS,
    exclusive: bool = False,
    take_over: bool = False,
    note: str = "",
    heartbeat: Heartbeat = HEARTBEAT,
) -> Job[T]:
    """Take the job, and shut out its last holder. Five requests when it is free, more to learn that it expired.

    `show` makes of the table that commits under this job what `Job.table` is.

    Raises LeaseHeld while its holder counts as alive, unless `take_over`; `exclusive` jobs wait for each other
    whatever they are called. CommitUnknown and Unavailable leave nothing that lasts longer than the time to live.
    """
    if table.held is not None:
        raise InvalidRequest("a job is held already", found=table.held[0], hint="Begin the other one from the table.")
    surroundings = table.lake.surroundings
    wanted = Intent(
        job=check_job(job, is_exclusive=exclusive),
        is_exclusive=exclusive,
        owner=f"{surroundings.writer}:{surroundings.new_commit_id()[:16]}",
        epoch=0,
        renewed_us=surroundings.now_us(),
        ttl_us=read_ttl(ttl_seconds),
        note=note,
    )
    for attempt in range(_ATTEMPTS):
        taken = _try_once(table, wanted, take_over)
        if taken is not None:
            revision, intent = taken
            opened = table.holding(revision, intent.lock, intent.epoch)
            return Job(opened, show(opened), revision, intent, heartbeat)
        surroundings.back_off(min(attempt, 4))
    raise Busy(f"others take the job {job} all the time", place=table.name, hint="Try again later.")


def _try_once(table: OpenTable, wanted: Intent, take_over: bool) -> tuple[Revision, Intent] | None:
    """Where the job was taken, and by which intent; None when it must be tried again."""
    head = table.head()
    store, key = head.revision.store, head.revision.keys.intent(wanted.lock)
    intent = replace(wanted, epoch=head.root.fences.get(wanted.lock, 0) + 1)
    is_free = not take_over and _is_free(store, key, intent)
    try:
        if not is_free:
            store.put(key, encode_intent(intent))
        elif not _create(store, key, intent, table.lake.surroundings):
            return None
        _fence(table, head, intent)
        began = _see_own(store, key, intent)
    except RevisionClosed as closed:
        _withdraw(store, key, intent)
        table.follow(closed)
        return None
    except CommitConflict as lost:
        if is_free:  # it was taken and released since the head was read, so this intent replaced nobody's
            _withdraw(store, key, intent)
            return None
        raise LeaseHeld(
            f"another process took the job {intent.job} at the same moment", place=head.revision.place
        ) from lost
    except UnderlayError:
        _withdraw(store, key, intent)
        raise
    return head.revision, replace(intent, started_us=to_us(began))


def _is_free(store: Store, key: str, wanted: Intent) -> bool:
    """Whether there is no intent; False when there is one that expired. Raises LeaseHeld when its owner lives."""
    found = find_kept(store, key, decode_intent)
    if found is None:
        return True
    seen = SeenBeacon(found=found, now=store.now())
    if seen.is_alive:
        raise _held(store, key, wanted, seen)
    return False


def _held(store: Store, key: str, wanted: Intent, seen: SeenBeacon[Intent]) -> LeaseHeld:
    record = seen.record
    if record is None:
        problem = "the intent cannot be read, and who put it may be alive; it was put"
    else:
        job = f"the exclusive job {record.job}" if wanted.is_exclusive else f"the job {wanted.job}"
        problem = f"{record.owner} does {job}, and was alive"
    return LeaseHeld(
        f"{problem} at {seen.modified:%Y-%m-%d %H:%M:%S} UTC",
        place=store.place_of(key),
        hint=f"If it is heard of no more, the job is free in {max(seen.left.total_seconds(), 0):.0f} s; take_over=True "
        "shuts it out now.",
    )


def _create(store: Store, key: str, intent: Intent, surroundings: Surroundings) -> bool:
    """Whether this intent was created; False when there is another one."""
    try:
        made = publish(store, key, encode_intent(intent), intent.owner, _read_owner, surroundings)
    except CommitUnknown as error:
        raise Unavailable(
            "the store does not say whether the intent was put", place=error.place, hint="Try again."
        ) from error
    return isinstance(made, Published)


def _read_owner(data: memoryview) -> str:
    """Nobody's is one that cannot be read."""
    try:
        return decode_intent(data).owner
    except (Damaged, Unsupported):
        return ""


def _fence(table: OpenTable, head: Head, intent: Intent) -> None:
    """Commit the takeover."""
    transaction = table.begin(head, Operation.JOB)
    transaction.take_over(intent.lock)
    commit(transaction)


def _see_own(store: Store, key: str, intent: Intent) -> datetime:
    """See that this intent stands after the takeover. A time before which the job did nothing, by the store's clock."""
    found = find_kept(store, key, decode_intent)
    if found is not None and _is_of(intent, found):
        return found.modified
    store.put(key, encode_intent(intent))
    return store.now()


def _withdraw(store: Store, key: str, intent: Intent) -> None:
    """Delete this intent if it stands. It would expire anyway, so a store that does not answer is no matter."""
    with suppress(UnderlayError):
        found = find_kept(store, key, decode_intent)
        if found is not None and _is_of(intent, found):
            store.delete([key])


def _is_of(intent: Intent, found: Beacon[Intent]) -> bool:
    return found.record is not None and found.record.owner == intent.owner
