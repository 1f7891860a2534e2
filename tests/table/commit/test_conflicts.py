from __future__ import annotations

from pathlib import Path
from unittest.mock import ANY

import msgspec
import pytest

from tests.table.entries import DEFINITION, entry, source
from underlay.index import deletion_vectors as bitmaps
from underlay.index.change import Change
from underlay.index.operation import Operation
from underlay.index.root import Definition, Delta, Retention, Root, SortFieldRecord
from underlay.index.state import advance, first_root
from underlay.schema.record import FieldRecord, SchemaRecord
from underlay.table.commit.conflict_rules import RULES, Act, ConflictVerdict, Rule, When, markdown
from underlay.table.commit.conflicts import (
    AlreadyCommitted,
    Decision,
    Mine,
    ReadSet,
    Rebase,
    Redo,
    Refuse,
    Winner,
    conflicts,
    is_stricter,
)

BASE = advance(
    first_root(DEFINITION, commit_id="0", now_us=1, writer="w"),
    Change(operation=Operation.APPEND, files=(entry("a"), entry("b"))),
    commit_id="1",
    now_us=2,
    writer="w",
)
COMMENTED = msgspec.structs.replace(DEFINITION, comment="trips")
KEYLESS = msgspec.structs.replace(DEFINITION, key=())
TOUCHED = {"a": entry("a"), "b": entry("b")}


def bits(*positions: int) -> bytes:
    return bitmaps.pack(positions)


APPEND = Change(operation=Operation.APPEND, files=(entry("new"),))
OTHER_APPEND = Change(operation=Operation.APPEND, files=(entry("other"),))
DELETE = Change(operation=Operation.DELETE, deletes={"a": bits(1)}, touched=TOUCHED)
UPDATE = Change(operation=Operation.UPDATE, deletes={"a": bits(1)}, touched=TOUCHED, files=(entry("new"),))
COMPACT = Change(operation=Operation.COMPACT, removed=("a",), touched=TOUCHED, files=(entry("packed"),))
DROP_FILE = Change(operation=Operation.DELETE, removed=("a",), touched=TOUCHED)
COMMENT = Change(operation=Operation.EVOLVE, definition=COMMENTED)
CONSTRAIN = Change(operation=Operation.EVOLVE, definition=KEYLESS)
ROLLBACK = Change(operation=Operation.ROLLBACK, restored=first_root(DEFINITION, commit_id="0", now_us=1, writer="w"))
INGEST = Change(operation=Operation.INGEST, sources=(source("s3://in/1"),), files=(entry("new"),))
CLAIM = Change(operation=Operation.CLAIM, sources=(source("s3://in/1"),))
TOKEN = Change(operation=Operation.APPEND, sources=(source("token:t"),), files=(entry("new"),))
FENCE = Change(operation=Operation.JOB, fences={"job": 1})
NOTHING = Change(operation=Operation.COMMENT)

EXPIRE = Change(operation=Operation.EXPIRE, retention=Retention(begin=99))
WHOLE = ReadSet(is_whole=True)
MATCHING = ReadSet(may_match=lambda file: True)
READ_A = ReadSet(locations=frozenset({"a"}))

