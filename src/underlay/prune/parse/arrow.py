"""Translates Arrow expressions to predicates: those of users, and those that DuckDB, Polars and Arrow push down.

Only what can be read exactly is translated: an unknown function, literal or shape of arguments becomes an Opaque part,
never an error. So does the whole expression when pyarrow serialises it in an unknown form: every block is kept then,
and Arrow filters the rows.

On floats the predicate follows Spark SQL and DuckDB, where NaN is greatest, not Arrow; the pruner is safe for both.
DuckDB 1.5 pushes every comparison of floats and does not apply it again, so a scan for it must not filter by Arrow's
rules. DuckDB 2.0 pushes only those that no NaN matches. DuckDB 1.5 pushes `c <= NaN` as a bare `true`: the column is
lost, and with it the fact that nulls do not match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from operator import and_
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from underlay.prune.parse.arrow_form import (
    AnyScalar,
    ArrowForm,
    CallNode,
    FieldNode,
    LiteralNode,
    Node,
    UnknownForm,
    columns_below,
)
from underlay.prune.parse.arrow_literal import NotTranslated, family_of, operand_of, operands_of, value_of
from underlay.prune.predicates.operand import ColumnPath
from underlay.prune.predicates.predicate import (
    TRUE,
    And,
    Compare,
    Constant,
    In,
    IsNan,
    IsNotNull,
    IsNull,
    Like,
    Not,
    Op,
    Opaque,
    Or,
    Predicate,
    StartsWith,
    has_opaque,
)
from underlay.runtime.locks import ProcessLock

_OPS = {
    "equal": Op.EQ,
    "not_equal": Op.NE,
    "less": Op.LT,
    "less_equal": Op.LE,
    "greater": Op.GT,
    "greater_equal": Op.GE,
}
_FLIPPED = {Op.EQ: Op.EQ, Op.NE: Op.NE, Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
_AND, _OR = "and_kleene", "or_kleene"
_MAX_KNOWN = 64


class SplitFilter(NamedTuple):
    """A filter is true where both parts are. NaN is the greatest value to `predicate`, as in DuckDB and Polars."""

    predicate: Predicate
    rest: pc.Expression | None


def from_arrow(expression: pc.Expression, schema: pa.Schema) -> Predicate:
    """The predicate of an expression over columns of `schema`; Opaque where it has no counterpart."""
    try:
        form = ArrowForm(expression)
        return _Reader(form, schema).predicate(form.root)
    except (UnknownForm, RecursionError):
        return Opaque(str(expression), tuple((name,) for name in dict.fromkeys(schema.names)))


class _KnownSplit(NamedTuple):
    expression: pc.Expression
    schema: pa.Schema
    found: SplitFilter


_lock = ProcessLock()
_known_splits: dict[str, _KnownSplit] = {}
"""The newest splits by what their filters print, which filters of other values may share."""


def split_filter(expression: pc.Expression, schema: pa.Schema) -> SplitFilter:
    """The filter's conjuncts that can be translated, as one predicate; the others as one expression for Arrow to apply.

    Results are cached: engines send the same filter again and again, and taking one apart costs a quarter of a plan.
    """
    text = str(expression)
    known = _known_splits.get(text)
    if known is not None and known.schema.equals(schema) and _is_same(known.expression, expression):
        return known.found
    found = _split(expression, schema)
    with _lock:
        if len(_known_splits) >= _MAX_KNOWN:
            del _known_splits[next(iter(_known_splits))]
        _known_splits[text] = _KnownSplit(expression, schema, found)
    return found


def _is_same(one: pc.Expression, other: pc.Expression) -> bool:
    return bool(one.equals(other))  # type: ignore[attr-defined]  # not in the stubs


def _split(expression: pc.Expression, schema: pa.Schema) -> SplitFilter:
    try:
        form = ArrowForm(expression)
        reader = _Reader(form, schema)
        parts = [(node, reader.predicate(node)) for node in _conjuncts(form.root)]
    except (UnknownForm, RecursionError):
        return SplitFilter(TRUE, expression)
    known = tuple(predicate for _, predicate in parts if not has_opaque(predicate))
    rest = [form.expression(node) for node, predicate in parts if has_opaque(predicate)]
    predicate = known[0] if len(parts) == len(known) == 1 else And(known) if known else TRUE
    return SplitFilter(predicate, reduce(and_, rest) if rest else None)


def is_true_inside(expression: pc.Expression) -> bool:
    """Whether AND, OR and NOT join a bare `true`: what DuckDB makes of `c <= NaN`, nulls included."""
    try:
        waiting: list[Node] = [ArrowForm(expression).root]
    except UnknownForm:
        return False
    while waiting:
        node = waiting.pop()
        if isinstance(node, LiteralNode) and node.value.is_valid and node.value.as_py() is True:
            return True
        if isinstance(node, CallNode) and node.function in (_AND, _OR, "invert"):
            waiting += node.arguments
    return False


def named_columns(expression: pc.Expression, schema: pa.Schema) -> set[str]:
    """The top-level columns that an expression may need: all of them when it names one by its number."""
    try:
        named = {path[0] for path in columns_below(ArrowForm(expression).root)}
    except UnknownForm:
        return set(schema.names)
    return named.intersection(schema.names)


def _conjuncts(root: Node) -> Iterator[Node]:
    """The parts that AND joins, at any depth, left to right."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, CallNode) and node.function == _AND:
            waiting += reversed(node.arguments)
        else:
            yield node


