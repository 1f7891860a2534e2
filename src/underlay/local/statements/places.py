"""Errors of verbs, with the place in the statement where their cause stands."""

from __future__ import annotations

from underlay.errors import InvalidRequest, UnknownColumn
from underlay.local.clauses.reader import Clause, place_of
from underlay.local.text.words import words_of

_LINES = "\n\nLINE "
"""Where DuckDB begins to show a text, which is not the one that was written."""


class Located:
    """`with Located(clause):` gives errors of the request the place of the clause that caused them.

    Of several it is the one that names a column that there is not, and else the first.
    """

    def __init__(self, *clauses: Clause | None) -> None:
        self._clauses = [clause for clause in clauses if clause is not None]

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, InvalidRequest) or not self._clauses:
            return
        error.problem = error.problem.partition(_LINES)[0]
        if error.place is not None and error.place.startswith("line "):
            error.place = None  # it counts in a part of the statement
        named = self._place_of(error.problem.rpartition(" ")[2]) if isinstance(error, UnknownColumn) else None
        error.at(named or self._clauses[0].place)

    def _place_of(self, name: str) -> str | None:
        bare = name.strip('"').rpartition(".")[2].lower()
        for clause in self._clauses:
            for word in words_of(clause.text):
                if word.text.lower() == bare:
                    return place_of(clause.statement, clause.begin + word.start)
        return None
