"""Gives errors of verbs the position of their cause in the statement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from underlay.errors import InvalidRequest, UnknownColumn
from underlay.local.clauses.reader import Clause, place_of
from underlay.local.text.words import words_of

_QUOTED = re.compile(r"'[^']+'|\"[^\"]+\"")


class Located:
    """`with Located({"where": clause}):` gives InvalidRequest errors the position of the clause that caused them.

    The names are the verb's names for its texts, which it puts before its own places; those count in a generated text.
    An error without a place gets the position of the words that it quotes.
    """

    def __init__(self, clauses: Mapping[str, Clause | None] | Clause) -> None:
        self._is_one = isinstance(clauses, Clause)
        named = {"": clauses} if isinstance(clauses, Clause) else clauses
        self._clauses = {name: clause for name, clause in named.items() if clause is not None}

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, InvalidRequest) or not self._clauses:
            return
        error.problem = error.problem.partition("\n")[0]  # the rest is DuckDB's excerpt of a generated text
        place = error.place or ""
        name = max((one for one in self._clauses if place.startswith(one)), key=len, default=None)
        inner = place.removeprefix(name or "").lstrip(": ")
        error.place = None if not inner or inner.startswith("line ") else inner
        asked = list(self._clauses.values()) if name is None else [self._clauses[name]]
        found = next((at for clause in asked for at in _places_of(clause, error)), None)
        if found is not None or name is not None or self._is_one:
            error.at(found or asked[0].place)


def _places_of(clause: Clause, error: InvalidRequest) -> Iterator[str]:
    """The positions of the words that an error is about: an unknown column, or what the message quotes."""
    words = [error.problem.rpartition(" ")[2]] if isinstance(error, UnknownColumn) else _QUOTED.findall(error.problem)
    wanted = {word.strip("\"'").rpartition(".")[2].lower() for word in words}
    for word in words_of(clause.text):
        if word.text.lower() in wanted:
            yield place_of(clause.statement, clause.begin + word.start)
