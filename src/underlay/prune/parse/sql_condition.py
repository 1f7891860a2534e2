"""Translates sqlglot's tree of a condition to a predicate."""

from __future__ import annotations

from sqlglot import exp

from underlay.errors import BadPredicate
from underlay.prune.parse.sql_errors import refuse
from underlay.prune.parse.sql_literal import read_literal
from underlay.prune.predicates.like import check_like
from underlay.prune.predicates.operand import ColumnPath, Operand
from underlay.prune.predicates.predicate import (
    And,
    Between,
    Compare,
    Constant,
    In,
    IsDistinct,
    IsNan,
    IsNotDistinct,
    IsNotNan,
    IsNotNull,
    IsNull,
    Like,
    Not,
    NotIn,
    Op,
    Opaque,
    Or,
    Predicate,
    StartsWith,
)

_OPS: dict[type[exp.Expr], Op] = {
    exp.EQ: Op.EQ,
    exp.NEQ: Op.NE,
    exp.LT: Op.LT,
    exp.LTE: Op.LE,
    exp.GT: Op.GT,
    exp.GTE: Op.GE,
}
_FLIPPED = {Op.EQ: Op.EQ, Op.NE: Op.NE, Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}


def read_condition(node: exp.Expr, *, opaque: bool) -> Predicate:
    """The predicate of a node. What is not supported raises BadPredicate, or is Opaque when the caller takes that."""
    node = _bare(node)
    if isinstance(node, exp.And):
        return And(tuple(read_condition(part, opaque=opaque) for part in _operands(node, exp.And)))
    if isinstance(node, exp.Or):
        return Or(tuple(read_condition(part, opaque=opaque) for part in _operands(node, exp.Or)))
    if isinstance(node, exp.Not):
        return _negated(read_condition(node.this, opaque=opaque))
    try:
        return _read_leaf(node)
    except BadPredicate:
        if not opaque:
            raise
        return Opaque(node.sql(dialect="duckdb"), _columns_in(node))


def _operands(root: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The operands of AND or OR at any depth, left to right. A loop: a chain of them is as deep as it is long."""
    found, waiting = [], [root]
    while waiting:
        node = _bare(waiting.pop())
        if isinstance(node, kind):
            waiting += [node.expression, node.this]
        else:
            found.append(node)
    return found


def _negated(part: Predicate) -> Predicate:
    """NOT above a leaf as the leaf that SQL has for it."""
    match part:
        case In(column, values):
            return NotIn(column, values)
        case IsNull(column):
            return IsNotNull(column)
        case IsNan(column):
            return IsNotNan(column)
        case _:
            return Not(part)


def _read_leaf(node: exp.Expr) -> Predicate:
    op = _OPS.get(type(node))
    if op is not None:
        column, value, is_flipped = _read_sides(node)
        return Compare(column, _FLIPPED[op] if is_flipped else op, value)
    match node:
        case exp.NullSafeEQ():
            return IsNotDistinct(*_read_sides(node)[:2])
        case exp.NullSafeNEQ():
            return IsDistinct(*_read_sides(node)[:2])
        case exp.In():
            return _read_in(node)
        case exp.Between():
            return _read_between(node)
        case exp.Is():
            return _read_is(node)
        case exp.IsNan():
            return IsNan(_required_column(node))
        case exp.StartsWith():
            return StartsWith(_required_column(node), _read_prefix(node))
        case exp.Like() | exp.Escape():
            return _read_like(node)
        case exp.Boolean():
            return Constant(bool(node.this))
        case exp.Null():
            return Constant(None)
    bare = _column(node)
    if bare is None:
        raise refuse(node)
    return Compare(bare, Op.EQ, True)


def _read_sides(node: exp.Expr) -> tuple[ColumnPath, Operand, bool]:
    """The column and the literal of a comparison, and whether their order is reversed."""
    left, right = _bare(node.this), _bare(node.expression)
    column = _column(left)
    if column is not None:
        return column, read_literal(right, node), False
    column = _column(right)
    if column is None:
        raise refuse(node)
    return column, read_literal(left, node), True


def _read_in(node: exp.In) -> In:
    if any(node.args.get(other) for other in ("query", "unnest", "field")) or not node.expressions:
        raise refuse(node)
    values = tuple(read_literal(_bare(item), node) for item in node.expressions)
    return In(_required_column(node), values)


def _read_between(node: exp.Between) -> Between:
    if node.args.get("symmetric"):
        raise refuse(node)
    low, high = _bare(node.args["low"]), _bare(node.args["high"])
    return Between(_required_column(node), read_literal(low, node), read_literal(high, node))


def _read_is(node: exp.Is) -> Predicate:
    match _bare(node.expression):
        case exp.Null():
            return IsNull(_required_column(node))
        case exp.Boolean() as truth:
            return IsNotDistinct(_required_column(node), bool(truth.this))
    raise refuse(node)


def _read_like(node: exp.Like | exp.Escape) -> Predicate:
    """LIKE, with or without ESCAPE. sqlglot keeps the NOT of NOT LIKE ... ESCAPE inside the node."""
    like = _bare(node.this) if isinstance(node, exp.Escape) else node
    if not isinstance(like, exp.Like):
        raise refuse(node)
    escape = _read_text(node.expression, node) if isinstance(node, exp.Escape) else None
    found = check_like(Like(_required_column(like), _read_text(like.expression, node), escape))
    return Not(found) if like.args.get("negate") else found


def _read_prefix(node: exp.StartsWith) -> str | bytes:
    value = read_literal(_bare(node.expression), node)
    return value if isinstance(value, bytes) else _read_text(node.expression, node)


def _read_text(node: exp.Expr, within: exp.Expr) -> str:
    value = read_literal(_bare(node), within)
    if not isinstance(value, str):
        raise refuse(within, "not a test of one column with text")
    return value


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


def _columns_in(node: exp.Expr) -> tuple[ColumnPath, ...]:
    """Every column below a node, by its whole path, in order and once."""
    found: dict[ColumnPath, None] = {}
    for column in node.find_all(exp.Column, bfs=False):
        whole: exp.Expr = column
        while isinstance(whole.parent, exp.Dot) and whole.parent.this is whole and _column(whole.parent):
            whole = whole.parent
        path = _column(whole)
        if path is not None:
            found[path] = None
    return tuple(found)


def _bare(node: exp.Expr) -> exp.Expr:
    """The node inside any parentheses."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node
