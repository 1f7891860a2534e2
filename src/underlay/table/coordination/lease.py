"""Leases of readers: while a lease is alive, the version that it names does not expire (R6).

Every lease has a unique name, so taking one never waits. An expired lease may be deleted at any time; its reader then
learns that it lost it, and reads of the version may raise SnapshotExpired, but never return only part of it.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec
from msgspec.structs import replace

from underlay.errors import Malformed, Unsupported
from underlay.index.keys import RevisionKeys
from underlay.index.sealed_json import UNDECODED, seal, unseal
from underlay.store.store import Store
from underlay.table.coordination.heartbeat import HEARTBEAT, Heartbeat
from underlay.table.coordination.held import HeldObject
from underlay.table.coordination.liveness import FORMAT, SeenBeacon, check_name, list_kept, name_of, read_ttl
from underlay.table.open_table import Head

T = TypeVar("T")

TTL_SECONDS = 600.0
_CHANCE_DIGITS = 16


class LeaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A reader of a version."""

    format: int = FORMAT
    reader: str
    owner: str
    version: int
    started_us: int
    """When it was taken, by the owner's clock: for people only, as `renewed_us`."""
    renewed_us: int
    ttl_us: int

    @property
    def name(self) -> str:
        """The last part of its key."""
        return self.reader


_DECODER = msgspec.json.Decoder(LeaseRecord)


def encode_lease(lease: LeaseRecord) -> bytes:
    """The bytes of a lease."""
    return seal(msgspec.json.encode(lease))


def decode_lease(data: memoryview) -> LeaseRecord:
    """The lease in `data`. Raises Damaged, or Unsupported when a newer Underlay wrote it."""
    try:
        lease = _DECODER.decode(unseal(data))
    except UNDECODED as error:
        raise Malformed(f"not a lease: {error}") from error
    if lease.format != FORMAT:
        raise Unsupported("the lease has an unknown format", expected=FORMAT, found=lease.format)
    return lease


class Lease(HeldObject, Generic[T]):
    """A version that this process protects from expiry until it releases it, as by a `with`. A thread renews the lease.

    `table` is the table at that version, which may be expired once the lease is lost.
    """

    def __init__(self, head: Head, table: T, lease: LeaseRecord, heartbeat: Heartbeat) -> None:
        self.table = table
        self.lease = lease
        self._revision = head.revision
        self._store = head.revision.store
        self._surroundings = head.revision.surroundings
        self._key = head.revision.keys.lease(lease.reader)
        self._store.put(self._key, encode_lease(lease))
        self._tell()
        super().__init__(lease.ttl_us, heartbeat)

    @property
    def reader(self) -> str:
        """The name of the lease in the store."""
        return self.lease.reader

    @property
    def version(self) -> int:
        """The protected version."""
        return self.lease.version

    def __repr__(self) -> str:
        return f"Lease({self.table!r}, reader={self.reader!r})"

    def _put_again(self) -> bool:
        if self._store.head(self._key) is None:
            return False
        self.lease = replace(self.lease, renewed_us=self._surroundings.now_us())
        self._store.put(self._key, encode_lease(self.lease))
        self._tell()
        return True

    def _take_away(self) -> None:
        self._store.delete([self._key])
        self._tell()

    def _tell(self) -> None:
        if self._surroundings.registry is not None:
            self._surroundings.registry.saw_reader(self._revision.keys, self._revision.id, self.lease.reader)


def take_lease(
    head: Head,
    table: T,
    *,
    name: str | None = None,
    ttl_seconds: float = TTL_SECONDS,
    is_old: bool = False,
    heartbeat: Heartbeat = HEARTBEAT,
) -> Lease[T]:
    """Protect the version from expiry. One request; one more if it `is_old`: it was not the newest just now, so the
    minimum reader age does not protect it.

    `table` is what `Lease.table` is. The reader's name begins with `name`, or the writer's. Raises SnapshotExpired.
    """
    surroundings = head.revision.surroundings
    chance = surroundings.new_commit_id()[:_CHANCE_DIGITS]
    beginning = name_of(surroundings.writer) if name is None else check_name(name, "reader")
    now_us = surroundings.now_us()
    lease = LeaseRecord(
        reader=f"{beginning}-{chance}",
        owner=f"{surroundings.writer}:{chance}",
        version=head.root.version,
        started_us=now_us,
        renewed_us=now_us,
        ttl_us=read_ttl(ttl_seconds),
    )
    taken = Lease(head, table, lease, heartbeat)
    # Checked after the lease was put: an expiry that did not see it has committed before.
    newest = head.revision.head() if is_old else head.root
    if not newest.retention.has(head.root.version):
        taken.release()
        raise head.revision.expired(head.root.version, newest)
    return taken


def list_leases(store: Store, keys: RevisionKeys) -> list[SeenBeacon[LeaseRecord]]:
    """All leases of a revision, by reader, including those that expired and those that cannot be read."""
    return list_kept(store, keys.leases, decode_lease)
