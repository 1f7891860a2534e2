"""Finds subqueries in the clauses of a statement."""

from __future__ import annotations

from itertools import pairwise

from underlay.errors import InvalidRequest
from underlay.local.clauses.reader import Clause, place_of
from underlay.local.text.target_names import QUERIES, is_word
from underlay.local.text.words import WordType, words_of


def first_subquery(clause: Clause) -> tuple[str, str] | None:
    """The position and first word of an expression's first subquery; None when there is none."""
    for before, word in pairwise(words_of(clause.text)):
        if before.token_type is WordType.L_PAREN and is_word(word, QUERIES):
            return place_of(clause.statement, clause.begin + word.start), word.text
    return None


def refuse_subqueries(clause: Clause, where: str, hint: str) -> None:
    """Raise InvalidRequest for a subquery in an expression."""
    found = first_subquery(clause)
    if found is not None:
        place, word = found
        raise InvalidRequest(f"a subquery is not available in {where}", place=place, found=word, hint=hint)
