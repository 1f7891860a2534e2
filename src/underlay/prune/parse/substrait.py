"""A Substrait expression, as Arrow writes it, to a predicate.

Only what is read exactly is read: a function, a literal or a shape of arguments that is not known raises
NotTranslated, and whoever asked keeps the part as Opaque. Numbers of fields are those of substrait's algebra.proto
and extended_expression.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa

from underlay.prune.parse.protobuf import Message
from underlay.prune.predicates.instant import DAY_NS, Instant
from underlay.prune.predicates.operand import ColumnPath, Operand
from underlay.prune.predicates.predicate import (
    And,
    Compare,
    Constant,
    In,
    IsNan,
    IsNotNull,
    IsNull,
    Not,
    Op,
    Or,
    Predicate,
    StartsWith,
)

_LITERAL, _SELECTION, _FUNCTION, _IF_THEN, _ONE_OF = 1, 2, 3, 6, 8
_OPS = {"equal": Op.EQ, "not_equal": Op.NE, "lt": Op.LT, "lte": Op.LE, "gt": Op.GT, "gte": Op.GE}
_FLIPPED = {Op.EQ: Op.EQ, Op.NE: Op.NE, Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


class NotTranslated(Exception):
    """The expression holds something that has no exact counterpart among predicates."""


def read_extended(data: bytes, schema: pa.Schema) -> Predicate:
    """The predicate of a serialised ExtendedExpression that was bound to `schema`. Raises NotTranslated."""
    plan = Message(data)
    names = {}
    for extension in plan.messages(2):
        function = extension.message(3)
        names[function.integer(2)] = function.octets(3).decode()
    referred = plan.messages(3)
    if len(referred) != 1 or 1 not in referred[0]:
        raise NotTranslated("not one expression")
    return _Reader(schema, names).predicate(referred[0].message(1))


class _Reader:
    def __init__(self, schema: pa.Schema, names: dict[int, str]) -> None:
        self._schema = schema
        self._names = names

    def predicate(self, node: Message) -> Predicate:
        """The predicate of a boolean expression."""
        if _FUNCTION in node:
            return self._function(node.message(_FUNCTION))
        if _ONE_OF in node:
            return self._one_of(node.message(_ONE_OF))
        if _IF_THEN in node:
            return self._if_then(node.message(_IF_THEN))
        if _SELECTION in node:
            return Compare(self._column(node), Op.EQ, True)
        if _LITERAL in node:
            value = self._literal(node)
            if value is None or isinstance(value, bool):
                return Constant(value)
        raise NotTranslated(f"expression {node.numbers}")

    def _function(self, function: Message) -> Predicate:
        name = self._names.get(function.integer(1), "")
        arguments = [argument.message(3) for argument in function.messages(4)]
        options = {option.octets(1): option.octets(2) for option in function.messages(5)}
        if name in _OPS and len(arguments) == 2:
            return self._comparison(_OPS[name], *arguments)
        readers: dict[tuple[str, int], Callable[..., Predicate]] = {
            ("not", 1): lambda part: Not(self.predicate(part)),
            ("is_null", 1): lambda part: IsNull(self._column(part)),
            ("is_not_null", 1): lambda part: IsNotNull(self._column(part)),
            ("is_nan", 1): lambda part: IsNan(self._column(part)),
        }
        if name in ("and", "or"):
            parts = tuple(self.predicate(part) for part in arguments)
            return And(parts) if name == "and" else Or(parts)
        if (name, len(arguments)) in readers:
            return readers[name, len(arguments)](*arguments)
        if name == "starts_with" and options.get(b"case_sensitivity") == b"CASE_SENSITIVE":
            return self._starts_with(arguments)
        raise NotTranslated(f"function {name}")

    def _comparison(self, op: Op, left: Message, right: Message) -> Compare:
        if _SELECTION in left:
            return Compare(self._column(left), op, self._literal(right))
        return Compare(self._column(right), _FLIPPED[op], self._literal(left))

    def _starts_with(self, arguments: list[Message]) -> StartsWith:
        prefix = self._literal(arguments[1]) if len(arguments) == 2 else None
        if not isinstance(prefix, str | bytes):
            raise NotTranslated("prefix")
        return StartsWith(self._column(arguments[0]), prefix)

    def _one_of(self, node: Message) -> Predicate:
        """Arrow's is_in, which is never null: a null row is in the list when a null is."""
        column = self._column(node.message(1))
        values = tuple(self._literal(option) for option in node.messages(2))
        found = In(column, tuple(value for value in values if value is not None))
        return Or((IsNull(column), found)) if None in values else And((IsNotNull(column), found))

    def _if_then(self, node: Message) -> Predicate:
        """DuckDB's IN: is_in where the column is valid, else null. The zeros of a list of floats stand beside it."""
        clauses = node.messages(1)
        if len(clauses) == 1:
            condition, then = self.predicate(clauses[0].message(1)), self.predicate(clauses[0].message(2))
            if isinstance(condition, IsNotNull) and self.predicate(node.message(2)) == Constant(None):
                return _null_where_null(condition.column, then)
        raise NotTranslated("if_else")

    def _column(self, node: Message) -> ColumnPath:
        """The names of a direct reference to a field of the row, or of structs in it."""
        selection = node.message(_SELECTION)
        if _SELECTION not in node or 1 not in selection or 4 not in selection:
            raise NotTranslated("not a column")
        path: list[str] = []
        segment, fields = selection.message(1), list(self._schema)
        while True:
            if segment.numbers != (2,):
                raise NotTranslated("not a field")
            step = segment.message(2)
            index = step.integer(1)
            if index >= len(fields):
                raise NotTranslated("no such field")
            path.append(fields[index].name)
            if 2 not in step:
                return tuple(path)
            type_ = fields[index].type
            fields = list(type_) if isinstance(type_, pa.StructType) else []
            segment = step.message(2)

    def _literal(self, node: Message) -> Operand:
        if _LITERAL not in node:
            raise NotTranslated("not a literal")
        literal = node.message(_LITERAL)
        kinds = [number for number in literal.numbers if number not in (50, 51)]
        if len(kinds) != 1 or (51 in literal and literal.integer(51)):
            raise NotTranslated(f"literal {literal.numbers}")
        return _value_of(literal, kinds[0])


