"""Translates Catalyst's filters into a predicate for the planner.

An expression comes as JSON in one round trip. What cannot be translated is Opaque, and keeps every block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex

from underlay.prune import TRUE, Predicate
from underlay.prune.predicates.operand import ColumnPath, Operand
from underlay.prune.predicates.predicate import (
    And,
    Compare,
    Constant,
    In,
    IsNan,
    IsNotDistinct,
    IsNotNull,
    IsNull,
    Not,
    Op,
    Opaque,
    Or,
    StartsWith,
)
from underlay.spark.filters.catalyst_tree import (
    ASKED_FOR,
    CatalystTree,
    Unknown,
    column_and_type,
    exact_value,
    read_moment,
    read_value,
    try_parse,
)
from underlay.spark.jvm.gateway import Gateway, JavaObject, call, call_number, call_text, try_text

_COMPARISONS = {
    "EqualTo": Op.EQ,
    "LessThan": Op.LT,
    "LessThanOrEqual": Op.LE,
    "GreaterThan": Op.GT,
    "GreaterThanOrEqual": Op.GE,
}
_MIRRORED = {Op.EQ: Op.EQ, Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}

Ask = Callable[[int], JavaObject]
"""Returns the expression at a position."""
Names = Mapping[ColumnPath, ColumnPath]
"""The table's columns, by their names in the relation."""
_TOGETHER = "org.apache.spark.sql.catalyst.expressions.Coalesce"
"""An expression with any number of children: combined in one, they need a single round trip."""


def read_filters(gateway: Gateway, filters: JavaObject, names: Names | None = None) -> Predicate:
    """All filters of a Scala Seq, as far as they can be translated. Without `names`, columns have the table's names."""
    found = _read_together(gateway, filters, names)
    if found is None:  # one of them has no such form
        found = [read_filter(call(filters, "apply", place), names) for place in range(call_number(filters, "size"))]
    return And(tuple(found)) if found else TRUE


def _read_together(gateway: Gateway, filters: JavaObject, names: Names | None) -> list[Predicate] | None:
    together = gateway.new(_TOGETHER, filters)
    text = try_text(together, "toJSON")
    tree = None if text is None else try_parse(text)
    if tree is None:
        return None
    reader = _Reader(lambda place: call(together, "apply", place), names)
    return list(map(reader.predicate, tree.children))


def read_filter(expression: JavaObject, names: Names | None = None) -> Predicate:
    """One expression of the JVM."""
    text = try_text(expression, "toJSON")
    if text is None:
        return Opaque("an expression that Spark cannot show")
    return translate(text, lambda place: call(expression, "apply", place), names)


def translate(text: str, ask: Ask, names: Names | None = None) -> Predicate:
    """The predicate for an expression's JSON; `ask` returns the nodes themselves."""
    tree = try_parse(text)
    return Opaque("an expression of another form") if tree is None else _Reader(ask, names).predicate(tree)


@dataclass(frozen=True, slots=True)
class _Reader:
    ask: Ask
    names: Names | None

    def predicate(self, tree: CatalystTree) -> Predicate:
        try:
            return self._known(tree)
        except Unknown:
            return Opaque(tree.kind)

    def _known(self, tree: CatalystTree) -> Predicate:
        children = tree.children
        match tree.kind:
            case "And":
                return And(tuple(map(self.predicate, children)))
            case "Or":
                return Or(tuple(map(self.predicate, children)))
            case "Not":
                return Not(self.predicate(children[0]))
            case "IsNull":
                return IsNull(self._column(children[0]))
            case "IsNotNull":
                return IsNotNull(self._column(children[0]))
            case "IsNaN":
                return IsNan(self._column(children[0]))
            case "In":
                return In(self._column(children[0]), tuple(self._literal(item) for item in children[1:]))
            case "InSet":
                return In(self._column(children[0]), self._set_values(tree))
            case "StartsWith":
                return self._starts_with(*children)
            case "EqualNullSafe":
                column, _, value = self._sides(*children)
                return IsNotDistinct(column, value)
            case "Literal" if tree.node.data_type == "boolean":
                return Constant({"true": True, "false": False}.get(str(tree.node.value)))
            case "AttributeReference" | "GetStructField":  # a boolean column
                return Compare(self._column(tree), Op.EQ, True)
            case kind if kind in _COMPARISONS:
                column, is_mirrored, value = self._sides(*children)
                op = _COMPARISONS[kind]
                return Compare(column, _MIRRORED[op] if is_mirrored else op, value)
        raise Unknown

    def _column(self, tree: CatalystTree) -> ColumnPath:
        """The table's column that is meant."""
        path = column_and_type(tree)[0]
        if self.names is None:
            return path
        found = self.names.get(path)
        if found is None:
            raise Unknown
        return found

    def _sides(self, left: CatalystTree, right: CatalystTree) -> tuple[ColumnPath, bool, Operand]:
        """The column, whether it is on the right, and the literal."""
        if left.kind == "Literal":
            return self._column(right), True, self._literal(left)
        return self._column(left), False, self._literal(right)

    def _starts_with(self, left: CatalystTree, right: CatalystTree) -> Predicate:
        prefix = self._literal(right)
        if not isinstance(prefix, str | bytes):
            raise Unknown
        return StartsWith(self._column(left), prefix)

    def _literal(self, tree: CatalystTree) -> Operand:
        if tree.kind != "Literal":
            raise Unknown
        kind, value = str(tree.node.data_type), tree.node.value
        if value is None:
            return None
        if kind in ASKED_FOR:
            return exact_value(kind, call(self.ask(tree.place), "value"))
        return read_value(kind, str(value))

    def _set_values(self, tree: CatalystTree) -> tuple[Operand, ...]:
        """The values of a set, fetched as one string. Only numbers and text are translated."""
        kind, values = str(column_and_type(tree.children[0])[1]), call(self.ask(tree.place), "hset")
        mark = token_hex(16)
        texts = call_text(values, "mkString", mark).split(mark)
        has_null = bool(call(values, "contains", None))
        if len(texts) != call_number(values, "size"):
            raise Unknown
        if has_null:
            texts.remove("null")
        read = read_moment if kind in ASKED_FOR else read_value
        return (*(read(kind, text) for text in texts), *((None,) if has_null else ()))


def and_parts(predicate: Predicate) -> Sequence[Predicate]:
    """The parts that AND joins, unchanged: `prune`'s `conjuncts` would rewrite them, and predicates identify Spark's
    filters.
    """
    return predicate.parts if isinstance(predicate, And) else (predicate,)
