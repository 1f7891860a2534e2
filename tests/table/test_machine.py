"""Two clients whose transactions interleave on a store that fails, against a model of plain dictionaries."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from tests.gate import costly, sized
from tests.table.checker import Checker
from tests.table.entries import LAYOUT, ROWS, entry, key_of, memory, new_table, other_client
from underlay.errors import CommitConflict, CommitUnknown, Unavailable
from underlay.index import deletion_vectors as bitmaps
from underlay.index.operation import Operation
from underlay.index.root import Root
from underlay.store.local import LocalStore
from underlay.store.store import Store
from underlay.store.testing.faulty import Fault, FaultyStore, seeded
from underlay.table.commit import flush_and_merge
from underlay.table.commit.commit import commit
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import Snapshot

Content = dict[str, set[int]]
"""The deleted rows of each file."""
FAULTS = [Fault.LOST_REQUEST, Fault.LOST_RESPONSE, Fault.OWN_REFUSAL, Fault.LATE]
clients = st.sampled_from([0, 1])


class TwoClients(RuleBasedStateMachine):
    """`versions` is what every version must be; `pending` are transactions that are not committed yet."""

    make_store: Callable[[], Store] = staticmethod(memory)

    @initialize(seed=st.integers(0, 10_000), rate=st.sampled_from([0.0, 0.03, 0.1]))
    def start(self, seed: int, rate: float) -> None:
        self.inner = self.make_store()
        _, self.plain = new_table(self.inner)
        self.stores = [FaultyStore(self.inner, seeded(seed + client, rate, FAULTS)) for client in (0, 1)]
        self.clients = [other_client(self.plain, store) for store in self.stores]
        self.checker = Checker(self.inner)
        self.versions: list[Content] = [{}]
        self.seen = [0, 0]
        self.pending: list[tuple[int, Transaction, dict[str, Any]]] = []
        self.names = 0
        first = Transaction(self.plain, self.plain.head(), Operation.APPEND)
        added = [self.new_file(first) for _ in range(4)]
        self.follow({commit(first).commit_id: {"added": added}})

    def new_file(self, transaction: Transaction) -> str:
        self.names += 1
        location = f"f{self.names}"
        transaction.add_file(entry(location), LAYOUT)
        transaction.objects[key_of(self.plain.keys, location)] = location.encode()
        return location

    def begin(self, client: int, operation: Operation) -> Transaction | None:
        revision = self.clients[client]
        try:
            base = revision.head()
        except Unavailable:
            return None
        assert base.version >= self.seen[client], "a process went backward"
        self.seen[client] = base.version
        return Transaction(revision, base, operation)

    def keep(self, client: int, transaction: Transaction, is_now: bool, **model: Any) -> None:
        """Commit the transaction now or later."""
        if is_now:
            self.finish(client, transaction, model)
        else:
            self.pending.append((client, transaction, model))

    @rule(client=clients, is_now=st.booleans(), count=st.integers(1, 3), token=st.sampled_from([None, None, "t", "u"]))
    def append(self, client: int, is_now: bool, count: int, token: str | None) -> None:
        if (transaction := self.begin(client, Operation.APPEND)) is None:
            return
        if token is not None:
            transaction.set_token(token)
        added = [self.new_file(transaction) for _ in range(count)]
        known = f"token:{token}" in {source.uri for source in transaction.base.sources.journal}
        if not known:
            self.keep(client, transaction, is_now, added=added)

    @rule(client=clients, is_now=st.booleans(), data=st.data(), is_update=st.booleans())
    def change_rows(self, client: int, is_now: bool, data: st.DataObject, is_update: bool) -> None:
        transaction = self.begin(client, Operation.UPDATE if is_update else Operation.DELETE)
        if transaction is None or not (content := self.versions[transaction.base.version]):
            return
        location = data.draw(st.sampled_from(sorted(content)))
        positions = data.draw(st.sets(st.integers(0, ROWS - 1), min_size=1, max_size=4))
        transaction.delete_rows(location, sorted(positions))
        added = [self.new_file(transaction)] if is_update else []
        self.keep(client, transaction, is_now, added=added, deletes={location: positions})

    @rule(client=clients, is_now=st.booleans(), data=st.data())
    def compact(self, client: int, is_now: bool, data: st.DataObject) -> None:
        transaction = self.begin(client, Operation.COMPACT)
        if transaction is None or not (content := self.versions[transaction.base.version]):
            return
        removed = data.draw(st.lists(st.sampled_from(sorted(content)), min_size=1, max_size=3, unique=True))
        for location in removed:
            transaction.remove_file(location)
        self.keep(client, transaction, is_now, added=[self.new_file(transaction)], removed=removed)

    @rule(client=clients, is_now=st.booleans(), text=st.sampled_from(["x", "y", "z"]))
    def comment(self, client: int, is_now: bool, text: str) -> None:
        if (transaction := self.begin(client, Operation.EVOLVE)) is not None:
            transaction.set_definition(replace(transaction.base.definition, comment=text))
            self.keep(client, transaction, is_now)

    @rule(client=clients, is_now=st.booleans(), data=st.data())
    def roll_back(self, client: int, is_now: bool, data: st.DataObject) -> None:
        if (transaction := self.begin(client, Operation.ROLLBACK)) is not None:
            version = data.draw(st.integers(0, transaction.base.version))
            transaction.restore(self.plain.root(version))
            self.keep(client, transaction, is_now, restored=version)

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def commit_one(self, data: st.DataObject) -> None:
        place = data.draw(st.integers(0, len(self.pending) - 1))
        self.finish(*self.pending.pop(place))

    def finish(self, client: int, transaction: Transaction, model: dict[str, Any]) -> None:
        try:
            root = commit(transaction)
        except (CommitConflict, Unavailable):
            return self.follow({})
        except CommitUnknown as unknown:
            self.stores[client].release()
            return self.follow({str(unknown.commit_id): model})
        is_repeated = root.version < len(self.versions)
        assert is_repeated or root.version > self.seen[client]
        self.seen[client] = max(root.version, self.seen[client])
        self.follow({} if is_repeated else {root.commit_id: model})
        assert len(self.versions) > root.version, "acknowledged and not there"
        return None

    def follow(self, expected: dict[str, Any]) -> None:
        """Take over what is committed; only what was expected may be."""
        for version in range(len(self.versions), self.plain.head().version + 1):
            root = self.plain.root(version)
            self.versions.append(applied(self.versions, expected.pop(root.commit_id)))

    @rule(client=clients)
    def late_writes_land(self, client: int) -> None:
        self.stores[client].release()
        self.follow({})

    @invariant()
    def every_version_is_what_the_model_says(self) -> None:
        self.checker.check()
        head = self.plain.head()
        assert head.version == len(self.versions) - 1
        assert content_of(self.plain, head) == self.versions[-1]

    def teardown(self) -> None:
        for version, content in enumerate(getattr(self, "versions", [])):
            assert content_of(self.plain, self.plain.root(version)) == content


def applied(versions: list[Content], model: Any) -> Content:
    if "restored" in model:
        return copy.deepcopy(versions[model["restored"]])
    content = copy.deepcopy(versions[-1])
    for location in model.get("removed", ()):
        del content[location]
    for location, positions in model.get("deletes", {}).items():
        content[location] |= positions
    return content | {location: set() for location in model.get("added", ())}


def content_of(revision: Revision, root: Root) -> Content:
    files = Snapshot(revision.store, revision.keys, root).files()
    return {file.location: set(bitmaps.unpack(file.deletes).tolist()) if file.deletes else set() for file in files}


def run(machine: type[RuleBasedStateMachine], parent: settings = costly) -> None:
    case = machine.TestCase
    case.settings = settings(parent, stateful_step_count=30, suppress_health_check=list(HealthCheck))
    case().runTest()


@pytest.mark.parametrize("tail_bytes", [0, 1500])
def test_two_clients_against_a_model(tail_bytes: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flush_and_merge, "TAIL_BYTES", tail_bytes)
    run(TwoClients)


def test_two_clients_on_a_disk_against_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flush_and_merge, "TAIL_BYTES", 700)

    class OnDisk(TwoClients):
        make_store = staticmethod(lambda: LocalStore(tmp_path / os.urandom(4).hex()))

    run(OnDisk, settings(max_examples=sized(4, 15)))  # each of its steps waits for a disk