EXAMPLES: dict[Rule, tuple[Change, ReadSet, Change]] = {
    Rule(Act.TOKEN, Act.TOKEN, When.SAME_TOKEN, ConflictVerdict.DONE): (TOKEN, ReadSet(), TOKEN),
    Rule(Act.INGEST, Act.INGEST, When.SAME_SOURCE, ConflictVerdict.REDO): (INGEST, ReadSet(), CLAIM),
    Rule(Act.INGEST, Act.RESTORE, When.ALWAYS, ConflictVerdict.REDO): (INGEST, ReadSet(), ROLLBACK),
    Rule(Act.FENCE, Act.FENCE, When.SAME_JOB, ConflictVerdict.REFUSE): (FENCE, ReadSet(), FENCE),
    Rule(Act.ADD, Act.ADD, When.SAME_LOCATION, ConflictVerdict.REFUSE): (APPEND, ReadSet(), APPEND),
    Rule(Act.ADD, Act.CONSTRAIN, When.ALWAYS, ConflictVerdict.REFUSE): (APPEND, ReadSet(), CONSTRAIN),
    Rule(Act.CONSTRAIN, Act.ADD, When.ALWAYS, ConflictVerdict.REFUSE): (CONSTRAIN, ReadSet(), APPEND),
    Rule(Act.DEFINE, Act.DEFINE, When.ALWAYS, ConflictVerdict.REFUSE): (COMMENT, ReadSet(), COMMENT),
    Rule(Act.MATCH, Act.ADD, When.MAY_MATCH, ConflictVerdict.REDO): (DELETE, MATCHING, OTHER_APPEND),
    Rule(Act.MATCH, Act.DELETE, When.READ_FILE, ConflictVerdict.REDO): (APPEND, READ_A, DELETE),
    Rule(Act.MATCH, Act.REPLACE, When.READ_FILE, ConflictVerdict.REDO): (APPEND, READ_A, DROP_FILE),
    Rule(Act.MATCH, Act.DEFINE, When.WHOLE, ConflictVerdict.REDO): (NOTHING, WHOLE, COMMENT),
    Rule(Act.MATCH, Act.RESTORE, When.ALWAYS, ConflictVerdict.REDO): (NOTHING, READ_A, ROLLBACK),
    Rule(Act.DELETE, Act.DELETE, When.SAME_ROW, ConflictVerdict.REDO): (DELETE, ReadSet(), UPDATE),
    Rule(Act.DELETE, Act.REPLACE, When.SAME_FILE, ConflictVerdict.REDO): (DELETE, ReadSet(), DROP_FILE),
    Rule(Act.DELETE, Act.REWRITE, When.SAME_FILE, ConflictVerdict.REDO): (DELETE, ReadSet(), COMPACT),
    Rule(Act.REPLACE, Act.REWRITE, When.SAME_FILE, ConflictVerdict.REDO): (DROP_FILE, ReadSet(), COMPACT),
    Rule(Act.DELETE, Act.RESTORE, When.ALWAYS, ConflictVerdict.REDO): (DELETE, ReadSet(), ROLLBACK),
    Rule(Act.REPLACE, Act.DELETE, When.CHANGED_FILE, ConflictVerdict.REDO): (COMPACT, ReadSet(), DELETE),
    Rule(Act.REPLACE, Act.REPLACE, When.SAME_FILE, ConflictVerdict.REDO): (COMPACT, ReadSet(), DROP_FILE),
    Rule(Act.REPLACE, Act.RESTORE, When.ALWAYS, ConflictVerdict.REDO): (COMPACT, ReadSet(), ROLLBACK),
    Rule(Act.RESTORE, Act.ADD, When.ALWAYS, ConflictVerdict.REFUSE): (ROLLBACK, ReadSet(), APPEND),
    Rule(Act.RESTORE, Act.DELETE, When.ALWAYS, ConflictVerdict.REFUSE): (ROLLBACK, ReadSet(), DELETE),
    Rule(Act.RESTORE, Act.REPLACE, When.ALWAYS, ConflictVerdict.REFUSE): (ROLLBACK, ReadSet(), DROP_FILE),
    Rule(Act.RESTORE, Act.DEFINE, When.ALWAYS, ConflictVerdict.REFUSE): (ROLLBACK, ReadSet(), COMMENT),
    Rule(Act.RESTORE, Act.RESTORE, When.ALWAYS, ConflictVerdict.REFUSE): (ROLLBACK, ReadSet(), ROLLBACK),
    Rule(Act.RESTORE, Act.INGEST, When.ALWAYS, ConflictVerdict.REFUSE): (ROLLBACK, ReadSet(), CLAIM),
    Rule(Act.RESTORE, Act.EXPIRE, When.RESTORED_VERSION, ConflictVerdict.REFUSE): (ROLLBACK, ReadSet(), EXPIRE),
    Rule(Act.EXPIRE, Act.EXPIRE, When.ALWAYS, ConflictVerdict.REDO): (EXPIRE, ReadSet(), EXPIRE),
}
"""For each rule two commits to which it applies."""


def won(change: Change, parent: Root = BASE) -> Winner:
    root = advance(parent, change, commit_id="theirs", now_us=3, writer="w")
    return Winner(root=root, added=change.files)


def decide(mine: Change, reads: ReadSet, *theirs: Winner) -> Decision:
    return conflicts(Mine(change=mine, reads=reads, definition=DEFINITION), theirs)


def test_the_page_shows_the_rules():
    page = Path(__file__).parents[3] / "docs" / "conflicts.md"
    assert markdown() in page.read_text()


def test_every_rule_has_an_example():
    assert set(EXAMPLES) == set(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.mine.name}-{rule.theirs.name}-{rule.when.name}")
