"""Goes through the words of a statement once, and cuts its clauses out of the text as they were written.

Expressions are never rewritten: the engine evaluates what the statement says, and every error can give the position of
its cause.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from underlay.errors import InvalidRequest
from underlay.local.text.time_travel import is_name, travel_end
from underlay.local.text.words import WordType, words_of

_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
_NAMED = "Write dataset.table, such as taxi.trips."


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a statement, from its first to its last character."""

    statement: str
    begin: int
    end: int

    @property
    def text(self) -> str:
        """The text as written."""
        return self.statement[self.begin : self.end]

    @property
    def place(self) -> str:
        """The position where it begins."""
        return place_of(self.statement, self.begin)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenName:
    """A name without its quotes, the names of fields after it, as in `pos.x`, and its position."""

    name: str
    piece: Clause
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTable:
    """A table as the statement names it."""

    dataset: str
    table: str
    piece: Clause

    @property
    def name(self) -> str:
        """`dataset.table`."""
        return f"{self.dataset}.{self.table}"


def place_of(text: str, at: int) -> str:
    """Line and column of a character, both counted from 1."""
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"


class StatementReader:
    """Reads the words of one statement, one after the other. Raises InvalidRequest with the position of the error."""

    def __init__(self, text: str) -> None:
        words = words_of(text)
        while words and words[-1].token_type is WordType.SEMICOLON:
            words.pop()
        if any(word.token_type is WordType.SEMICOLON for word in words):
            raise InvalidRequest("more than one statement", hint="Run one statement at a time.")
        self.text = text
        self._words = words
        self._at = 0

    @property
    def is_done(self) -> bool:
        """Whether no word is left."""
        return self._at >= len(self._words)

    def next_word(self, ahead: int = 0) -> str:
        """The next keyword or sign, in upper case; empty for a text, a quoted name, or at the end."""
        at = self._at + ahead
        if at >= len(self._words) or self._words[at].token_type not in (WordType.VAR, *_SIGNS):
            return ""
        return self._words[at].text.upper()

    def take(self, *words: str) -> bool:
        """Skip these words if they are next. Returns whether they were."""
        is_next = all(self.next_word(ahead) == word for ahead, word in enumerate(words))
        self._at += len(words) if is_next else 0
        return is_next

    def take_one(self, *words: str) -> str | None:
        """Skip one of these words if it is next, and return it."""
        return next((word for word in words if self.take(word)), None)

    def expect(self, *words: str) -> None:
        """Skip these words. Raises InvalidRequest when others are next."""
        for word in words:
            if not self.take(word):
                raise self.refuse(" ".join(words))

    def expect_end(self) -> None:
        """Raise InvalidRequest when there is more."""
        if not self.is_done:
            raise self.refuse("the end of the statement")

    def name(self, what: str = "a name") -> WrittenName:
        """A name, in quotes or without."""
        if self.is_done or not is_name(self._words[self._at]):
            raise self.refuse(what)
        word = self._words[self._at]
        self._at += 1
        return WrittenName(name=word.text, piece=Clause(self.text, word.start, word.end + 1))

    def path(self, what: str) -> WrittenName:
        """A name, and those of fields after it."""
        begin, first, fields = self._at, self.name(what), []
        while self.take("."):
            fields.append(self.name("the name of a field").name)
        return WrittenName(name=first.name, piece=self.piece_from(begin), fields=tuple(fields))

    def string(self, what: str) -> str:
        """A text in single quotes."""
        if self.is_done or self._words[self._at].token_type is not WordType.STRING:
            raise self.refuse(what)
        self._at += 1
        return self._words[self._at - 1].text

    def table(self, *, is_target: bool = True) -> NamedTable:
        """`dataset.table`. A version is refused for the table that is changed."""
        dataset = self.name("a table, named with its dataset")
        if not self.take("."):
            raise InvalidRequest(
                "a table is named with its dataset", place=dataset.piece.place, found=dataset.name, hint=_NAMED
            )
        table = self.name("the name of a table")
        if self.next_word() == ".":
            raise self.refuse("a name of two parts")
        piece = Clause(self.text, dataset.piece.begin, table.piece.end)
        if is_target and travel_end(self._words, self._at) is not None:
            raise InvalidRequest(
                "a version never changes",
                place=self._place(),
                found=f"{piece.text} {self._words[self._at].text.upper()}",
                hint="Leave out the version: the newest is changed.",
            )
        return NamedTable(dataset=dataset.name, table=table.name, piece=piece)

    def take_version(self) -> None:
        """Skip VERSION AS OF and the like, if they are next."""
        self._at = travel_end(self._words, self._at) or self._at

    def alias(self, stops: Collection[str]) -> str | None:
        """`AS x` or `x`, if it is next."""
        if self.take("AS"):
            return self.name("an alias").name
        if self.is_done or self.next_word() in stops or not is_name(self._words[self._at]):
            return None
        return self.name().name

    def names(self) -> tuple[WrittenName, ...]:
        """`(a, b)`."""
        self.expect("(")
        found = [self.name("the name of a column")]
        while self.take(","):
            found.append(self.name("the name of a column"))
        self.expect(")")
        return tuple(found)

    def expression(self, what: str, stops: Collection[str] = ()) -> Clause:
        """Everything up to one of these words outside of parentheses and CASE, or up to the end."""
        begin, depth = self._at, 0
        while not self.is_done:
            word = self.next_word()
            before = self.next_word(-1) if self._at > begin else ""
            if depth == 0 and (word in _CLOSING or (word in stops and not (word == "FROM" and before == "DISTINCT"))):
                break
            depth += (word in _OPENING or word == "CASE") - (word in _CLOSING or word == "END")
            self._at += 1
        if self._at == begin:
            raise self.refuse(what)
        return Clause(self.text, self._words[begin].start, self._words[self._at - 1].end + 1)

    def parenthesised(self, what: str) -> Clause:
        """The text in the parentheses that come next."""
        self.expect("(")
        found = self.expression(what)
        self.expect(")")
        return found

    def items(self, what: str) -> tuple[Clause, ...]:
        """`(a, b)`, each item as written."""
        self.expect("(")
        found = [self.expression(what, (",",))]
        while self.take(","):
            found.append(self.expression(what, (",",)))
        self.expect(")")
        return tuple(found)

    def rest(self, what: str) -> Clause:
        """The rest."""
        begin = self._at
        self._at = len(self._words)
        if begin == self._at:
            raise self.refuse(what)
        return Clause(self.text, self._words[begin].start, self._words[-1].end + 1)

    def mark(self) -> int:
        """The current position, to go back to."""
        return self._at

    def go_back(self, mark: int) -> None:
        """Go back to a marked position."""
        self._at = mark

    def piece_from(self, mark: int) -> Clause:
        """The text from a mark up to the current position."""
        return Clause(self.text, self._words[mark].start, self._words[self._at - 1].end + 1)

    def refuse(self, expected: str, hint: str | None = None) -> InvalidRequest:
        """The error that the next word is not what was expected."""
        if self.is_done:
            return InvalidRequest("the statement ends too early", place=self._place(), expected=expected, hint=hint)
        word = self._words[self._at]
        found = self.text[word.start : word.end + 1]
        return InvalidRequest(
            "not SQL that is understood", place=self._place(), expected=expected, found=found, hint=hint
        )

    def unsupported(self, problem: str, hint: str) -> InvalidRequest:
        """The error that the next word begins something unsupported."""
        word = self._words[self._at]
        return InvalidRequest(problem, place=self._place(), found=self.text[word.start : word.end + 1], hint=hint)

    def find_outside(self, *sequences: tuple[str, ...]) -> tuple[int, str] | None:
        """The first of these words from here on that is outside of parentheses: its position, and which word it is."""
        depth = 0
        for ahead in range(len(self._words) - self._at):
            word = self.next_word(ahead)
            depth += (word in _OPENING) - (word in _CLOSING)
            for sequence in sequences if depth == 0 else ():
                if all(self.next_word(ahead + at) == one for at, one in enumerate(sequence)):
                    return self._words[self._at + ahead].start, " ".join(sequence)
        return None

    def _place(self) -> str:
        if self.is_done:
            return place_of(self.text, self._words[-1].end + 1 if self._words else 0)
        return place_of(self.text, self._words[self._at].start)


_SIGNS = (WordType.SIGN, WordType.DOT, WordType.L_PAREN, WordType.R_PAREN, WordType.HASH)
