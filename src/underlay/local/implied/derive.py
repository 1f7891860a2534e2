"""Derives the predicate on columns that must hold wherever a condition is true: it may be wider, never narrower.

DuckDB applies the condition itself to the rows, so it only matters that the predicate never claims too much. What is
not understood implies nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import duckdb
import pyarrow as pa

from underlay.errors import UnknownColumn
from underlay.local.implied.bounds import between_bounds
from underlay.local.implied.interval import Bound, Interval, bound_of, clamped, family_of, number, number_or_count
from underlay.local.implied.inverse import comparable, invert
from underlay.local.implied.letters import candidates
from underlay.local.implied.syntax import Node, NotUnderstood, Reader, Value, conjuncts_of, read_query, write_expression
from underlay.prune import FALSE, TRUE, Predicate
from underlay.prune.parse.bind import resolve_path
from underlay.prune.predicates.instant import DAY_NS
from underlay.prune.predicates.normalise import normalise
from underlay.prune.predicates.operand import ColumnPath
from underlay.prune.predicates.predicate import And, Compare, In, IsNotNull, IsNull, Op, Or, StartsWith

_OPS = {
    "COMPARE_EQUAL": Op.EQ,
    "COMPARE_NOT_DISTINCT_FROM": Op.EQ,
    "COMPARE_LESSTHAN": Op.LT,
    "COMPARE_LESSTHANOREQUALTO": Op.LE,
    "COMPARE_GREATERTHAN": Op.GT,
    "COMPARE_GREATERTHANOREQUALTO": Op.GE,
}
_FLIPPED = {Op.EQ: Op.EQ, Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
_NOT = {Op.LT: Op.GE, Op.LE: Op.GT, Op.GT: Op.LE, Op.GE: Op.LT}
_LISTS = ("contains", "list_contains", "list_has", "array_contains", "array_has")
_PREFIXES = ("starts_with", "prefix", "^@")
_FIRST_CHARACTERS = ("substr", "substring", "left")
_ROWS = '"underlay implied"'
_MOST_LISTED = 256
_PLAIN = ("COMPARE_IN", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL")


def implied_by(
    connection: duckdb.DuckDBPyConnection, condition: str, schema: pa.Schema, parameters: Mapping[str, object]
) -> list[Predicate]:
    """What each part of a condition implies beyond what DuckDB finds itself. Registers a table of one row."""
    try:
        query = read_query(connection, f"SELECT 1 FROM {_ROWS} WHERE (\n{condition}\n)")
    except NotUnderstood:
        return []
    return implied_by_parts(connection, conjuncts_of(query["node"].get("where_clause")), schema, parameters)


def implied_by_parts(
    connection: duckdb.DuckDBPyConnection, parts: list[Node], schema: pa.Schema, parameters: Mapping[str, object]
) -> list[Predicate]:
    """What each of the parts implies."""
    computed = [part for part in parts if not _is_plain(part)]
    if not computed:
        return []
    row = pa.table([pa.nulls(1, field.type) for field in schema], schema=schema)
    connection.register("underlay implied", row)
    try:
        reader = Reader(connection, read_query(connection, f"SELECT 1 FROM {_ROWS}"), parameters)
        deriver = _Deriver(reader, connection, schema)
        found = [deriver.conjunct(part) for part in computed]
    except NotUnderstood:
        return []
    finally:
        connection.unregister("underlay implied")
    return [one for one in map(normalise, found) if one != TRUE]


def parts_of(connection: duckdb.DuckDBPyConnection, condition: str) -> list[str]:
    """The texts of the conditions that AND joins, as DuckDB writes them; empty for a single or unknown condition."""
    try:
        query = read_query(connection, f"SELECT 1 FROM {_ROWS} WHERE (\n{condition}\n)")
        parts = conjuncts_of(query["node"].get("where_clause"))
        return [] if len(parts) < 2 else [write_expression(connection, query, part) for part in parts]
    except NotUnderstood:
        return []


def _is_plain(part: Node) -> bool:
    """Whether our own grammar finds the same: a comparison of a column with literals."""
    match part["class"]:
        case "COLUMN_REF" | "CONSTANT":
            return True
        case "COMPARISON":
            sides = [part["left"], part["right"]]
        case "BETWEEN":
            sides = [part["input"], part["lower"], part["upper"]]
        case _:
            sides = list(part.get("children", ()))
            if part["type"] not in _PLAIN and part.get("function_name") not in (*_PREFIXES, "~~"):
                return False
    return all(side["class"] in ("COLUMN_REF", "CONSTANT") for side in sides)


class _Deriver:
    def __init__(self, reader: Reader, connection: duckdb.DuckDBPyConnection, schema: pa.Schema) -> None:
        self._reader = reader
        self._connection = connection
        self._schema = schema

    def conjunct(self, node: Node) -> Predicate:
        """What a condition that is loaded on its own implies."""
        try:
            self._reader.load(node)
        except (NotUnderstood, KeyError, TypeError):  # a tree of an unknown form implies nothing
            return TRUE
        return self.condition(node, is_negated=False)

    def condition(self, node: Node, *, is_negated: bool) -> Predicate:
        """What must hold where a condition is true, or where it is false."""
        kind, type_ = node["class"], node["type"]
        if kind == "CONJUNCTION":
            parts = tuple(self.condition(part, is_negated=is_negated) for part in node["children"])
            if (type_ == "CONJUNCTION_AND") != is_negated:
                return And(parts)
            return TRUE if TRUE in parts else Or(parts)
        if type_ == "OPERATOR_NOT":
            return self.condition(node["children"][0], is_negated=not is_negated)
        try:
            return normalise(self._leaf(node, is_negated=is_negated))
        except (NotUnderstood, UnknownColumn, KeyError, TypeError, ValueError):  # as above
            return TRUE

    def _leaf(self, node: Node, *, is_negated: bool) -> Predicate:
        match node["class"], node["type"]:
            case "COMPARISON", type_ if type_ in _OPS:
                return self._comparison(node, _OPS[type_], is_negated=is_negated)
            case "COMPARISON", "COMPARE_NOTEQUAL" if is_negated:
                return self._comparison(node, Op.EQ, is_negated=False)
            case "BETWEEN", _:
                return self._between(node, is_negated=is_negated)
            case "OPERATOR", "COMPARE_IN" if not is_negated:
                inner, *values = node["children"]
                return self._any_of(inner, self._values(inner, values))
            case "OPERATOR", "OPERATOR_IS_NULL" | "OPERATOR_IS_NOT_NULL":
                path = self._path(node["children"][0])
                is_null = (node["type"] == "OPERATOR_IS_NULL") != is_negated
                return IsNull(path) if is_null else IsNotNull(path)
            case "COLUMN_REF", _ if self._reader.type_of(node) == "BOOLEAN":
                return Compare(self._path(node), Op.EQ, not is_negated)
            case "CAST", _ if self._reader.type_of(node) == self._reader.type_of(node["child"]) == "BOOLEAN":
                return self.condition(node["child"], is_negated=is_negated)
            case "FUNCTION", _ if not is_negated:
                return self._function(node)
        raise NotUnderstood("not a condition")

    def _comparison(self, node: Node, op: Op, *, is_negated: bool) -> Predicate:
        inner, constant = node["left"], node["right"]
        if self._reader.is_constant(inner):
            inner, constant, op = constant, inner, _FLIPPED[op]
        if self._reader.type_of(inner) == "BOOLEAN" and op is Op.EQ:
            wanted = self._reader.value_of(constant).scalar.as_py()
            if wanted is True and not is_negated:
                return self.condition(inner, is_negated=False)
            is_equal = node["type"] == "COMPARE_EQUAL"
            if (wanted is False and not is_negated) or (wanted is True and is_negated and is_equal):
                return self.condition(inner, is_negated=True)
            raise NotUnderstood("not a truth value")
        if is_negated and op is Op.EQ:
            raise NotUnderstood("all values but one")
        (value,) = self._values(inner, [constant])
        if node["type"] == "COMPARE_NOT_DISTINCT_FROM" and not value.scalar.is_valid:
            raise NotUnderstood("null")
        return self._compared(inner, _NOT[op] if is_negated else op, value)

    def _between(self, node: Node, *, is_negated: bool) -> Predicate:
        inner = node["input"]
        low, high = self._values(inner, [node["lower"], node["upper"]])
        if is_negated:
            return Or((self._compared(inner, Op.LT, low), self._compared(inner, Op.GT, high)))
        return And((self._compared(inner, Op.GE, low), self._compared(inner, Op.LE, high)))

    def _any_of(self, inner: Node, values: list[Value]) -> Predicate:
        known = [value for value in values if value.scalar.is_valid]
        if len(known) > _MOST_LISTED:
            raise NotUnderstood("many values")
        parts = tuple(self._compared(inner, Op.EQ, value) for value in known)
        return TRUE if TRUE in parts else Or(parts)

    def _function(self, node: Node) -> Predicate:
        name, arguments = node["function_name"].lower(), node["children"]
        if name in _LISTS and len(arguments) == 2 and self._reader.is_constant(arguments[0]):
            values = self._reader.value_of(arguments[0])
            if not isinstance(values.scalar, pa.ListScalar) or not values.type.endswith("[]"):
                raise NotUnderstood("not a list")
            kind = values.type.removesuffix("[]")
            return self._any_of(arguments[1], [Value(kind, one, False) for one in values.scalar.values or ()])
        if name in (*_PREFIXES, "~~", "~~*") and len(arguments) == 2:
            inner, text = arguments[0], self._reader.value_of(arguments[1]).scalar.as_py()
            if not isinstance(text, str) or self._reader.type_of(inner) != "VARCHAR":
                raise NotUnderstood("not text")
            if name in _PREFIXES:
                return self._begins(inner, text)
            begin = text[: min((at for at in map(text.find, "%_") if at >= 0), default=len(text))]
            if name == "~~":
                return self._begins(inner, begin)
            return self._begins_alike(inner, "lower", self._lowered(begin))
        raise NotUnderstood(name)

    def _compared(self, inner: Node, op: Op, value: Value) -> Predicate:
        kind = self._reader.type_of(inner)
        if not value.scalar.is_valid:
            return FALSE
        if kind == value.type == "VARCHAR":
            text = bound_of(value)
            assert isinstance(text, str)
            return self._text_compared(inner, op, text)
        if kind == value.type in ("BLOB", "UUID", "TIME", "BOOLEAN"):
            raise NotUnderstood(kind)
        if (family_of(kind), value.type) == ("time", "DATE"):  # its midnight
            return self.lies_in(inner, clamped(_interval(op, _midnight(bound_of(value)), is_count=True), kind))
        interval = _interval(op, bound_of(value), is_count=family_of(value.type) in ("date", "time"))
        if family_of(kind) == "whole" and family_of(value.type) in ("whole", "decimal"):
            interval = _whole_interval(interval, op)
        return self.lies_in(inner, comparable(interval, kind, value.type))

    def lies_in(self, node: Node, interval: Interval) -> Predicate:
        """What must hold where the value of an expression is in an interval."""
        if interval.is_empty:
            return FALSE
        path = self._column(node)
        if path is not None:
            return between_bounds(path, self._arrow_type(path), interval)
        if node["type"] == "OPERATOR_COALESCE":
            return self._coalesced(node, interval)
        parts = tuple(self.lies_in(*inner) for inner in invert(self._reader, node, interval))
        return TRUE if TRUE in parts else Or(parts)

    def _coalesced(self, node: Node, interval: Interval) -> Predicate:
        """x, or where x is null the first of the constants that is not."""
        inner, *others = node["children"]
        kind = self._reader.type_of(node)
        if kind != self._reader.type_of(inner):
            raise NotUnderstood("a cast of all")
        found = self.lies_in(inner, interval)
        values = [value for value in map(self._reader.value_of, others) if value.scalar.is_valid]
        if not values:
            return found
        bound = number_or_count(bound_of(values[0]))
        low, high = (None if one is None else number_or_count(one) for one in (interval.low, interval.high))
        is_alike = values[0].type == kind or {family_of(values[0].type), family_of(kind)} <= {"whole", "decimal"}
        if is_alike and ((low is not None and bound < low) or (high is not None and bound > high)):
            return found
        return Or((found, IsNull(self._path(inner))))

    def _text_compared(self, inner: Node, op: Op, text: str) -> Predicate:
        path = self._column(inner)
        if path is not None:
            return Compare(path, op, text)
        if inner["class"] == "FUNCTION":
            name, arguments = inner["function_name"].lower(), inner["children"]
            if name in ("lower", "lcase", "upper", "ucase") and op is Op.EQ and len(arguments) == 1:
                function = "lower" if name in ("lower", "lcase") else "upper"
                return self._same_alike(arguments[0], function, text)
        begin, count = self._first_characters(inner)
        match op:
            case Op.EQ:
                if len(text) > count:
                    return FALSE
                return self._begins(begin, text) if len(text) == count else self._text_compared(begin, op, text)
            case Op.GT | Op.GE:
                return self._text_compared(begin, Op.GE, text)
            case _:
                most = text[:count]
                return Or((self._text_compared(begin, Op.LT, most), self._begins(begin, most)))

    def _first_characters(self, node: Node) -> tuple[Node, int]:
        """The expression whose first characters this one returns, and how many."""
        if node["class"] == "FUNCTION" and node["function_name"].lower() in _FIRST_CHARACTERS:
            inner, *numbers = node["children"]
            is_left = node["function_name"].lower() == "left"
        elif node["type"] in ("ARRAY_EXTRACT", "ARRAY_SLICE"):
            inner, *numbers = node["children"]
            is_left = False
        else:
            raise NotUnderstood("not the first characters")
        found = [self._reader.value_of(one).scalar.as_py() for one in numbers]
        counts = [1, *found] if is_left else [*found, 1] if node["type"] == "ARRAY_EXTRACT" else found
        is_right = len(counts) == 2 and all(isinstance(one, int) for one in counts) and counts[0] == 1 <= counts[1]
        if not is_right or self._reader.type_of(inner) != "VARCHAR":
            raise NotUnderstood("not the first characters")
        return inner, counts[1]

    def _begins(self, inner: Node, begin: str) -> Predicate:
        if not begin:
            return TRUE
        path = self._column(inner)
        if path is not None:
            return StartsWith(path, begin)
        if inner["class"] == "FUNCTION" and len(inner["children"]) == 1:
            name = inner["function_name"].lower()
            if name in ("lower", "lcase", "upper", "ucase"):
                return self._begins_alike(inner["children"][0], "lower" if name[0] == "l" else "upper", begin)
        return self._begins(self._first_characters(inner)[0], begin)

    def _same_alike(self, inner: Node, function: str, text: str) -> Predicate:
        path = self._path(inner)
        found, count = candidates(self._connection, function, text)
        if count == len(text):
            return In(path, tuple(found)) if found else FALSE
        return Or(tuple(StartsWith(path, one) for one in found))

    def _begins_alike(self, inner: Node, function: str, begin: str) -> Predicate:
        path = self._path(inner)
        found, count = candidates(self._connection, function, begin)
        return Or(tuple(StartsWith(path, one) for one in found)) if count else TRUE

    def _lowered(self, text: str) -> str:
        ((found,),) = self._connection.execute("SELECT lower($1)", [text]).fetchall()
        return str(found)

    def _values(self, inner: Node, constants: list[Node]) -> list[Value]:
        """The values that an expression is compared with. DuckDB casts all to one type, which changes if their kinds
        differ.
        """
        kind = self._reader.type_of(inner)
        found = [self._reader.value_of(one) for one in constants]
        valid = [value for value in found if value.scalar.is_valid]
        if kind != "VARCHAR" and any(value.is_text_literal for value in valid):
            if not all(value.is_text_literal or value.type == kind for value in valid):
                raise NotUnderstood("text beside other values")
            return [self._reader.value_of(one, kind) for one in constants]
        families = {family_of(value.type) for value in valid}
        if len(families) > 1 and families != {"whole", "decimal"}:
            raise NotUnderstood("values of several kinds")
        return found

    def _path(self, node: Node) -> ColumnPath:
        path = self._column(node)
        if path is None:
            raise NotUnderstood("not a column")
        return path

    def _column(self, node: Node) -> ColumnPath | None:
        """The path of a column, or of a field of a struct; None for anything that computes."""
        steps = _steps(node)
        if steps is None:
            return None
        path = resolve_path(steps, self._schema)
        return None if any(name == "" for name in path) else path

    def _arrow_type(self, path: ColumnPath) -> pa.DataType:
        kind: pa.DataType = pa.struct(list(self._schema))
        for name in path:
            if not isinstance(kind, pa.StructType):
                raise NotUnderstood("not a struct")
            kind = kind.field(name).type
        return kind


def _steps(node: Node) -> ColumnPath | None:
    if node["class"] == "COLUMN_REF":
        return tuple(node["column_names"])
    is_extract = node["type"] in ("ARRAY_EXTRACT", "STRUCT_EXTRACT") or (
        node["class"] == "FUNCTION" and node["function_name"].lower() in ("struct_extract", "array_extract")
    )
    if not is_extract or len(node["children"]) != 2:
        return None
    inner, name = node["children"]
    steps = _steps(inner)
    if steps is None or name["class"] != "CONSTANT" or name["value"]["type"]["id"] != "VARCHAR":
        return None
    return (*steps, str(name["value"]["value"]))


def _midnight(bound: Bound) -> int:
    if not isinstance(bound, int):
        raise NotUnderstood("not a day")
    return bound * DAY_NS


def _interval(op: Op, bound: Bound, *, is_count: bool) -> Interval:
    if op is Op.LT and is_count and isinstance(bound, int):
        return Interval(None, bound - 1)
    if op is Op.GT and is_count and isinstance(bound, int):
        return Interval(bound + 1, None)
    low = bound if op in (Op.EQ, Op.GT, Op.GE) else None
    high = bound if op in (Op.EQ, Op.LT, Op.LE) else None
    return Interval(low, high)


def _whole_interval(interval: Interval, op: Op) -> Interval:
    """The whole numbers in an interval, without its end for < and >."""
    low, high = number(interval.low), number(interval.high)
    if op is Op.GT and low is not None:
        return Interval(Fraction(math.floor(low) + 1), None)
    if op is Op.LT and high is not None:
        return Interval(None, Fraction(math.ceil(high) - 1))
    return interval