def test_a_rule_decides(rule: Rule):
    mine, reads, theirs = EXAMPLES[rule]
    expected = {ConflictVerdict.DONE: AlreadyCommitted, ConflictVerdict.REFUSE: Refuse, ConflictVerdict.REDO: Redo}[
        rule.verdict
    ]
    assert isinstance(decide(mine, reads, won(theirs)), expected)


@pytest.mark.parametrize(
    ("mine", "reads", "theirs"),
    [
        (APPEND, ReadSet(), OTHER_APPEND),
        (APPEND, ReadSet(), DELETE),
        (APPEND, ReadSet(), COMPACT),
        (APPEND, ReadSet(), COMMENT),
        (APPEND, ReadSet(), ROLLBACK),
        (TOKEN, ReadSet(), ROLLBACK),
        (DELETE, ReadSet(), OTHER_APPEND),
        (DELETE, ReadSet(may_match=lambda file: False), OTHER_APPEND),
        (DELETE, ReadSet(), DELETE),
        (DROP_FILE, ReadSet(), DELETE),
        (UPDATE, ReadSet(), Change(operation=Operation.UPDATE, deletes={"a": bits(2)}, touched=TOUCHED)),
        (UPDATE, ReadSet(), Change(operation=Operation.COMPACT, removed=("b",), touched=TOUCHED)),
        (COMPACT, ReadSet(), Change(operation=Operation.DELETE, deletes={"b": bits(1)}, touched=TOUCHED)),
        (COMMENT, ReadSet(), APPEND),
        # a compaction brings no rows, and takes none
        (NOTHING, WHOLE, COMPACT),
        (APPEND, MATCHING, COMPACT),
        (APPEND, READ_A, COMPACT),
        (CONSTRAIN, ReadSet(), COMPACT),
        (ROLLBACK, ReadSet(), COMPACT),
        (INGEST, ReadSet(), Change(operation=Operation.INGEST, sources=(source("s3://in/2"),))),
        (TOKEN, ReadSet(), Change(operation=Operation.APPEND, sources=(source("token:u"),))),
        (FENCE, ReadSet(), Change(operation=Operation.JOB, fences={"another": 1})),
        (ROLLBACK, ReadSet(), FENCE),
    ],
)
def test_commits_that_go_together(mine: Change, reads: ReadSet, theirs: Change):
    assert decide(mine, reads, won(theirs)) == Rebase()


def test_every_winner_counts_and_the_strongest_reason_is_given():
    first = won(Change(operation=Operation.INGEST, sources=(source("s3://in/1"),)))
    second = won(CONSTRAIN, first.root)
    decision = decide(INGEST, ReadSet(), first, second)
    assert isinstance(decision, Refuse)
    assert decision.winner is second.root


def test_who_may_not_do_the_work_again_may_do_it_where_rows_only_moved():
    moved = won(COMPACT)
    assert decide(DROP_FILE, ReadSet(), moved) == Redo(ANY, moved.root, is_rewrite=True)
    added = won(OTHER_APPEND, moved.root)
    decision = decide(DROP_FILE, MATCHING, moved, added)
    assert isinstance(decision, Redo)
    assert (decision.winner, decision.is_rewrite) == (added.root, False)


def test_a_committed_token_is_stronger_than_any_conflict():
    first = won(TOKEN)
    second = won(CONSTRAIN, first.root)
    assert decide(TOKEN, ReadSet(), first, second) == AlreadyCommitted(2)


def field(**given: object) -> Definition:
    record = FieldRecord(**({"id": 1, "name": "id", "type": "int64"} | given))  # type: ignore[arg-type]  # many types
    return Definition(schema=SchemaRecord(fields=(record,), last_id=9), key=(1,))


@pytest.mark.parametrize(
    ("after", "is_strict"),
    [
        (field(), False),
        (field(name="number", comment="x"), False),
        (field(required=True), True),
        (field(type="decimal(20, 0)"), True),
        (field(default="3"), True),
        (field(id=2), False),
        (field(id=2, required=True), True),
        (field(id=2, required=True, default="1"), False),
        (msgspec.structs.replace(field(), key=()), True),
        (msgspec.structs.replace(field(), sort_by=(SortFieldRecord(field=1),)), False),
    ],
)
def test_which_definitions_ask_more_of_rows(after: Definition, is_strict: bool):
    assert is_stricter(field(), after) is is_strict


def test_a_delta_says_all_that_a_rebase_needs():
    assert won(COMPACT).root.delta == Delta(added_in_tail=1, removed=("a",))
