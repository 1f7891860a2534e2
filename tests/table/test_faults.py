"""Every operation with every fault at each of its requests: it succeeds or says clearly that it did not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.table.checker import Checker
from tests.table.entries import DEFINITION, append, appending, deleting, new_table, replacing, surroundings
from underlay.errors import CommitUnknown, TableNotFound, UnderlayError
from underlay.index.entry import FileEntry
from underlay.index.root import Root
from underlay.store.store import Store
from underlay.store.testing.faulty import Crashed, Fault, FaultyStore, at_every_request
from underlay.table.catalog.changes import rename_table
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.catalog.lifecycle import activate, create, drop, open_active, prepare_successor
from underlay.table.commit import flush_and_merge
from underlay.table.commit.commit import commit
from underlay.table.time_travel import rollback
from underlay.table.versions.revision import Revision

Work = Callable[[LakeCatalog, Store], object]
"""An operation on a lake; the store is for what others do meanwhile."""
IsDone = Callable[[LakeCatalog], bool]


def prepared() -> Store:
    """A table with files in a segment and in its tail, with some deleted rows."""
    _, revision = new_table()
    for location in ("a", "b", "c"):
        append(revision, location)
    commit(deleting(revision, "b", [1]))
    return revision.store


def table(lake: LakeCatalog) -> Revision:
    return open_active(lake, "taxi.trips")


def has_file(location: str) -> IsDone:
    def is_done(lake: LakeCatalog) -> bool:
        revision = table(lake)
        added = [
            file.location for root in map(revision.root, range(revision.head().version + 1)) for file in added_by(root)
        ]
        assert added.count(location) <= 1, "committed twice"
        return location in added

    return is_done


def added_by(root: Root) -> tuple[FileEntry, ...]:
    return root.tail[len(root.tail) - root.delta.added_in_tail :]


def plain_append(lake: LakeCatalog, _: Store) -> object:
    return append(table(lake), "new")


def append_that_loses_a_race(lake: LakeCatalog, inner: Store) -> object:
    mine = appending(table(lake), "new")
    append(table(LakeCatalog(inner, surroundings())), "theirs")
    return commit(mine)


def delete(lake: LakeCatalog, _: Store) -> object:
    transaction = deleting(table(lake), "a", [5])
    transaction.set_token("t")
    return commit(transaction)


def compact(lake: LakeCatalog, _: Store) -> object:
    return commit(replacing(table(lake), ["a", "b"], "new"))


def has_token(lake: LakeCatalog) -> bool:
    return any(source.uri == "token:t" for source in table(lake).head().sources.journal)


def roll_back(lake: LakeCatalog, _: Store) -> object:
    return rollback(table(lake), 1)


def is_rolled_back(lake: LakeCatalog) -> bool:
    return table(lake).head().delta.restored == 1


def create_another(lake: LakeCatalog, _: Store) -> object:
    return create(lake, "taxi.zones", DEFINITION)


def rename(lake: LakeCatalog, _: Store) -> object:
    return lake.change(rename_table("taxi.trips", "taxi.rides"))


def replace_revision(lake: LakeCatalog, _: Store) -> object:
    old = table(lake)
    base = old.head()
    return activate(lake, "taxi.trips", old, base, prepare_successor(lake, "taxi.trips", DEFINITION))


def drop_table(lake: LakeCatalog, _: Store) -> object:
    return drop(lake, "taxi.trips")


def is_dropped(lake: LakeCatalog) -> bool:
    try:
        table(lake)
    except TableNotFound:
        return True
    return False


OPERATIONS: list[tuple[Work, IsDone]] = [
    (plain_append, has_file("new")),
    (append_that_loses_a_race, has_file("new")),
    (delete, has_token),
    (compact, has_file("new")),
    (roll_back, is_rolled_back),
    (create_another, lambda lake: "taxi.zones" in lake.catalog().tables),
    (rename, lambda lake: "taxi.rides" in lake.catalog().tables),
    (replace_revision, lambda lake: len(lake.catalog().tables["taxi.trips"].revisions) == 2),
    (drop_table, is_dropped),
]


@pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.name)
@pytest.mark.parametrize(("work", "is_done"), OPERATIONS, ids=lambda given: getattr(given, "__name__", ""))
def test_a_fault_at_any_request(work: Work, is_done: IsDone, fault: Fault, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flush_and_merge, "TAIL_BYTES", 700)
    for store in at_every_request(prepared, [fault]):
        inner = store.inner
        checker = Checker(inner)
        checker.check()
        outcome = attempt(work, store)
        checker.check()
        store.release()
        recovered = LakeCatalog(inner, surroundings())
        is_found = is_done(recovered)
        if outcome is None:
            assert is_found, "acknowledged and not there"
        elif isinstance(outcome, UnderlayError) and not isinstance(outcome, CommitUnknown):
            assert not is_found, f"there in spite of {outcome}"
        for name in recovered.catalog().tables:
            append(open_active(recovered, name), f"after-{name}")
        checker.check()


def attempt(work: Work, store: FaultyStore) -> BaseException | None:
    """What ended the work early."""
    try:
        work(LakeCatalog(store, surroundings()), store.inner)
    except (UnderlayError, Crashed) as error:
        return error
    return None
