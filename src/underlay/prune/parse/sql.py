"""Parses SQL text to predicates, with sqlglot's DuckDB grammar.

Understood: comparisons of one column with one literal, null-safe ones too, IN, BETWEEN, IS NULL, isnan, starts_with,
LIKE and constants, joined by AND, OR and NOT. Everything else is refused by name, or becomes an Opaque part for a
caller who applies it afterwards. A refusal costs the caller an edit; a predicate half understood would cost them rows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from underlay.errors import BadPredicate
from underlay.prune.parse.parameters import NO_PARAMETERS, Parameters, fill
from underlay.prune.parse.sql_condition import read_condition
from underlay.prune.parse.sql_errors import SUPPORTED, unparsed
from underlay.prune.predicates.predicate import And

MAX_TEXT_CHARS = 4_000_000
"""Longer text is refused unread."""
_CACHED_TEXT_CHARS = 10_000
_QUOTED = (TokenType.IDENTIFIER, TokenType.STRING)


class _WhereSql(DuckDB):
    """DuckDB's grammar with X'0AFF' as bytes and `backticks` around names."""

    class Tokenizer(DuckDB.Tokenizer):
        HEX_STRINGS = [("X'", "'"), ("x'", "'")]  # noqa: RUF012  # sqlglot reads it from the class
        IDENTIFIERS = ['"', "`"]  # noqa: RUF012  # likewise
        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: kind for word, kind in DuckDB.Tokenizer.KEYWORDS.items() if kind is not TokenType.COMMAND
        }


def parse_where(text: str, *, opaque: bool = False, parameters: Parameters = NO_PARAMETERS) -> And:
    """The conjunction that `text` states, as it would follow WHERE.

    Raises BadPredicate with the line and column of text that is not SQL, or the part that is not supported. With
    `opaque` such a part becomes an Opaque that names its columns, as small as AND, OR and NOT around it allow.
    """
    try:
        found = read_condition(fill(parse_condition(text), parameters), opaque=opaque)
        return found if isinstance(found, And) else And((found,))
    except RecursionError:
        raise BadPredicate(
            "the predicate is nested too deeply", hint="Take out parentheses and repeated signs."
        ) from None


def tokens_of(text: str) -> list[Token]:
    """The words of a condition. Raises BadPredicate."""
    try:
        return _WhereSql().tokenize(text)
    except TokenError as error:
        raise _not_words(error) from None


def parse_condition(text: str) -> exp.Expr:
    """sqlglot's tree of one condition, which callers must not change. Raises BadPredicate."""
    return _parse_again(text) if len(text) <= _CACHED_TEXT_CHARS else _parse(text)


@lru_cache(maxsize=256)
def _parse_again(text: str) -> exp.Expr:
    return _parse(text)


def _parse(text: str) -> exp.Expr:
    if len(text) > MAX_TEXT_CHARS:
        raise BadPredicate("the predicate is too long", expected=f"{MAX_TEXT_CHARS} characters", found=len(text))
    sql = _WhereSql()
    try:
        tokens = sql.tokenize(text)
        _refuse_hex_numbers(tokens, text)
        tokens = _with_names(tokens)
        roots = sql.parser().parse_into(exp.Condition, tokens, text)
    except ParseError as error:
        raise unparsed(text, error) from None
    except TokenError as error:
        raise _not_words(error) from None
    if len(roots) > 1:
        raise BadPredicate("the predicate goes on after a semicolon", hint="Give one predicate.")
    if not roots or roots[0] is None:
        raise BadPredicate("the predicate is empty", hint=SUPPORTED)
    return roots[0]


def _with_names(tokens: list[Token]) -> list[Token]:
    """The same words, where MAP and IF are names unless they begin a value or a type."""
    after = [*(token.text for token in tokens[1:]), ""]
    return [
        Token(TokenType.IDENTIFIER, one.text, one.line, one.col, one.start, one.end, one.comments)
        if one.token_type not in _QUOTED and one.text.upper() in ("MAP", "IF") and following not in ("(", "{", "[")
        else one
        for one, following in zip(tokens, after, strict=False)
    ]


def _not_words(error: TokenError) -> BadPredicate:
    return BadPredicate(
        "the predicate ends inside quotes or a comment, or holds a character that is not SQL", found=str(error)[:200]
    )


def _refuse_hex_numbers(tokens: list[Token], text: str) -> None:
    """0x10 is a number in DuckDB and bytes in other engines; sqlglot makes it the same token as X'10'."""
    for token in tokens:
        if token.token_type is TokenType.HEX_STRING and text[token.start] == "0":
            raise BadPredicate(
                f"{text[token.start : token.end + 1]} is not supported here",
                place=f"line {token.line}, column {token.col}",
                hint="Write a number in decimal digits, or bytes as X'0AFF'.",
            )
