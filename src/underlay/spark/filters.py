"""Catalyst's filters as a predicate for the planner.

An expression comes as JSON, its nodes in the order of a walk from the root, in one round trip. Text in that JSON is not
exact for dates, times and bytes, so these literals are asked for one by one. Whatever is not known here is Opaque: it
keeps every block.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from secrets import token_hex

import msgspec
import numpy as np

from underlay.prune import TRUE, Predicate
from underlay.prune.instant import Instant
from underlay.prune.operand import ColumnPath, Operand
from underlay.prune.predicate import (
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
from underlay.spark.gateway import JavaObject, call, call_number, call_text, try_text

_PACKAGE = "org.apache.spark.sql.catalyst.expressions."
_COMPARISONS = {
    "EqualTo": Op.EQ,
    "LessThan": Op.LT,
    "LessThanOrEqual": Op.LE,
    "GreaterThan": Op.GT,
    "GreaterThanOrEqual": Op.GE,
}
_MIRRORED = {Op.EQ: Op.EQ, Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
_WHOLE = frozenset({"byte", "short", "integer", "long"})
_ASKED_FOR = frozenset({"date", "timestamp", "timestamp_ntz", "binary"})
_DECIMAL = re.compile(r"decimal\(\d+,-?\d+\)")
_DAYS_TO_1970 = date(1970, 1, 1).toordinal()
_MOST_LEVELS = 100
"""Deeper expressions are not translated: Python's own stack has an end."""
_UNREADABLE = "\ufffd"
"""What Java prints for bytes of a string that are no UTF-8."""


class Unknown(Exception):
    """This part of a filter cannot be translated."""


class Node(msgspec.Struct, rename="kebab"):
    """One node of an expression's JSON. Only the fields that are asked about."""

    class_: str = msgspec.field(name="class")
    num_children: int
    name: str | None = None
    data_type: object = msgspec.field(name="dataType", default=None)
    value: object = None
    ordinal: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """An expression. `place` is its number in the order of the walk, by which the JVM finds it."""

    node: Node
    place: int
    children: tuple[Tree, ...]

    @property
    def kind(self) -> str:
        """The name of its class, without Catalyst's package."""
        return self.node.class_.removeprefix(_PACKAGE)


_decoder = msgspec.json.Decoder(list[Node])
Ask = Callable[[int], JavaObject]
"""The expression at a place."""


def read_filters(filters: JavaObject) -> Predicate:
    """All of a Scala Seq of filters, as far as they can be translated."""
    found = [read_filter(call(filters, "apply", place)) for place in range(call_number(filters, "size"))]
    return And(tuple(found)) if found else TRUE


def read_filter(expression: JavaObject) -> Predicate:
    """One expression of the JVM."""
    text = try_text(expression, "toJSON")
    if text is None:
        return Opaque("an expression that Spark cannot show")
    return translate(text, lambda place: call(expression, "apply", place))


def translate(text: str, ask: Ask) -> Predicate:
    """The predicate of an expression's JSON; `ask` gives the nodes themselves."""
    try:
        tree = _tree(enumerate(_decoder.decode(text)), _MOST_LEVELS)
    except (msgspec.DecodeError, Unknown):
        return Opaque("an expression of another form")
    return _Reader(ask).predicate(tree)


def _tree(nodes: Iterator[tuple[int, Node]], levels: int) -> Tree:
    found = next(nodes, None)
    if found is None or not levels:
        raise Unknown
    place, node = found
    children = tuple(_tree(nodes, levels - 1) for _ in range(node.num_children))
    return Tree(node=node, place=place, children=children)


