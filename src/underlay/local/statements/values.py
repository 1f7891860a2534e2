"""Prepares parts of a statement for engines: numbers each `?`, and removes the changed table's name before columns."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence

from underlay.errors import InvalidRequest
from underlay.local.clauses.reader import Clause, NamedTable, place_of
from underlay.local.text.target_names import NAME_WORDS, changed_table_names, is_named
from underlay.local.text.time_travel import is_name, quoted
from underlay.local.text.words import Word, WordType, words_of
from underlay.values.parameters import Given, by_name

_Instead = tuple[int, str]
"""How many words are replaced, and by what."""
_Owner = tuple[tuple[str, ...], str]
"""The qualifier of a column, and its replacement."""

_INK = re.compile(r"\S")
_HINT = "Give values by name, {'zone': 'JFK'} for $zone, or as a list, ['JFK'] for ?."


def _nothing(_: Sequence[Word]) -> Mapping[int, _Instead]:
    return {}


class StatementValues:
    """The values for a statement's parameters. Raises InvalidRequest when they do not match."""

    def __init__(self, text: str, given: Given | None) -> None:
        self._text = text
        self._words = words_of(text)
        self._starts = [word.start for word in self._words]
        words = [word for word in self._words if word.token_type is WordType.PARAMETER]
        self._names: dict[int, str] = {}
        count = 0
        for word in words:
            count += word.text == "?"
            self._names[word.start] = str(count) if word.text == "?" else word.text[1:].lower()
        if count and count < len(words):
            raise InvalidRequest("? and names such as $zone cannot be mixed", hint=_HINT)
        self._values = by_name(given, hint=_HINT)
        missing = next((word for word in words if self._names[word.start] not in self._values), None)
        if missing is not None:
            raise InvalidRequest(
                "no value is given", place=place_of(text, missing.start), found=missing.text, hint=_HINT
            )
        surplus = self._values.keys() - set(self._names.values())
        if surplus:
            found = ", ".join(f"${name}" for name in sorted(surplus))
            raise InvalidRequest("some given values are not used", found=found, hint=_HINT)

    def text(self, piece: Clause) -> str:
        """The piece with `$1` for the first `?` of the statement."""
        return self._rewritten(piece)

    def of_rows(self, piece: Clause, target: NamedTable, alias: str) -> str:
        """The same for an expression on the table's rows alone: without the table's name before columns."""
        owners = [((target.dataset, target.table), ""), ((alias,), "")]
        return self._rewritten(piece, lambda words: _qualifiers(words, owners))

    def of_pairs(self, piece: Clause, target: NamedTable, alias: str, source: NamedTable | None = None) -> str:
        """The same for an expression on rows of the table and another one, each named by its alias. `source` is the
        other table if it has no alias.
        """
        instead = f"{quoted(alias)}."
        owners: list[_Owner] = [((target.dataset, target.table), instead), ((alias,), instead)]
        if source is not None:  # first: in a self-join, the changed table is the one without an alias
            owners.insert(0, ((source.dataset, source.table), f"{quoted(source.table)}."))
        return self._rewritten(piece, lambda words: _qualifiers(words, owners))

    def of_query(self, piece: Clause, target: NamedTable, rows: str, *, has_alias: bool) -> str:
        """The same for a part of a query that uses another name for the table's rows, and whose subqueries have their
        own scopes.
        """

        def found(words: Sequence[Word]) -> dict[int, _Instead]:
            places = changed_table_names(words, target.dataset, target.table, has_alias=has_alias)
            return dict.fromkeys(places, (NAME_WORDS, f"{rows}."))

        return self._rewritten(piece, found)

    def query(self, piece: Clause, before: str = "") -> str:
        """The piece at its position in the statement. Everything before it becomes blanks, so that the engine's line
        numbers are right. `before` replaces some of these blanks, in the first line if it fits.
        """
        blanks = _INK.sub(" ", self._text[: piece.begin])
        if "\n" not in blanks[: len(before)]:
            return f"{before}{blanks[len(before) :]}{self.text(piece)}"
        kept = blanks[: len(blanks) - len(before)]
        lines = "\n" * (blanks.count("\n") - kept.count("\n"))
        return f"{kept}{lines}{before}{self.text(piece)}"

    def used(self, *pieces: Clause | None) -> dict[str, object] | None:
        """The values that pieces name; None for none. Engines refuse unused values."""
        found = {
            name: self._values[name]
            for start, name in self._names.items()
            if any(piece is not None and piece.begin <= start < piece.end for piece in pieces)
        }
        return found or None

    def _rewritten(self, piece: Clause, find: Callable[[Sequence[Word]], Mapping[int, _Instead]] = _nothing) -> str:
        pieces: list[str] = []
        done = piece.begin
        words = self._words[bisect_left(self._starts, piece.begin) : bisect_left(self._starts, piece.end)]
        found = find(words)
        for at, word in enumerate(words):
            if word.start in self._names:
                pieces += [self._text[done : word.start], f"${self._names[word.start]}"]
                done = word.end + 1
            elif at in found:
                count, instead = found[at]
                pieces += [self._text[done : word.start], instead]
                done = words[at + count].start
        return "".join((*pieces, self._text[done : piece.end]))


def _qualifiers(words: Sequence[Word], owners: Sequence[_Owner]) -> dict[int, _Instead]:
    """What replaces the qualifiers before the names of columns."""
    found: dict[int, _Instead] = {}
    for at in range(len(words)):
        for names, instead in owners:
            count = 2 * len(names)
            if at not in found and is_named(words, at, names) and _is_column(words, at + count):
                found[at] = count, instead
    return found


def _is_column(words: Sequence[Word], at: int) -> bool:
    return (
        at < len(words) and words[at - 1].token_type is WordType.DOT and (is_name(words[at]) or words[at].text == "*")
    )
