"""Every pair of verbs at once: the outcome is that of one after the other, or a conflict that changed nothing.

`may_conflict` says which pairs conflict; all others land.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from itertools import product

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import underlay
from tests.change.interrupting import InterruptingStore
from tests.end_to_end.lakes import NAME, SCHEMA, copy, memory, quick, rows
from tests.gate import some
from tests.table.checker import Checker
from underlay.errors import CommitConflict, UnderlayError
from underlay.store import Store, open_store
from underlay.store.testing.wrapper import StoreMethod

Verb = Callable[[underlay.Table, int, str], object]
"""Changes one row, by its id, or the file that it is in; the text tells one change from another."""

OVERLAPS = {"disjoint": 450, "same file": 350, "same block": 50, "same row": 5}
"""The row that the winner changes, when the loser changes row 5."""

FILES = "memory://files-of-verdicts"
"""Where registered files are."""


def changed(number: int, text: str) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64()), "name": [text], "value": [1.0]})


def merge(table: underlay.Table, number: int, text: str) -> object:
    merging = table.merge(changed(number, text), "t.id = s.id", source_alias="s", target_alias="t")
    return merging.when_matched_update({"name": "s.name"}).when_not_matched_insert_all().execute()


def parquet(name: str, content: pa.Table) -> str:
    """The URL of a file with blocks of 100 rows."""
    sink = io.BytesIO()
    pq.write_table(content, sink, row_group_size=100)
    open_store(FILES).put(name, sink.getvalue())
    return f"{FILES}/{name}"


def own_file(number: int) -> str:
    """The file that a row is in, where all are registered."""
    return f"{FILES}/{'low' if number < 400 else 'high'}.parquet"


def evolve(change: str, *given: object) -> Verb:
    """One change of what the table is; `*` stands for the text."""

    def verb(table: underlay.Table, _: int, text: str) -> object:
        with table.evolve() as evolution:
            getattr(evolution, change)(*(one.replace("*", text) if isinstance(one, str) else one for one in given))
        return evolution.result

    return verb


ROWS: dict[str, Verb] = {
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
    "register": lambda table, number, text: table.register(parquet(f"{number}-{text}.parquet", changed(number, text))),
    "unregister": lambda table, number, _: table.unregister(own_file(number)),
}
CARE: dict[str, Verb] = {
    "compact": lambda table, number, _: table.compact(where=f"id = {number}", order="sort"),
    "import": lambda table, number, _: table.import_files(own_file(number)),
    "expire": lambda table, *_: table.expire(older_than="0s", keep=1, dry_run=False),
}
LOOSE: dict[str, Verb] = {
    "add column": evolve("add_column", "new_*", "int", 7),
    "rename column": evolve("rename_column", "value", "worth_*"),
    "drop column": evolve("drop_column", "value"),
    "move column": evolve("move_column", "value"),
    "sort": evolve("set_sort_by", ["name"]),
    "property": evolve("set_property", "codec", "snappy"),
    "comment": evolve("set_comment", "*"),
}
STRICT: dict[str, Verb] = {
    "widen column": evolve("widen_column", "n", "bigint"),
    "require": evolve("make_required", "name"),
    "key": evolve("set_key", ["id", "name"]),
    "partitions": evolve("set_partition_by", ["bucket(2, id)"]),
    "check": evolve("add_check", "*", "id < 100000"),
}
ROLLBACK: dict[str, Verb] = {"rollback": lambda table, *_: table.rollback(1)}
EVOLVE = LOOSE | STRICT
VERBS = ROWS | CARE | EVOLVE | ROLLBACK

NEEDS_REGISTERED = ("unregister", "import")
NEVER_DONE_AGAIN = ("overwrite", "overwrite all", "rollback")
OF_NO_ROW = ("truncate", "expire", "rollback", *EVOLVE)
"""They do the same whichever row they are called with."""
PAIRS = [
    (mine, theirs, overlap)
    for mine, theirs, overlap in product(VERBS, VERBS, OVERLAPS)
    if overlap == "same row" or not {mine, theirs}.intersection(OF_NO_ROW)
]


def may_conflict(mine: str, theirs: str) -> bool:
    """Whether the later of two may raise CommitConflict (docs/conflicts.md: "refuse")."""
    if mine in NEVER_DONE_AGAIN:
        return theirs not in CARE or (mine, theirs) == ("rollback", "expire")
    if mine in EVOLVE and theirs in EVOLVE:
        return True
    return (mine in ROWS and theirs in STRICT) or (mine in STRICT and theirs in ROWS)


@cache
def template(*, is_registered: bool) -> Store:
    """A file of four blocks and one of two, of 100 rows each."""
    store = memory()
    schema = f"{SCHEMA}, n int"
    table = quick(store).create_table(NAME, schema, key=["id"], sort_by=["id"], properties={"block_rows": 100})
    for name, content in (("low", rows(range(400))), ("high", rows(range(400, 600)))):
        if is_registered:
            table.register(parquet(f"{name}.parquet", content))
        else:
            table.append(content)
    return store


def found(store: Store) -> tuple[list[str], object]:
    """The rows, and what the table is."""
    table = quick(store).table(NAME)
    definition = table.definition
    is_what = definition.key, definition.partition_by, definition.checks, definition.sort_by, definition.properties
    return sorted(map(repr, table.to_arrow().to_pylist())), is_what


def act(store: Store, verb: str, number: int, text: str) -> UnderlayError | None:
    """What the verb raised."""
    try:
        VERBS[verb](quick(store).table(NAME), number, text)
    except UnderlayError as error:
        return error
    return None


@pytest.mark.parametrize(("mine", "theirs", "overlap"), some(PAIRS, 16), ids=lambda part: part.replace(" ", "_"))
def test_two_verbs_at_once_are_one_after_the_other(mine: str, theirs: str, overlap: str):
    base = template(is_registered=not {mine, theirs}.isdisjoint(NEEDS_REGISTERED))
    alone, serial, store = copy(base), copy(base), copy(base)
    number = OVERLAPS[overlap]
    assert act(alone, theirs, number, "theirs") is None
    act(serial, theirs, number, "theirs")
    in_turn = act(serial, mine, 5, "mine")
    interrupted = InterruptingStore(store, StoreMethod.CREATE, ".root", lambda: act(store, theirs, number, "theirs"))
    raised = act(interrupted, mine, 5, "mine")
    for never in interrupted.waiting:  # there was nothing to commit: a compaction leaves registered files alone
        never()
    if isinstance(raised, CommitConflict):
        assert may_conflict(mine, theirs), raised
        assert found(store) == found(alone)
    elif raised is not None:
        assert type(raised) is type(in_turn), raised
        assert found(store) == found(alone)
    elif found(store) != found(serial):
        # A commit that was prepared before the columns or the key were others, and goes by ids: as if it came first.
        assert theirs in EVOLVE
        other = copy(base)
        assert act(other, mine, 5, "mine") is None
        assert act(other, theirs, number, "theirs") is None
        assert found(store) == found(other)
    Checker(store).check()


@pytest.mark.parametrize("mine", EVOLVE)
@pytest.mark.parametrize("theirs", some(list(EVOLVE), 4))
def test_of_two_evolutions_at_once_the_later_is_refused(mine: str, theirs: str):
    store = copy(template(is_registered=False))
    interrupted = InterruptingStore(store, StoreMethod.CREATE, ".root", lambda: act(store, theirs, 5, "theirs"))
    assert isinstance(act(interrupted, mine, 5, "mine"), CommitConflict)


@pytest.mark.parametrize("mine", ["overwrite", "overwrite all"])
def test_an_overwrite_is_refused_when_what_it_replaces_changed(mine: str):
    store = copy(template(is_registered=False))
    interrupted = InterruptingStore(store, StoreMethod.CREATE, ".root", lambda: act(store, "update", 5, "theirs"))
    assert isinstance(act(interrupted, mine, 5, "mine"), CommitConflict)
