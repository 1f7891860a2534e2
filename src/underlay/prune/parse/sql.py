"""SQL text to predicates, through sqlglot's DuckDB grammar.

Understood: comparisons of one column with one literal, null-safe ones too, IN, BETWEEN, IS NULL, isnan, starts_with,
LIKE and constants, joined by AND, OR and NOT. Everything else is refused by name, or becomes an Opaque part for a
caller who applies it afterwards. A refusal costs the caller an edit; a predicate half understood would cost them rows.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from underlay.errors import BadPredicate
from underlay.prune.parse.sql_condition import read_condition
from underlay.prune.parse.sql_errors import SUPPORTED, unparsed
from underlay.prune.predicates.predicate import And

MAX_TEXT_CHARS = 4_000_000
"""Longer text is refused unread."""


class _WhereSql(DuckDB):
    """DuckDB's grammar with X'0AFF' as bytes and `backticks` around names."""

    class Tokenizer(DuckDB.Tokenizer):
        HEX_STRINGS = [("X'", "'"), ("x'", "'")]  # noqa: RUF012  # sqlglot reads it from the class
        IDENTIFIERS = ['"', "`"]  # noqa: RUF012  # likewise


def parse_where(text: str, *, opaque: bool = False) -> And:
    """The conjunction that `text` states, as it would follow WHERE.

    Raises BadPredicate with the line and column of text that is not SQL, or the part that is not supported. With
    `opaque` such a part becomes an Opaque that names its columns, as small as AND, OR and NOT around it allow.
    """
    try:
        found = read_condition(parse_condition(text), opaque=opaque)
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
    """sqlglot's tree of one condition. Raises BadPredicate."""
    if len(text) > MAX_TEXT_CHARS:
        raise BadPredicate("the predicate is too long", expected=f"{MAX_TEXT_CHARS} characters", found=len(text))
    sql = _WhereSql()
    try:
        tokens = sql.tokenize(text)
        _refuse_hex_numbers(tokens, text)
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