@dataclass(frozen=True, slots=True)
class _Reader:
    ask: Ask

    def predicate(self, tree: Tree) -> Predicate:
        try:
            return self._known(tree)
        except Unknown:
            return Opaque(tree.kind)

    def _known(self, tree: Tree) -> Predicate:
        children = tree.children
        match tree.kind:
            case "And":
                return And(tuple(map(self.predicate, children)))
            case "Or":
                return Or(tuple(map(self.predicate, children)))
            case "Not":
                return Not(self.predicate(children[0]))
            case "IsNull":
                return IsNull(column_of(children[0]))
            case "IsNotNull":
                return IsNotNull(column_of(children[0]))
            case "IsNaN":
                return IsNan(column_of(children[0]))
            case "In":
                return In(column_of(children[0]), tuple(self._literal(item) for item in children[1:]))
            case "InSet":
                return In(column_of(children[0]), self._set_values(tree))
            case "StartsWith":
                return self._starts_with(*children)
            case "EqualNullSafe":
                column, _, value = self._sides(*children)
                return IsNotDistinct(column, value)
            case "Literal" if tree.node.data_type == "boolean":
                return Constant({"true": True, "false": False}.get(str(tree.node.value)))
            case "AttributeReference" | "GetStructField":  # a boolean column
                return Compare(column_of(tree), Op.EQ, True)
            case kind if kind in _COMPARISONS:
                column, is_mirrored, value = self._sides(*children)
                op = _COMPARISONS[kind]
                return Compare(column, _MIRRORED[op] if is_mirrored else op, value)
        raise Unknown

    def _sides(self, left: Tree, right: Tree) -> tuple[ColumnPath, bool, Operand]:
        """The column, whether it stands on the right, and the literal."""
        if left.kind == "Literal":
            return column_of(right), True, self._literal(left)
        return column_of(left), False, self._literal(right)

    def _starts_with(self, left: Tree, right: Tree) -> Predicate:
        prefix = self._literal(right)
        if not isinstance(prefix, str | bytes):
            raise Unknown
        return StartsWith(column_of(left), prefix)

    def _literal(self, tree: Tree) -> Operand:
        if tree.kind != "Literal":
            raise Unknown
        kind, value = str(tree.node.data_type), tree.node.value
        if value is None:
            return None
        if kind in _ASKED_FOR:
            return exact_value(kind, call(self.ask(tree.place), "value"))
        return read_value(kind, str(value))

    def _set_values(self, tree: Tree) -> tuple[Operand, ...]:
        """The values of a set, in one string: they are numbers or text, or not translated."""
        kind, values = _type_of(tree.children[0]), call(self.ask(tree.place), "hset")
        mark = token_hex(16)
        texts = call_text(values, "mkString", mark).split(mark)
        has_null = bool(call(values, "contains", None))
        if len(texts) != call_number(values, "size"):
            raise Unknown
        if has_null:
            texts.remove("null")
        read = _read_moment if kind in _ASKED_FOR else read_value
        return (*(read(kind, text) for text in texts), *((None,) if has_null else ()))


def column_of(tree: Tree) -> ColumnPath:
    """The path of a bare column, or of a field of structs. Raises Unknown for anything else."""
    return _column_and_type(tree)[0]


def _type_of(tree: Tree) -> str:
    return str(_column_and_type(tree)[1])


def _column_and_type(tree: Tree) -> tuple[ColumnPath, object]:
    """A field is found by its number: its name in the expression is as the user spelt it."""
    if tree.kind == "AttributeReference" and tree.node.name is not None:
        return (tree.node.name,), tree.node.data_type
    if tree.kind == "GetStructField" and tree.node.ordinal is not None:
        path, above = _column_and_type(tree.children[0])
        fields = above.get("fields") if isinstance(above, dict) else None
        if isinstance(fields, list) and tree.node.ordinal < len(fields):
            field = fields[tree.node.ordinal]
            return (*path, str(field["name"])), field["type"]
    raise Unknown


def read_value(kind: str, text: str) -> Operand:
    """A value of a type whose text is exact. Raises Unknown."""
    if kind in _WHOLE:
        return int(text)
    if kind == "string" and _UNREADABLE not in text:
        return text
    if kind == "double":
        return float(text)
    if kind == "float":
        return float(np.float32(text))
    if kind == "boolean":
        return text == "true"
    if _DECIMAL.fullmatch(kind):
        return Decimal(text)
    raise Unknown


def exact_value(kind: str, value: object) -> Operand:
    """A value as Catalyst holds it: days, microseconds, bytes. Raises Unknown."""
    if kind == "binary" and isinstance(value, bytes | bytearray):
        return bytes(value)
    if not isinstance(value, int):
        raise Unknown
    if kind != "date":
        return Instant(value * 1000)
    ordinal = value + _DAYS_TO_1970
    if not 1 <= ordinal <= date.max.toordinal():
        raise Unknown
    return date.fromordinal(ordinal)


def _read_moment(kind: str, text: str) -> Operand:
    if kind == "binary":
        raise Unknown
    return exact_value(kind, int(text))


def conjuncts(predicate: Predicate) -> Sequence[Predicate]:
    """What must all be true."""
    return predicate.parts if isinstance(predicate, And) else (predicate,)
