"""The parts of a statement as engines take them: with numbers for `?`, and without names of the changed table."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from underlay.errors import InvalidRequest
from underlay.local.clauses.reader import Clause, NamedTable, place_of
from underlay.local.text.time_travel import is_name, quoted
from underlay.local.text.words import Word, WordType, words_of

Given = Sequence[object] | Mapping[str, object]
"""Values for `?` in their order, or for `$name` by name."""

_INK = re.compile(r"\S")
_HINT = "Give values by name, {'zone': 'JFK'} for $zone, or as a list, ['JFK'] for ?."


class StatementValues:
    """The values that are given for the parameters of a statement. Raises InvalidRequest when they do not match."""

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
            raise InvalidRequest("? and names such as $zone do not go together", hint=_HINT)
        self._values = _by_name(given)
        missing = next((word for word in words if self._names[word.start] not in self._values), None)
        if missing is not None:
            raise InvalidRequest(
                "no value is given", place=place_of(text, missing.start), found=missing.text, hint=_HINT
            )
        surplus = self._values.keys() - set(self._names.values())
        if surplus:
            found = ", ".join(f"${name}" for name in sorted(surplus))
            raise InvalidRequest("the statement does not name every value that is given", found=found, hint=_HINT)

    def text(self, piece: Clause) -> str:
        """The piece with `$1` for the first `?` of the statement."""
        return self._rewritten(piece, None, None)

    def of_rows(self, piece: Clause, target: NamedTable, alias: str) -> str:
        """The same of an expression on the table's rows alone: without the table's name before columns."""
        return self._rewritten(piece, (target, alias), None)

    def of_pairs(self, piece: Clause, target: NamedTable, alias: str) -> str:
        """The same of an expression on rows of the table and of another one: the table is called by its alias."""
        return self._rewritten(piece, (target, alias), alias)

    def query(self, piece: Clause, before: str = "") -> str:
        """The piece at its place in the statement, of which all that goes before becomes blanks: what the engine says
        of lines is then right. `before` takes the place of some of them, in the first line if it fits in."""
        blanks = _INK.sub(" ", self._text[: piece.begin])
        if "\n" not in blanks[: len(before)]:
            return f"{before}{blanks[len(before) :]}{self.text(piece)}"
        kept = blanks[: len(blanks) - len(before)]
        lines = "\n" * (blanks.count("\n") - kept.count("\n"))
        return f"{kept}{lines}{before}{self.text(piece)}"

    def used(self, *pieces: Clause | None) -> dict[str, object] | None:
        """The values that pieces name, None for none: engines refuse others."""
        found = {
            name: self._values[name]
            for start, name in self._names.items()
            if any(piece is not None and piece.begin <= start < piece.end for piece in pieces)
        }
        return found or None

    def _rewritten(self, piece: Clause, owner: tuple[NamedTable, str] | None, instead: str | None) -> str:
        pieces: list[str] = []
        done = piece.begin
        words = self._words[bisect_left(self._starts, piece.begin) : bisect_left(self._starts, piece.end)]
        for at, word in enumerate(words):
            if word.start < done:
                continue
            if word.start in self._names:
                pieces += [self._text[done : word.start], f"${self._names[word.start]}"]
                done = word.end + 1
            count = 0 if owner is None else _qualifier(words, at, *owner)
            if count:
                pieces += [self._text[done : word.start], "" if instead is None else f"{quoted(instead)}."]
                done = words[at + count].start
        return "".join((*pieces, self._text[done : piece.end]))


def _qualifier(words: Sequence[Word], at: int, target: NamedTable, alias: str) -> int:
    """How many words `dataset.table.` or `alias.` are that stand here before the name of a column; 0 for none."""
    if at and words[at - 1].token_type is WordType.DOT:
        return 0
    for names in ([target.dataset, target.table], [alias]):
        count = 2 * len(names)
        ahead = words[at : at + count + 1]
        is_named = len(ahead) > count and all(
            is_name(ahead[2 * n]) and ahead[2 * n].text.lower() == name.lower() for n, name in enumerate(names)
        )
        if is_named and all(word.text == "." for word in ahead[1:count:2]) and is_name(ahead[count]):
            return count
    return 0


def _by_name(given: Given | None) -> dict[str, object]:
    if given is None:
        return {}
    if isinstance(given, Mapping):
        found: dict[str, object] = {}
        for name, value in given.items():
            if not isinstance(name, str) or name.lower() in found:
                raise InvalidRequest("the name of a parameter is not text, or is there twice", found=repr(name))
            found[name.lower()] = value
        return found
    return {str(at): value for at, value in enumerate(given, 1)}
