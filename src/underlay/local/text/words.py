"""Splits SQL into words like DuckDB's lexer: names, texts, numbers and signs, without comments.

We have our own, since a SQL parser takes longer to import than DuckDB takes to start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from underlay.errors import InvalidRequest


class WordType(Enum):
    """The type of a word. The names are those of sqlglot's tokens, so that functions accept either."""

    VAR = "a name or keyword"
    IDENTIFIER = "a name in double quotes"
    STRING = "a text"
    NATIONAL_STRING = "a text N'…'"
    BYTE_STRING = "a text with escapes or of bytes: E'…', X'…', B'…', U&'…'"
    HEREDOC_STRING = "a text between $$"
    NUMBER = "a number"
    PARAMETER = "?, $1 or $name"
    DOT = "."
    SEMICOLON = ";"
    L_PAREN = "("
    R_PAREN = ")"
    HASH = "#"
    SIGN = "any other sign"


class Word(NamedTuple):
    """A word: its type, its text, and the positions of its first and last characters."""

    token_type: WordType
    text: str
    start: int
    end: int


_BLANKS = r"\t\n\f\r \xa0\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff"
"""DuckDB's blanks, which differ from Python's: a zero-width blank must not make one name look like another."""
_FIRST = rf"[^{_BLANKS}\x00-@\[-^`{{-\x7f]"
"""A letter, an underscore, or any character beyond ASCII except blanks. Written as a negated set, which compiles
fast."""
_NEXT = rf"[^{_BLANKS}\x00-#%-/:-@\[-^`{{-\x7f]"
_NAME = f"{_FIRST}{_NEXT}*"
_TAG = rf"\$(?:{_FIRST}[^{_BLANKS}\x00-/:-@\[-^`{{-\x7f]*)?\$"
_WORD = re.compile(
    rf"""
    (?P<blank>[{_BLANKS}]+|--[^\n\r]*)
    |(?P<comment>/\*)
    |(?P<prefix>[eE]|[xXbBnN]|[uU]&)?(?P<quote>')
    |(?P<name>")
    |(?P<heredoc>{_TAG})
    |(?P<parameter>\$(?:[0-9]+|{_NAME})|\?[0-9]*)
    |(?P<word>{_NAME})
    |(?P<number>0[xX][0-9a-fA-F_]+|0[bB][01_]+|(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]+)?)
    |(?P<sign>=>|->>?|::|:=|<=|>=|<>|!=|==|\|\||.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK = re.compile(r"/\*|\*/")
_ESCAPED_END = re.compile(r"(?:[^'\\]|\\.|'')*'", re.DOTALL)
_SIGNS = {one.value: one for one in (WordType.DOT, WordType.SEMICOLON, WordType.L_PAREN, WordType.R_PAREN)} | {
    "#": WordType.HASH
}


def words_of(text: str) -> list[Word]:
    """The words of the text. Raises InvalidRequest for a text, a quoted name or a comment that is not closed."""
    return list(_words(text))


def _words(text: str) -> Iterator[Word]:
    at = 0
    while at < len(text):
        found = _WORD.match(text, at)
        assert found is not None, "a sign is any character"
        begin, at = at, found.end()
        kind = found.lastgroup
        if kind == "comment":
            at = _after_comment(text, begin)
        elif kind == "quote":
            yield (word := _quoted_text(text, begin, found))
            at = word.end + 1
        elif kind == "name":
            at = _after_quotes(text, found.end(), '"')
            yield Word(WordType.IDENTIFIER, text[begin + 1 : at - 1].replace('""', '"'), begin, at - 1)
        elif kind == "heredoc":
            end = text.find(found[0], found.end())
            if end < 0:
                raise _not_closed(f"a text that begins with {found[0]}", text, begin)
            at = end + len(found[0])
            yield Word(WordType.HEREDOC_STRING, text[found.end() : end], begin, at - 1)
        elif kind != "blank":
            yield _plain(kind, found[0], begin, at - 1)


def _plain(kind: str | None, text: str, begin: int, end: int) -> Word:
    if kind == "word":
        return Word(WordType.VAR, text, begin, end)
    if kind == "parameter":
        return Word(WordType.PARAMETER, text, begin, end)
    if kind == "number":
        bare = text.replace("_", "")
        is_based = bare[:2].lower() in ("0x", "0b") and len(bare) > 2
        return Word(WordType.NUMBER, str(int(bare, 0)) if is_based else bare, begin, end)
    return Word(_SIGNS.get(text, WordType.SIGN), text, begin, end)


def _quoted_text(text: str, begin: int, found: re.Match[str]) -> Word:
    prefix = (found["prefix"] or "").lower()
    if prefix == "e":
        end = _ESCAPED_END.match(text, found.end())
        if end is None:
            raise _not_closed("a text", text, begin)
        return Word(WordType.BYTE_STRING, end[0][:-1], begin, end.end() - 1)
    after = _after_quotes(text, found.end(), "'")
    kinds = {"": WordType.STRING, "n": WordType.NATIONAL_STRING}
    content = text[found.end() : after - 1].replace("''", "'")
    return Word(kinds.get(prefix, WordType.BYTE_STRING), content, begin, after - 1)


def _after_quotes(text: str, at: int, quote: str) -> int:
    """The position after the closing quote; a doubled quote inside is an escaped one."""
    begin = at - 1
    while (at := text.find(quote, at)) >= 0:
        if text[at + 1 : at + 2] != quote:
            return at + 1
        at += 2
    raise _not_closed("a text" if quote == "'" else "a name in quotes", text, begin)


def _after_comment(text: str, begin: int) -> int:
    """The position after a comment. Comments may be nested."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, begin):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise _not_closed("a comment", text, begin)


def _not_closed(what: str, text: str, begin: int) -> InvalidRequest:
    line = text.count("\n", 0, begin) + 1
    return InvalidRequest(f"not SQL: {what} is not closed", found=f"{text[begin : begin + 20]!r} in line {line}")


def split_statements(text: str) -> list[str]:
    """The statements between semicolons, without those that contain only comments."""
    statements, begin, has_words = [], 0, False
    for word in words_of(text):
        if word.token_type is not WordType.SEMICOLON:
            has_words = True
            continue
        if has_words:
            statements.append(text[begin : word.start].strip())
        begin, has_words = word.end + 1, False
    return [*statements, text[begin:].strip()] if has_words else statements


def ends_statement(text: str) -> bool:
    """Whether the typed text ends at the end of a statement, not inside a text or comment."""
    try:
        words = words_of(text)
    except InvalidRequest:
        return False
    return bool(words) and words[-1].token_type is WordType.SEMICOLON
