"""Rewrites SQL that names older versions of tables for an engine without such a clause.

    FROM taxi.trips VERSION AS OF 7                    FROM taxi.trips FOR VERSION AS OF 7 AS old
    FROM taxi.trips TIMESTAMP AS OF '2026-01-01'       FROM taxi.trips FOR TIMESTAMP AS OF TIMESTAMP '2026-01-01'
    FROM taxi.trips VERSION AS OF 'audit'              the version with the tag audit
    FROM taxi.trips AT (VERSION => 7)                  FROM taxi.trips AT (TIMESTAMP => '2026-01-01 12:00+01:00')

The clause becomes blanks and the dataset's name a schema's that stands for the version: "taxi@7".trips. All other
text stays as it is. A time without a zone is UTC.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

from underlay.errors import InvalidRequest
from underlay.local.text.words import Word, WordType, words_of
from underlay.runtime.locks import cached_property

_TEXT = (WordType.STRING, WordType.NATIONAL_STRING)
_NOT_NAMES = frozenset(("STRING", "NATIONAL_STRING", "NUMBER", "HEREDOC_STRING", "BYTE_STRING", "RAW_STRING"))
_NOT_WORDS = frozenset((*_TEXT, WordType.NUMBER, WordType.HEREDOC_STRING, WordType.BYTE_STRING, WordType.IDENTIFIER))
_OPENINGS = (("FOR", "{}", "AS", "OF"), ("{}", "AS", "OF"), ("AT", "(", "{}", "=>"))
_FIRST_WORDS = ("FOR", "VERSION", "TIMESTAMP", "AT")
_TYPES = ("TIMESTAMP", "TIMESTAMPTZ", "DATE")
_HEX = re.compile("\\b[xX]'")
_HEX_PAIRS = re.compile(r"(?:[0-9A-Fa-f]{2})*", re.ASCII)
_HINT = "Write dataset.table VERSION AS OF 7, or dataset.table TIMESTAMP AS OF '2026-01-01 12:00'."


class Named(Protocol):
    """A type of a word, by its name."""

    @property
    def name(self) -> str:
        """Such as STRING."""


class Token(Protocol):
    """A word: our own of a query, or sqlglot's of a condition."""

    @property
    def token_type(self) -> Named:
        """The type of the word."""

    @property
    def text(self) -> str:
        """The word without quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Travel:
    """A version of a table that a query names: by number or tag, or as of a moment. `schema` stands for the dataset."""

    schema: str
    dataset: str
    table: str
    version: int | str | None
    as_of: datetime | None


@dataclass(frozen=True, kw_only=True)
class Rewritten:
    """The text for the engine, its words, and the versions that it names, each once. Kept, for the next time."""

    text: str
    tokens: tuple[Word, ...]
    travels: tuple[Travel, ...]

    @cached_property
    def words(self) -> frozenset[str]:
        """Its words in lower case."""
        return frozenset(token.text.lower() for token in self.tokens)

    @cached_property
    def pairs(self) -> tuple[str, ...]:
        """Every `a.b`: tables, and columns of tables."""
        return tuple(f"{dataset}.{table}" for dataset, table in dotted_names(self.tokens))

    @cached_property
    def folded_pairs(self) -> frozenset[str]:
        """The same in lower case."""
        return frozenset(map(str.lower, self.pairs))


@dataclass(frozen=True, slots=True)
class _Clause:
    begin: int
    """The first token."""
    end: int
    version: int | str | None
    as_of: datetime | None


@lru_cache(maxsize=256)
def rewrite_time_travel(text: str) -> Rewritten:
    """The text without version clauses, and with X'0AFF' as bytes. Raises InvalidRequest for a clause that cannot be
    parsed.
    """
    text = _with_bytes(text)
    tokens = words_of(text)
    words = [_word(token) for token in tokens]
    travels: dict[Travel, None] = {}
    pieces: list[str] = []
    done = 0
    for at, word in enumerate(words):
        is_free = tokens[at].start >= done
        clause = _clause(tokens, words, at) if is_free and word in _FIRST_WORDS else None
        if clause is None:
            continue
        dataset, table = _named(tokens, at)
        moment = clause.version if clause.as_of is None else clause.as_of.isoformat()
        schema = f"{dataset.text}@{moment}"
        travel = Travel(
            schema=schema, dataset=dataset.text, table=table.text, version=clause.version, as_of=clause.as_of
        )
        travels[travel] = None
        pieces += [text[done : dataset.start], quoted(schema), text[dataset.end + 1 : tokens[at].start]]
        done = tokens[clause.end - 1].end + 1
        pieces.append(re.sub(r"\S", " ", text[tokens[at].start : done]))
    if not travels:
        return Rewritten(text=text, tokens=tuple(tokens), travels=())
    changed = "".join([*pieces, text[done:]])
    return Rewritten(text=changed, tokens=tuple(words_of(changed)), travels=tuple(travels))


def _with_bytes(text: str) -> str:
    """The text with X'0AFF' as a call that returns the bytes: DuckDB would read it as the text 'x0AFF'."""
    if _HEX.search(text) is None:
        return text
    pieces: list[str] = []
    done = 0
    for word in words_of(text):
        if word.token_type is not WordType.BYTE_STRING or text[word.start] not in "xX":
            continue
        if not _HEX_PAIRS.fullmatch(word.text):
            raise InvalidRequest("not pairs of hexadecimal digits", found=f"X'{word.text}'")
        pieces += [text[done : word.start], f"from_hex('{word.text}')"]
        done = word.end + 1
    return "".join((*pieces, text[done:]))


def dotted_names(tokens: Sequence[Word]) -> list[tuple[str, str]]:
    """Every `a.b` in the text: tables, and columns of tables."""
    return [
        (tokens[at - 1].text, tokens[at + 1].text)
        for at in range(1, len(tokens) - 1)
        if tokens[at].token_type == WordType.DOT and is_name(tokens[at - 1]) and is_name(tokens[at + 1])
    ]


def is_name(token: Token) -> bool:
    """Whether a token may be a name: quoted, plain, or a keyword that DuckDB accepts as one."""
    kind = token.token_type.name
    return kind == "IDENTIFIER" or (kind not in _NOT_NAMES and (token.text[:1].isalnum() or token.text[:1] == "_"))


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _word(token: Word) -> str:
    """A keyword or sign; empty for text and quoted names."""
    return "" if token.token_type in _NOT_WORDS else token.text.upper()


def travel_end(tokens: Sequence[Word], at: int) -> int | None:
    """The position after a version clause that begins here; None when none does. Raises InvalidRequest."""
    words = [_word(token) for token in tokens]
    clause = _clause(tokens, words, at) if at < len(words) and words[at] in _FIRST_WORDS else None
    return None if clause is None else clause.end


def _clause(tokens: Sequence[Word], words: Sequence[str], at: int) -> _Clause | None:
    for opening in _OPENINGS:
        for kind in ("VERSION", "TIMESTAMP"):
            begin = at + len(opening)
            if tuple(words[at:begin]) != tuple(word.format(kind) for word in opening):
                continue
            version, as_of, end = _operand(tokens, words, begin, kind)
            if opening[0] == "AT":
                if words[end : end + 1] != [")"]:
                    raise InvalidRequest("a version is not closed", expected=")", hint=_HINT)
                end += 1
            return _Clause(at, end, version, as_of)
    return None


def _operand(
    tokens: Sequence[Word], words: Sequence[str], at: int, kind: str
) -> tuple[int | str | None, datetime | None, int]:
    if kind == "TIMESTAMP" and at < len(words) and words[at] in _TYPES:
        at += 1
    token = tokens[at] if at < len(tokens) else None
    found = None if token is None else token.text
    if token is not None and kind == "VERSION" and token.text.isascii() and token.text.isdecimal():
        return int(token.text), None, at + 1
    if token is not None and kind == "VERSION" and token.token_type in _TEXT:
        return token.text, None, at + 1
    if token is not None and kind == "TIMESTAMP" and token.token_type in _TEXT:
        return None, _moment(token.text), at + 1
    expected = "a number, or a tag in quotes" if kind == "VERSION" else "a time in quotes"
    raise InvalidRequest(f"{kind} AS OF needs {expected}", found=found, hint=_HINT)


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InvalidRequest("not a time", found=repr(text), hint="Write it as 2026-01-31 12:00:00+01:00.") from error
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _named(tokens: Sequence[Word], at: int) -> tuple[Word, Word]:
    """The name before a clause."""
    if at >= 3 and tokens[at - 2].token_type == WordType.DOT and is_name(tokens[at - 3]) and is_name(tokens[at - 1]):
        return tokens[at - 3], tokens[at - 1]
    found = tokens[at - 1].text if at else None
    raise InvalidRequest("a version is of a table, named with its dataset", found=found, hint=_HINT)
