"""All verbs of change and care by two clients whose clocks are an hour apart, and a reader with leases.

After every step each version that is left reads as it did when it was committed, and no object that a root names is
missing. At the end an expiry and a sweep leave no object that no root names.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from uuid import uuid4

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.gate import sized
from tests.maintain.audit import audit
from tests.maintain.late_store import LateStore
from tests.maintain.meddling_store import MeddlingStore
from underlay.api.lake import Lake
from underlay.api.table import Table
from underlay.errors import NotFound, SnapshotExpired
from underlay.store import open_store
from underlay.table.coordination.lease import Lease
from underlay.table.versions.environment import Surroundings, now_us

NAME = "shop.sales"
HOUR_US = 3_600_000_000
clients = st.integers(0, 1)
keys = st.lists(st.integers(0, 12), min_size=1, max_size=4, unique=True)


class CareMachine(RuleBasedStateMachine):
    """A model of a table: the rows of every version, and which versions must be left."""

    @initialize()
    def begin(self) -> None:
        self.meddling = MeddlingStore(open_store(f"memory://{uuid4()}"))
        self.store = LateStore(self.meddling)
        clocks = (lambda: now_us() - HOUR_US // 2, lambda: now_us() + HOUR_US // 2)
        self.lakes = [Lake(self.store, surroundings=Surroundings(now_us=clock)) for clock in clocks]
        self.lakes[0].create_table(NAME, "id bigint, word string", key=["id"])
        self.versions: dict[int, list[tuple[int, str]]] = {0: []}
        self.tags: dict[str, int] = {}
        self.leases: list[tuple[int, Lease[Table]]] = []
        self.expired: set[int] = set()
        self.count = 0

    def table(self, client: int):
        return self.lakes[client].table(NAME)

    def note(self, client: int) -> None:
        """Remember what the newest version holds; versions that care committed hold the same."""
        newest = self.table(client)
        rows = sorted(map(tuple, (row.values() for row in newest.to_arrow().to_pylist())))
        for version in range(max(self.versions) + 1, newest.version + 1):
            self.versions[version] = rows

    def frame(self, ids: list[int]) -> pa.Table:
        self.count += 1
        return pa.table({"id": ids, "word": [f"{one}-{self.count}" for one in ids]})

    @rule(client=clients, ids=keys)
    def append(self, client: int, ids: list[int]) -> None:
        self.table(client).append(self.frame(ids))
        self.note(client)

    @rule(client=clients, ids=keys)
    def upsert(self, client: int, ids: list[int]) -> None:
        table = self.table(client)
        seen = [row for row, _ in self.versions[max(self.versions)]]
        if len(seen) == len(set(seen)):
            table.upsert(self.frame(ids))
            self.note(client)

    @rule(client=clients, least=st.integers(0, 12))
    def delete(self, client: int, least: int) -> None:
        self.table(client).delete(f"id >= {least}")
        self.note(client)

    @rule(client=clients, data=st.data())
    def roll_back(self, client: int, data) -> None:
        version = data.draw(st.sampled_from(sorted(self.versions)))
        with suppress(SnapshotExpired):
            self.table(client).rollback(version)
            self.note(client)
            assert self.versions[max(self.versions)] == self.versions[version]

    @rule(client=clients, name=st.sampled_from("ab"), data=st.data())
    def tag(self, client: int, name: str, data) -> None:
        version = data.draw(st.sampled_from(sorted(self.versions)))
        with suppress(SnapshotExpired):
            self.table(client).tag(name, version)
            self.tags[name] = version

    @rule(client=clients, name=st.sampled_from("ab"))
    def untag(self, client: int, name: str) -> None:
        with suppress(NotFound):
            self.table(client).untag(name)
            self.tags.pop(name)

    @rule(client=clients, data=st.data())
    def lease(self, client: int, data) -> None:
        version = data.draw(st.sampled_from(sorted(self.versions)))
        with suppress(SnapshotExpired):
            self.leases.append((version, self.table(client).at(version=version).lease()))

    @rule()
    def release(self) -> None:
        if self.leases:
            self.leases.pop(0)[1].release()

    @rule(minutes=st.sampled_from([2, 90, 3000]))
    def wait(self, minutes: int) -> None:
        self.store.late += timedelta(minutes=minutes)

    @rule(client=clients, keep=st.integers(1, 4), older_than=st.sampled_from(["0s", "1h", "1d"]))
    def expire(self, client: int, keep: int, older_than: str) -> None:
        self.table(client).expire(older_than, keep, dry_run=False)
        self.note(client)

    @rule(client=clients, order=st.sampled_from([None, None, "zorder(id, word)"]))
    def compact(self, client: int, order: str | None) -> None:
        table = self.table(client)
        before = self.versions[max(self.versions)]
        table.compact(order=order)
        self.note(client)
        assert self.versions[max(self.versions)] == before
        assert all(entry.deletes is None for entry in table.snapshot().files())

    @rule(client=clients, meddler=st.sampled_from(["append", "upsert", "delete"]), ids=keys)
    def compact_while_another_commits(self, client: int, meddler: str, ids: list[int]) -> None:
        seen = [row for row, _ in self.versions[max(self.versions)]]
        if meddler == "upsert" and len(seen) > len(set(seen)):
            return
        other, rows = self.table(1 - client), self.frame(ids)

        def meddle() -> None:
            change = {"append": other.append, "upsert": other.upsert, "delete": lambda rows: other.delete(rows=rows)}
            change[meddler](rows)

        expected = dict.fromkeys(self.versions[max(self.versions)])
        self.meddling.meddle = meddle
        self.table(client).compact()
        if self.meddling.meddle is not None:  # there was nothing to compact
            self.meddling.meddle = None
            return
        self.note(client)
        after = self.versions[max(self.versions)]
        new = list(map(tuple, (row.values() for row in rows.to_pylist())))
        kept = [row for row in expected if meddler == "append" or row[0] not in ids]
        assert sorted(after) == sorted([*kept, *(new if meddler != "delete" else [])])

    @rule(client=clients, keep=st.integers(1, 4))
    def vacuum(self, client: int, keep: int) -> None:
        self.table(client).vacuum("1h", keep, "1h", dry_run=False)
        self.note(client)

    @rule(client=clients)
    def sweep(self, client: int) -> None:
        self.lakes[client].sweep("1h", dry_run=False)
        self.note(client)

    @invariant()
    def versions_that_are_left_read_the_same(self) -> None:
        for version, rows in self.versions.items():
            try:
                found = self.table(version % 2).at(version=version).to_arrow().to_pylist()
            except SnapshotExpired:
                self.expired.add(version)
                continue
            assert sorted(tuple(row.values()) for row in found) == rows
            assert version not in self.expired, "a version came back"
        assert self.expired.isdisjoint(self.tags.values())
        if self.store.late < timedelta(seconds=600):  # else leases are as old as the clock is ahead, and expired
            assert self.expired.isdisjoint(version for version, _ in self.leases)
        assert max(self.versions) not in self.expired

    @invariant()
    def nothing_that_a_root_names_is_missing(self) -> None:
        assert audit(self.store).missing == set()

    def teardown(self) -> None:
        if not hasattr(self, "lakes"):
            return
        for _, lease in self.leases:
            lease.release()
        self.store.late += timedelta(days=40)
        self.table(0).vacuum("1h", 1, dry_run=False)
        self.store.late += timedelta(days=40)
        self.lakes[1].vacuum("1h", 1, dry_run=False)
        assert audit(self.store) == (set(), set())
        assert not any(one.findings for one in self.lakes[0].verify(registry=False).tables[0].revisions)
        for lake in self.lakes:
            lake.close()


TestCareMachine = CareMachine.TestCase
# Each step reads every version, so that there are fewer than the profile says.
TestCareMachine.settings = settings(max_examples=sized(6, 100), stateful_step_count=sized(15, 40), deadline=None)