class _Reader:
    def __init__(self, form: ArrowForm, schema: pa.Schema) -> None:
        self._form = form
        self._schema = schema

    def predicate(self, node: Node) -> Predicate:
        """The predicate of a boolean expression, Opaque where a part is not known."""
        if isinstance(node, CallNode) and node.function in (_AND, _OR):
            parts = tuple(self.predicate(part) for part in node.arguments)
            return And(parts) if node.function == _AND else Or(parts)
        if isinstance(node, CallNode) and node.function == "invert" and len(node.arguments) == 1:
            return Not(self.predicate(node.arguments[0]))
        try:
            return self._leaf(node)
        except NotTranslated:
            named = dict.fromkeys(path[0] for path in columns_below(node))
            columns = tuple((name,) for name in named if name in self._schema.names)
            return Opaque(str(self._form.expression(node)), columns)

    def _leaf(self, node: Node) -> Predicate:
        match node:
            case CallNode():
                return self._call(node)
            case FieldNode():
                column, kind = self._column(node)
                if family_of(kind) == "bool":
                    return Compare(column, Op.EQ, True)
            case LiteralNode(value=value):
                found = value_of(value) if value.is_valid else None
                if found is None or isinstance(found, bool):
                    return Constant(found)
        raise NotTranslated("not a condition")

    def _call(self, call: CallNode) -> Predicate:
        if call.function in _OPS and len(call.arguments) == 2:
            return self._comparison(_OPS[call.function], *call.arguments)
        readers: dict[tuple[str, int], Callable[[CallNode], Predicate]] = {
            ("is_null", 1): self._is_null,
            ("is_valid", 1): lambda one: IsNotNull(self._column(one.arguments[0])[0]),
            ("is_nan", 1): lambda one: IsNan(self._column(one.arguments[0])[0]),
            ("is_in", 1): self._is_in,
            ("starts_with", 1): self._starts_with,
            ("match_like", 1): self._like,
            ("if_else", 3): self._if_else,
        }
        read = readers.get((call.function, len(call.arguments)))
        if read is None:
            raise NotTranslated(f"function {call.function}")
        return read(call)

    def _comparison(self, op: Op, left: Node, right: Node) -> Compare:
        if isinstance(left, LiteralNode):
            left, right, op = right, left, _FLIPPED[op]
        column, kind = self._column(left)
        if not isinstance(right, LiteralNode):
            raise NotTranslated("not a literal")
        return Compare(column, op, operand_of(right.value, kind))

    def _is_null(self, call: CallNode) -> IsNull:
        if _option(call, "nan_is_null").as_py() is not False:
            raise NotTranslated("NaN as null")
        return IsNull(self._column(call.arguments[0])[0])

    def _is_in(self, call: CallNode) -> Predicate:
        column, kind = self._column(call.arguments[0])
        values = _option(call, "value_set")
        if not isinstance(values, pa.ListScalar):
            raise NotTranslated("not a list")
        operands = operands_of(values, kind)
        found = In(column, tuple(one for one in operands if one is not None))
        match _option(call, "null_matching_behavior").as_py():
            case 0 if None in operands:  # MATCH: a null row is in the list when a null is
                return Or((IsNull(column), found))
            case 0 | 1:  # SKIP: a null row is in no list
                return And((IsNotNull(column), found))
            case 2 if found.values:  # EMIT_NULL: a null row is null, and nulls in the list count for nothing
                return found
            case 3 if found.values:  # INCONCLUSIVE: IN as in SQL
                return In(column, operands)
        raise NotTranslated("is_in with unknown nulls")

    def _starts_with(self, call: CallNode) -> StartsWith:
        column, family, prefix = self._pattern(call)
        return StartsWith(column, prefix.encode() if family == "binary" else prefix)

    def _like(self, call: CallNode) -> Like:
        """Arrow always escapes by a backslash; a pattern without one means the same everywhere."""
        column, family, pattern = self._pattern(call)
        if "\\" in pattern or family != "text":
            raise NotTranslated("an escape")
        return Like(column, pattern)

    def _pattern(self, call: CallNode) -> tuple[ColumnPath, str, str]:
        column, kind = self._column(call.arguments[0])
        family, pattern = family_of(kind), _option(call, "pattern")
        text = value_of(pattern) if pattern.is_valid else None
        is_exact = _option(call, "ignore_case").as_py() is False
        if not is_exact or not isinstance(text, str) or family not in ("text", "binary"):
            raise NotTranslated("pattern")
        return column, family, text

    def _if_else(self, call: CallNode) -> Predicate:
        """DuckDB's IN: is_in where the column is valid, else null. The zeros of a list of floats stand beside it."""
        condition, then, other = map(self.predicate, call.arguments)
        if isinstance(condition, IsNotNull) and other == Constant(None):
            return _null_where_null(condition.column, then)
        raise NotTranslated("if_else")

    def _column(self, node: Node) -> tuple[ColumnPath, pa.DataType]:
        """A column and its type. Raises NotTranslated for anything else, and for a name that two columns have."""
        if not isinstance(node, FieldNode) or not node.path:
            raise NotTranslated("not a column")
        kind: pa.DataType = pa.struct(list(self._schema))
        path: ColumnPath = ()
        for name in node.path:
            if not isinstance(kind, pa.StructType):
                raise NotTranslated("not a struct")
            found = kind.get_all_field_indices(name)
            if not found and path:  # DuckDB hands over fields of structs as the query writes them
                found = [at for at, field in enumerate(kind) if field.name.encode().lower() == name.encode().lower()]
            if len(found) != 1:
                raise NotTranslated("not one field of this name")
            path += (kind.field(found[0]).name,)
            kind = kind.field(found[0]).type
        return path, kind


def _option(call: CallNode, name: str) -> AnyScalar:
    if call.options is None or name not in call.options:
        raise NotTranslated(f"no option {name}")
    scalar: AnyScalar = call.options[name]
    return scalar


def _null_where_null(column: ColumnPath, test: Predicate) -> Predicate:
    """A test that is the same where the column is valid, and null where it is null."""
    match test:
        case And((IsNotNull(valid), In(column=listed) as found)) if valid == listed == column and found.values:
            return found
        case Compare(column=compared) | In(column=compared) if compared == column:
            return test
        case Or(parts) if parts:
            return Or(tuple(_null_where_null(column, part) for part in parts))
    raise NotTranslated("if_else")
