"""Every pair of verbs at once: the outcome is that of one after the other, or a conflict that changed nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product

import pyarrow as pa
import pytest

import underlay
from tests.change.interrupting import InterruptingStore
from tests.end_to_end.lakes import NAME, SCHEMA, copy, memory, quick, rows
from tests.gate import some
from tests.table.checker import Checker
from underlay.errors import CommitConflict
from underlay.store import Store
from underlay.store.testing.wrapper import StoreMethod

Verb = Callable[[underlay.Table, int, str], object]
"""Changes one row, by its id; the text tells one change from another."""

OVERLAPS = {"disjoint": 450, "same file": 350, "same block": 50, "same row": 5}
"""The row that the winner changes, when the loser changes row 5."""


def changed(number: int, text: str) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64()), "name": [text], "value": [1.0]})


def merge(table: underlay.Table, number: int, text: str) -> object:
    merging = table.merge(changed(number, text), "t.id = s.id", source_alias="s", target_alias="t")
    return merging.when_matched_update({"name": "s.name"}).when_not_matched_insert_all().execute()


VERBS: dict[str, Verb] = {
    "append": lambda table, number, text: table.append(changed(number, text)),
    "upsert": lambda table, number, text: table.upsert(changed(number, text)),
    "insert": lambda table, number, text: table.upsert(changed(1000 + number, text)),
    "delete": lambda table, number, _: table.delete(f"id = {number}"),
    "delete by rest": lambda table, number, _: table.delete(f"id % 600 = {number}"),
    "delete key": lambda table, number, _: table.delete(rows=changed(number, "")),
    "delete block": lambda table, number, _: table.delete(f"id between {number} and {number + 70}"),
    "update": lambda table, number, text: table.update({"name": f"'{text}'"}, where=f"id = {number}"),
    "merge": merge,
    "overwrite": lambda table, number, text: table.overwrite(changed(2000 + number, text), f"id = {number}"),
    "overwrite all": lambda table, number, text: table.overwrite(changed(number, text)),
    "truncate": lambda table, *_: table.truncate(),
}
NEVER_DONE_AGAIN = ("overwrite", "overwrite all")


@cache
def template() -> Store:
    """A file of four blocks and one of two, of 100 rows each."""
    store = memory()
    table = quick(store).create_table(NAME, SCHEMA, key=["id"], properties={"block_rows": 100})
    table.append(rows(range(400)))
    table.append(rows(range(400, 600)))
    return store


def found(store: Store) -> list[str]:
    return sorted(map(repr, quick(store).table(NAME).to_arrow().to_pylist()))


@pytest.mark.parametrize(
    ("mine", "theirs", "overlap"),
    some(list(product(VERBS, VERBS, OVERLAPS)), 6),
    ids=lambda part: part.replace(" ", "_"),
)
def test_two_verbs_at_once_are_one_after_the_other(mine: str, theirs: str, overlap: str):
    def win(store: Store) -> None:
        VERBS[theirs](quick(store).table(NAME), OVERLAPS[overlap], "theirs")

    alone, serial, store = copy(template()), copy(template()), copy(template())
    win(alone)
    win(serial)
    VERBS[mine](quick(serial).table(NAME), 5, "mine")
    interrupted = InterruptingStore(store, StoreMethod.CREATE, ".root", lambda: win(store))
    try:
        VERBS[mine](quick(interrupted).table(NAME), 5, "mine")
    except CommitConflict:
        assert mine in NEVER_DONE_AGAIN
        assert found(store) == found(alone)
    else:
        assert found(store) == found(serial)
    Checker(store).check()


@pytest.mark.parametrize("mine", NEVER_DONE_AGAIN)
def test_an_overwrite_is_refused_when_what_it_replaces_changed(mine: str):
    store = copy(template())
    interrupted = InterruptingStore(
        store,
        StoreMethod.CREATE,
        ".root",
        lambda: quick(store).table(NAME).update({"name": "'theirs'"}, where="id = 5"),
    )
    with pytest.raises(CommitConflict):
        VERBS[mine](quick(interrupted).table(NAME), 5, "mine")
