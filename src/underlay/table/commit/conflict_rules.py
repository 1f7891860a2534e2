"""Which acts of two commits conflict. A pair that no rule names does not.

The table in `docs/conflicts.md` is made from `RULES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Act(Enum):
    """A part of what a commit does."""

    MATCH = "reads rows"
    ADD = "adds rows"
    DELETE = "deletes rows"
    REPLACE = "removes files"
    REWRITE = "rewrites files"
    DEFINE = "changes the definition"
    CONSTRAIN = "changes key, partitions, not-null, a check or a type"
    RESTORE = "rolls back"
    INGEST = "records sources"
    TOKEN = "carries a token"
    FENCE = "takes over a job"
    EXPIRE = "expires versions"


class When(Enum):
    """What two acts must have in common to conflict."""

    ALWAYS = "always"
    MAY_MATCH = "new rows may be among those it reads"
    READ_FILE = "in a file that it read"
    WHOLE = "it read the whole table"
    SAME_ROW = "the same row, unless both only delete"
    SAME_FILE = "the same file"
    CHANGED_FILE = "in a file that it removes, unless both only delete"
    SAME_LOCATION = "the same location"
    SAME_SOURCE = "the same source"
    SAME_TOKEN = "the same token"
    SAME_JOB = "the same job"
    RESTORED_VERSION = "the version that it goes back to"


class ConflictVerdict(Enum):
    """What follows from a conflict, the strongest last."""

    REDO = "do the work again on the new head"
    REFUSE = "refuse: the caller decides"
    DONE = "nothing to do: it is committed already"


@dataclass(frozen=True, slots=True)
class Rule:
    """The verdict when this commit does `mine` and a winner did `theirs`."""

    mine: Act
    theirs: Act
    when: When
    verdict: ConflictVerdict


RULES = (
    Rule(Act.TOKEN, Act.TOKEN, When.SAME_TOKEN, ConflictVerdict.DONE),
    Rule(Act.INGEST, Act.INGEST, When.SAME_SOURCE, ConflictVerdict.REDO),
    Rule(Act.INGEST, Act.RESTORE, When.ALWAYS, ConflictVerdict.REDO),
    Rule(Act.FENCE, Act.FENCE, When.SAME_JOB, ConflictVerdict.REFUSE),
    Rule(Act.ADD, Act.ADD, When.SAME_LOCATION, ConflictVerdict.REFUSE),
    Rule(Act.ADD, Act.CONSTRAIN, When.ALWAYS, ConflictVerdict.REFUSE),
    Rule(Act.CONSTRAIN, Act.ADD, When.ALWAYS, ConflictVerdict.REFUSE),
    Rule(Act.DEFINE, Act.DEFINE, When.ALWAYS, ConflictVerdict.REFUSE),
    Rule(Act.MATCH, Act.ADD, When.MAY_MATCH, ConflictVerdict.REDO),
    Rule(Act.MATCH, Act.DELETE, When.READ_FILE, ConflictVerdict.REDO),
    Rule(Act.MATCH, Act.REPLACE, When.READ_FILE, ConflictVerdict.REDO),
    Rule(Act.MATCH, Act.DEFINE, When.WHOLE, ConflictVerdict.REDO),
    Rule(Act.MATCH, Act.RESTORE, When.ALWAYS, ConflictVerdict.REDO),
    Rule(Act.DELETE, Act.DELETE, When.SAME_ROW, ConflictVerdict.REDO),
    Rule(Act.DELETE, Act.REPLACE, When.SAME_FILE, ConflictVerdict.REDO),
    Rule(Act.DELETE, Act.RESTORE, When.ALWAYS, ConflictVerdict.REDO),
    Rule(Act.REPLACE, Act.DELETE, When.CHANGED_FILE, ConflictVerdict.REDO),
    Rule(Act.REPLACE, Act.REPLACE, When.SAME_FILE, ConflictVerdict.REDO),
    Rule(Act.REPLACE, Act.RESTORE, When.ALWAYS, ConflictVerdict.REDO),
    Rule(Act.DELETE, Act.REWRITE, When.SAME_FILE, ConflictVerdict.REDO),
    Rule(Act.REPLACE, Act.REWRITE, When.SAME_FILE, ConflictVerdict.REDO),
    *(
        Rule(Act.RESTORE, theirs, When.ALWAYS, ConflictVerdict.REFUSE)
        for theirs in (Act.ADD, Act.DELETE, Act.REPLACE, Act.DEFINE, Act.RESTORE, Act.INGEST)
    ),
    Rule(Act.RESTORE, Act.EXPIRE, When.RESTORED_VERSION, ConflictVerdict.REFUSE),
    Rule(Act.EXPIRE, Act.EXPIRE, When.ALWAYS, ConflictVerdict.REDO),
)


def markdown() -> str:
    """The rules as a table."""
    rows = [
        f"| {rule.mine.value} | {rule.theirs.value} | {rule.when.value} | {rule.verdict.value} |\n" for rule in RULES
    ]
    return f"| this commit | a commit that came first | when | then |\n|---|---|---|---|\n{''.join(rows)}"
