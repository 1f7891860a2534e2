"""SQL text to predicates, through sqlglot's DuckDB grammar.

Read: comparisons of one column with one literal, IN, BETWEEN, IS [NOT] NULL, joined by AND. Everything else
is refused by name. A refusal costs the caller an edit; a predicate half understood would cost them rows.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from underlay.errors import BadPredicate
from underlay.prune.literal import read_literal
from underlay.prune.predicate import And, Between, ColumnPath, Compare, In, IsNotNull, IsNull, Op, Predicate
from underlay.prune.refusal import SUPPORTED, refuse, unparsed

MAX_TEXT_CHARS = 4_000_000
"""Longer text is refused unread."""

_OPS: dict[type[exp.Expr], Op] = {
    exp.EQ: Op.EQ,
    exp.LT: Op.LT,
    exp.LTE: Op.LE,
    exp.GT: Op.GT,
    exp.GTE: Op.GE,
}
_FLIPPED = {Op.EQ: Op.EQ, Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}


class _WhereSql(DuckDB):
    """DuckDB's grammar with X'0AFF' as bytes."""

    class Tokenizer(DuckDB.Tokenizer):
        HEX_STRINGS = [("X'", "'"), ("x'", "'")]  # noqa: RUF012  # sqlglot reads it from the class


def parse_where(text: str) -> And:
    """The conjunction that `text` states, as it would follow WHERE.

    Raises BadPredicate with the line and column of text that is no SQL, or the part that is not supported.
    """
    try:
        return And(tuple(_parse_part(node) for node in _conjuncts(_parse(text))))
    except RecursionError:
        raise BadPredicate(
            "the predicate is nested too deeply", hint="Take out parentheses and repeated signs."
        ) from None


def _parse(text: str) -> exp.Expr:
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
        raise BadPredicate(
            "the predicate ends inside quotes or a comment, or holds a character that is no SQL",
            found=str(error)[:200],
        ) from None
    if len(roots) > 1:
        raise BadPredicate("the predicate goes on after a semicolon", hint="Give one predicate.")
    if not roots or roots[0] is None:
        raise BadPredicate("the predicate is empty", hint=SUPPORTED)
    return roots[0]


def _refuse_hex_numbers(tokens: list[Token], text: str) -> None:
    """0x10 is a number in DuckDB and bytes in other engines; sqlglot makes it the same token as X'10'."""
    for token in tokens:
        if token.token_type is TokenType.HEX_STRING and text[token.start] == "0":
            raise BadPredicate(
                f"{text[token.start : token.end + 1]} is not supported here",
                place=f"line {token.line}, column {token.col}",
                hint="Write a number in decimal digits, or bytes as X'0AFF'.",
            )


def _conjuncts(root: exp.Expr) -> list[exp.Expr]:
    """The operands of AND at any depth, left to right. A loop: a chain of ANDs is as deep as it is long."""
    found, waiting = [], [root]
    while waiting:
        node = _bare(waiting.pop())
        if isinstance(node, exp.And):
            waiting += [node.expression, node.this]
        else:
            found.append(node)
    return found


def _parse_part(node: exp.Expr) -> Predicate:
    op = _OPS.get(type(node))
    if op is not None:
        return _parse_comparison(node, op)
    match node:
        case exp.In():
            return _parse_in(node)
        case exp.Between():
            return _parse_between(node)
        case exp.Is():
            return IsNull(_column_of_null_test(node))
        case exp.Not():
            inner = _bare(node.this)
            if isinstance(inner, exp.Is):
                return IsNotNull(_column_of_null_test(inner))
    raise refuse(node)


def _parse_comparison(node: exp.Expr, op: Op) -> Compare:
    left, right = _bare(node.this), _bare(node.expression)
    column = _column(left)
    if column is not None:
        return Compare(column, op, read_literal(right, node))
    column = _column(right)
    if column is None:
        raise refuse(node)
    return Compare(column, _FLIPPED[op], read_literal(left, node))


def _parse_in(node: exp.In) -> In:
    if any(node.args.get(other) for other in ("query", "unnest", "field")) or not node.expressions:
        raise refuse(node)
    values = tuple(read_literal(_bare(item), node) for item in node.expressions)
    return In(_required_column(node), values)


def _parse_between(node: exp.Between) -> Between:
    if node.args.get("symmetric"):
        raise refuse(node)
    low, high = _bare(node.args["low"]), _bare(node.args["high"])
    return Between(_required_column(node), read_literal(low, node), read_literal(high, node))


def _column_of_null_test(node: exp.Is) -> ColumnPath:
    if not isinstance(_bare(node.expression), exp.Null):
        raise refuse(node)
    return _required_column(node)


def _required_column(node: exp.Expr) -> ColumnPath:
    column = _column(_bare(node.this))
    if column is None:
        raise refuse(node)
    return column


def _column(node: exp.Expr) -> ColumnPath | None:
    """The path of a bare column; None for anything that computes."""
    steps: list[str] = []
    while isinstance(node, exp.Dot):
        if not isinstance(node.expression, exp.Identifier):
            return None
        steps.insert(0, node.expression.name)
        node = node.this
    if not isinstance(node, exp.Column) or not all(isinstance(part, exp.Identifier) for part in node.parts):
        return None
    return (*(part.name for part in node.parts), *steps)


def _bare(node: exp.Expr) -> exp.Expr:
    """The node inside any parentheses."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node
