"""Takes and holds a job, so that no other process does it at the same time: R8 (docs/commit-rules.md).

The root alone decides who may commit. A takeover commits `fences[lock] = epoch + 1`. Of two takeovers of one lock from
the same epoch, the second to commit is refused, so an epoch has one holder; and a commit is refused when the head has
another epoch than its writer. Whatever happens to intents, two holders of a lock cannot both commit.

Intents only say whom to wait for, and for at most their time to live:

- The head is read before the intent, and is the base of the takeover. A takeover after our read of the head makes our
  commit fail, since its fence is newer. A takeover before it left an intent, which we read next.
- If there is no intent, we create one: of several processes that find none, one succeeds. An expired intent is replaced
  by a put, which several may do; one of them commits. The losers leave their intents alone: one may have replaced the
  winner's, and deleting it would make the job look free. After its commit the winner checks, and puts its own again.
- A holder checks the root before it renews its intent, not the intent: a late put by another process does not end a
  job, and a holder that lost it learns so at the next renewal. On release a holder deletes any intent of its own or of
  an earlier epoch, so that such a late put does not stay.
- An unreadable intent may belong to a live process until it is as old as `liveness` says.
- A crash after any step leaves at most an intent that expires. A takeover of unknown outcome leaves at most a fence
  that only shuts out earlier holders.
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
from underlay.table.coordination.liveness import Beacon, SeenBeacon, find_kept, read_ttl
from underlay.table.open_table import Head, OpenTable
from underlay.table.versions.environment import Surroundings, to_us
from underlay.table.versions.publish import Published, publish
from underlay.table.versions.revision import Revision

T = TypeVar("T")

TTL_SECONDS = 60.0
_ATTEMPTS = 100
"""How often a free job may be lost to another process before we give up."""


class Job(HeldObject, Generic[T]):
    """A job that this process holds until it is released, as by a `with`. A thread renews it.

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
        """The name of the job."""
        return self.intent.job

    @property
    def epoch(self) -> int:
        """How often the job has been taken so far. Each holder has a different one."""
        return self.intent.epoch

    def __repr__(self) -> str:
        return f"Job({self._opened.name!r}, {self.name!r}, epoch={self.epoch})"

    def release(self) -> None:
        """Let other processes take it at once. A second call does nothing."""
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
    """Take the job, and fence off its last holder. Five requests when it is free, more to learn that it expired.

    `show` turns the table that commits under this job into `Job.table`.

    Raises LeaseHeld while its holder counts as alive, unless `take_over`; `exclusive` jobs exclude each other whatever
    their names. CommitUnknown and Unavailable leave nothing that lasts longer than the time to live.
    """
    if table.held is not None:
        raise InvalidRequest(
            "this table already holds a job", found=table.held[0], hint="Take the other job from the lake's table."
        )
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
    raise Busy(f"other processes keep taking the job {job}", place=table.name, hint="Try again later.")


def _try_once(table: OpenTable, wanted: Intent, take_over: bool) -> tuple[Revision, Intent] | None:
    """The head at which the job was taken, and its intent; None when it must be tried again."""
    # The order matters: the head first, then the intent. See the module's docstring.
    head = table.head()
    store, key = head.revision.store, head.revision.keys.intent(wanted.lock)
    intent = replace(wanted, epoch=head.root.next_epoch(wanted.lock))
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
        if is_free:
            # Another process took and released the job since we read the head. Our intent replaced none, so it can go.
            _withdraw(store, key, intent)
            return None
        raise LeaseHeld(
            f"another process took over the job {intent.job} at the same time", place=head.revision.place
        ) from lost
    except UnderlayError:
        _withdraw(store, key, intent)
        raise
    return head.revision, replace(intent, started_us=to_us(began))


def _is_free(store: Store, key: str, wanted: Intent) -> bool:
    """Whether there is no intent; False when there is one that expired. Raises LeaseHeld when its owner is alive."""
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
        problem = "the intent is unreadable, and its owner may be alive; it was put"
    else:
        job = f"the exclusive job {record.job}" if wanted.is_exclusive else f"the job {wanted.job}"
        problem = f"{record.owner} holds {job}, and renewed it"
    return LeaseHeld(
        f"{problem} at {seen.modified:%Y-%m-%d %H:%M:%S} UTC",
        place=store.place_of(key),
        hint=f"Unless it is renewed, the job is free in {max(seen.left.total_seconds(), 0):.0f} s; take_over=True "
        "shuts the holder out now.",
    )


def _create(store: Store, key: str, intent: Intent, surroundings: Surroundings) -> bool:
    """Whether this intent was created; False when another one exists."""
    try:
        made = publish(store, key, encode_intent(intent), intent.owner, _read_owner, surroundings)
    except CommitUnknown as error:
        raise Unavailable(
            "the store did not say whether the intent was put", place=error.place, hint="Try again."
        ) from error
    return isinstance(made, Published)


def _read_owner(data: memoryview) -> str:
    """Its owner; empty when it is unreadable."""
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
    """Make sure that this intent is in place after the takeover. Returns a time, by the store's clock, before which the
    job did nothing."""
    found = find_kept(store, key, decode_intent)
    if found is not None and _is_of(intent, found):
        return found.modified
    store.put(key, encode_intent(intent))
    return store.now()


def _withdraw(store: Store, key: str, intent: Intent) -> None:
    """Delete this intent if it is there. It would expire anyway, so a store that does not answer does not matter."""
    with suppress(UnderlayError):
        found = find_kept(store, key, decode_intent)
        if found is not None and _is_of(intent, found):
            store.delete([key])


def _is_of(intent: Intent, found: Beacon[Intent]) -> bool:
    return found.record is not None and found.record.owner == intent.owner
