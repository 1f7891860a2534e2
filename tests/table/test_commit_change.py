"""What all verbs share. What each does of its own is tested with it."""

from __future__ import annotations

import pytest

from tests.table.coordination.owners import opened
from tests.table.entries import LAYOUT, entry, new_table
from underlay.errors import RevisionClosed
from underlay.index.operation import Operation
from underlay.store.store import Store
from underlay.table.catalog.lifecycle import activate, prepare_successor
from underlay.table.commit.transaction import Transaction
from underlay.table.commit_change import commit_change


@pytest.fixture
def store() -> Store:
    return new_table()[1].store


def replace_revision(store: Store) -> None:
    """Another process activates another revision."""
    table = opened(store, "other")
    revision, root = table.head()
    activate(table.lake, table.name, revision, root, prepare_successor(table.lake, table.name, root.definition))


def add(transaction: Transaction) -> None:
    transaction.add_file(entry("a"), LAYOUT)


def test_a_change_is_prepared_again_for_the_revision_that_took_over(store: Store):
    table = opened(store)
    bases: list[str] = []

    def prepare(transaction: Transaction) -> None:
        bases.append(transaction.revision.id)
        if len(bases) == 1:
            replace_revision(store)
        add(transaction)

    done = commit_change(table, Operation.APPEND, prepare)
    assert done.is_new
    assert done.head.revision.id == bases[1] != bases[0]


def test_a_change_of_one_version_is_not_taken_to_another_revision(store: Store):
    table = opened(store)
    base = table.head()
    replace_revision(store)
    with pytest.raises(RevisionClosed):
        commit_change(table, Operation.APPEND, add, base=base)


def test_without_a_change_there_is_no_version(store: Store):
    done = commit_change(opened(store), Operation.APPEND, lambda transaction: None, token="t")
    assert (done.version, done.is_new, done.is_repeat) == (0, False, False)
    assert opened(store).head().root.version == 0


def test_a_token_is_committed_once(store: Store):
    first = commit_change(opened(store), Operation.APPEND, add, token="t")
    again = commit_change(opened(store), Operation.APPEND, add, token="t")
    assert (first.version, first.is_new, first.is_repeat) == (1, True, False)
    assert (again.version, again.is_new, again.is_repeat) == (1, False, True)