def _null_where_null(column: ColumnPath, test: Predicate) -> Predicate:
    """A test that is the same where the column is valid, and null where it is null."""
    match test:
        case And((IsNotNull(valid), In(column=listed) as found)) if valid == listed == column and found.values:
            return found
        case Compare(column=compared) if compared == column:
            return test
        case Or(parts) if parts:
            return Or(tuple(_null_where_null(column, part) for part in parts))
    raise NotTranslated("if_else")


def _value_of(literal: Message, kind: int) -> Operand:
    match kind:
        case 1:
            return bool(literal.integer(kind))
        case 2 | 3 | 5 | 7:
            return literal.signed(kind)
        case 10:
            return float(struct.unpack("<f", literal.octets(kind))[0])
        case 11:
            return float(struct.unpack("<d", literal.octets(kind))[0])
        case 12:
            return literal.octets(kind).decode()
        case 13 | 23:
            return literal.octets(kind)
        case 14 | 27:
            return Instant(literal.signed(kind) * 1_000)
        case 16:
            return _day(literal.signed(kind))
        case 17:
            return _time(literal.signed(kind))
        case 24:
            return _decimal(literal.message(kind))
        case 29:
            return None
        case 33:
            return _wrapped(literal.message(kind).message(2))
    raise NotTranslated(f"literal {kind}")


def _day(days: int) -> date | Instant:
    """A date; beyond the years of Python's as its midnight."""
    ordinal = days + _EPOCH_ORDINAL
    return date.fromordinal(ordinal) if 1 <= ordinal <= date.max.toordinal() else Instant(days * DAY_NS)


def _time(microseconds: int) -> time:
    if not 0 <= microseconds < DAY_NS // 1_000:
        raise NotTranslated("no time of day")
    return (datetime.min + timedelta(microseconds=microseconds)).time()


def _decimal(literal: Message) -> Decimal:
    unscaled = int.from_bytes(literal.octets(1), "little", signed=True)
    return Decimal(f"{unscaled}e{-literal.integer(3)}")


def _wrapped(value: Message) -> Operand:
    """Unsigned integers, and large text and binary; other types that are wrapped do not say what they count."""
    inner = value.message(2)
    match value.octets(1).rpartition(b".")[2]:
        case b"UInt64Value":
            return inner.integer(1)
        case b"StringValue":
            return inner.octets(1).decode()
        case b"BytesValue":
            return inner.octets(1)
    raise NotTranslated("wrapped literal")
