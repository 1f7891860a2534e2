"""A random life of a lake: tables come and go, files and sources too, and versions come back."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from tests.table.entries import DEFINITION, LAYOUT, entry, memory, name, new_lake, source
from underlay.index.operation import Operation
from underlay.index.root import Root
from underlay.index.segment.write import write_segment
from underlay.schema.record import from_record
from underlay.table import time_travel as travel
from underlay.table.catalog.changes import rename_table, untag_version
from underlay.table.catalog.lifecycle import activate, create, drop, open_active, prepare_successor
from underlay.table.commit.commit import commit
from underlay.table.commit.transaction import Transaction
from underlay.table.versions.environment import uuid7
from underlay.table.versions.revision import Revision
from underlay.table.versions.snapshot import Snapshot

_MOST_TABLES = 3


class Workload:
    """One lake in memory, and what may happen to it."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.store = memory()
        self.lake = new_lake(self.store)
        self._count = 0
        self._foreign: list[str] = []
        self.create()

    def run(self, count: int) -> None:
        """So many random things."""
        often: list[Callable[[], object]] = [self.append, self.append, self.append_segment, self.remove, self.ingest]
        seldom = [self.roll_back, self.tag, self.untag, self.rename, self.drop, self.create, self.activate]
        seldom += [self.delete_rows, self.roll_back, self.append_twice]
        for _ in range(count):
            self.chance.choice(often if self.chance.random() < 0.75 else seldom)()

    def tables(self) -> list[str]:
        return sorted(self.lake.catalog().tables)

    def revision(self) -> Revision:
        return open_active(self.lake, self.chance.choice(self.tables()))

    def create(self) -> None:
        if len(self.tables()) < _MOST_TABLES:
            self._count += 1
            taken = {table.casefold() for table in self.tables()}
            free = [f"a.t{number}" for number in range(9) if f"a.t{number}" not in taken]
            create(self.lake, self.chance.choice(free), DEFINITION)

    def append(self) -> Root:
        transaction = self._begin("append")
        for _ in range(self.chance.randint(1, 25)):
            transaction.add_file(entry(name()), LAYOUT)
        if self.chance.random() < 0.3:
            self._add_foreign(transaction)
        if self.chance.random() < 0.3:
            transaction.set_token(str(self._next()))
        return commit(transaction)

    def append_twice(self) -> None:
        """A writer that is refused and rebases."""
        revision = self.revision()
        first, second = (Transaction(revision, revision.head(), Operation.APPEND) for _ in range(2))
        for transaction in (first, second):
            transaction.add_file(entry(name()), LAYOUT)
        commit(first)
        commit(second)

    def append_segment(self) -> None:
        transaction = self._begin("append")
        files = [entry(name()) for _ in range(self.chance.randint(1, 7))]
        schema = from_record(DEFINITION.schema)
        data, ref = write_segment(files, schema, segment_id=uuid7(), bounded_fields=(1,))
        transaction.add_segment(ref, data, [LAYOUT])
        transaction.add_file(entry(name()), LAYOUT)
        commit(transaction)

    def remove(self) -> None:
        transaction = self._begin("compact")
        files = list(transaction.snapshot.files())
        for file in self.chance.sample(files, min(len(files), self.chance.choice([1, 3, 60]))):
            transaction.remove_file(file.location)
        if self.chance.random() < 0.5:
            transaction.add_file(entry(name()), LAYOUT)
        commit(transaction)

    def delete_rows(self) -> None:
        transaction = self._begin("delete")
        for file in list(transaction.snapshot.files())[:3]:
            transaction.delete_rows(file.location, [self.chance.randrange(100)])
        commit(transaction)

    def ingest(self) -> None:
        """Claims, and what becomes of them; now and then enough of them to fill pages of the source tree."""
        transaction = self._begin("ingest")
        for _ in range(self.chance.choice([1, 3, 150])):
            uri = f"s3://raw/{self.chance.randrange(400):03}"
            transaction.add_source(source(uri))
        commit(transaction)

    def roll_back(self) -> None:
        revision = self.revision()
        travel.rollback(revision, self.chance.randint(0, revision.head().version))

    def tag(self) -> None:
        table = self.chance.choice(self.tables())
        revision = open_active(self.lake, table)
        travel.tag(
            self.lake, table, self.chance.choice("ab"), revision, self.chance.randint(0, revision.head().version)
        )

    def untag(self) -> None:
        table = self.chance.choice(self.tables())
        for tag in list(self.lake.catalog().tables[table].tags)[:1]:
            self.lake.change(untag_version(table, tag))

    def rename(self) -> None:
        table = self.chance.choice(self.tables())
        self.lake.change(rename_table(table, f"a.t{10 + self._next()}"))

    def drop(self) -> None:
        if len(self.tables()) > 1:
            drop(self.lake, self.chance.choice(self.tables()))

    def activate(self) -> None:
        table = self.chance.choice(self.tables())
        old = open_active(self.lake, table)
        successor = prepare_successor(self.lake, table, DEFINITION)
        activate(self.lake, table, old, old.head(), successor)

    def _begin(self, operation: str) -> Transaction:
        revision = self.revision()
        return Transaction(revision, revision.head(), Operation(operation))

    def _add_foreign(self, transaction: Transaction) -> None:
        """A registered file; perhaps one that was in the table before, and has other bytes since."""
        again = self.chance.choice(self._foreign) if self._foreign and self.chance.random() < 0.5 else None
        location = again or f"./raw/{self._next()}.parquet"
        snapshot: Snapshot = transaction.snapshot
        is_free = location not in snapshot.root.removed and not snapshot.known_files([location])
        if is_free:
            transaction.add_file(replace(entry(location), etag=f'"{self._next()}"'), LAYOUT)
            self._foreign.append(location)

    def _next(self) -> int:
        self._count += 1
        return self._count
