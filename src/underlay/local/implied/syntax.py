"""Reads DuckDB's syntax tree of a query, the types of its expressions, and the values of its constants.

The tree is DuckDB's own, as JSON: only the engine that applies operators and literals parses them. A tree of an unknown
form raises NotUnderstood, and then nothing is implied.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa

from underlay.runtime.locks import ProcessLock

Node: TypeAlias = dict[str, Any]  # Any: JSON
AnyScalar: TypeAlias = "pa.Scalar[Any]"  # Any: of every type

_PURE = frozenset(("CONSTANT", "CAST", "FUNCTION", "OPERATOR", "PARAMETER"))
_FUNCTION: Node = {
    "class": "FUNCTION", "type": "FUNCTION", "alias": "", "query_location": 0, "function_name": "typeof",
    "schema": "", "catalog": "", "filter": None, "order_bys": {"type": "ORDER_MODIFIER", "orders": []},
    "distinct": False, "is_operator": False, "export_state": False,
}  # fmt: skip
_CONSISTENT = (
    "SELECT lower(function_name) FROM duckdb_functions() WHERE function_type IN ('scalar', 'macro')"
    " GROUP BY ALL HAVING count(*) FILTER (stability IS DISTINCT FROM 'CONSISTENT') = 0"
)
"""Functions whose overloads all return the same value for the same arguments: no clocks, nothing random."""


_lock = ProcessLock()
_consistent: set[str] = set()


class NotUnderstood(Exception):
    """Nothing can be derived from an expression or a tree."""


@dataclass(frozen=True, slots=True)
class Value:
    """A constant: DuckDB's name of its type, its value, and whether it is an untyped text literal."""

    type: str
    scalar: AnyScalar
    is_text_literal: bool


def read_query(connection: duckdb.DuckDBPyConnection, text: str) -> Node:
    """The tree of one SELECT. Raises NotUnderstood."""
    try:
        ((found,),) = connection.execute("SELECT json_serialize_sql($1::VARCHAR)", [text]).fetchall()
    except duckdb.Error as error:
        raise NotUnderstood(str(error)) from error
    tree = json.loads(found)
    statements = tree.get("statements")
    if tree.get("error") or not isinstance(statements, list) or len(statements) != 1:
        raise NotUnderstood("not one query")
    node: Node = statements[0]
    return node


def write_expression(connection: duckdb.DuckDBPyConnection, query: Node, node: Node) -> str:
    """An expression of a query's tree as text. Raises NotUnderstood."""
    tree = {**query, "node": {**query["node"], "select_list": [node], "where_clause": None}}
    text = _written(connection, tree)
    begin, end = text.find("SELECT "), text.rfind(" FROM ")
    if begin != 0 or end < 0:
        raise NotUnderstood("not a query")
    return text[len("SELECT ") : end]


def write_exactly(connection: duckdb.DuckDBPyConnection, query: Node, node: Node) -> str:
    """The same, so that parsing the text again gives the same value: doubles stay doubles. Raises NotUnderstood."""
    return write_expression(connection, query, _exact(node))


def _written(connection: duckdb.DuckDBPyConnection, tree: Node) -> str:
    whole = json.dumps({"error": False, "statements": [tree]})
    try:
        ((text,),) = connection.execute("SELECT json_deserialize_sql($1::JSON)", [whole]).fetchall()
    except duckdb.Error as error:
        raise NotUnderstood(str(error)) from error
    return str(text)


def conjuncts_of(node: Node | None) -> list[Node]:
    """The parts that AND joins, at any depth, left to right."""
    if node is None:
        return []
    found, waiting = [], [node]
    while waiting:
        one = waiting.pop()
        if one.get("type") == "CONJUNCTION_AND":
            waiting += reversed(one["children"])
        else:
            found.append(one)
    return found


def nodes_below(value: object) -> Iterator[Node]:
    """Every expression and table in a tree, including the tree itself."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if "class" in one or "type" in one:
                yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


class Reader:
    """Asks DuckDB about expressions over one table.

    `query` is a statement over a table with the same columns, whose FROM is reused.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        query: Node,
        parameters: Mapping[str, object],
    ) -> None:
        self._connection = connection
        self._query = query
        self._parameters = parameters
        self._types: dict[str, str] = {}
        self._values: dict[str, Value] = {}

    def load(self, condition: Node) -> None:
        """Learn the types of all expressions in a condition, and the values of its constants, in one query.

        Raises NotUnderstood when DuckDB refuses one of them.
        """
        computed: dict[str, Node] = {}
        constants: dict[str, Node] = {}
        waiting = [condition]
        while waiting:
            one = waiting.pop()
            if "class" not in one:
                continue
            if self.is_constant(one):
                constants[_key(one)] = one
            else:
                computed[_key(one)] = one
                waiting += _children(one)
        asked = [_typeof(one) for one in (*computed.values(), *constants.values())]
        row = self._ask([*asked, *constants.values()])
        types = row[: len(asked)]
        for key, kind in zip((*computed, *constants), types, strict=True):
            self._types[key] = kind.as_py()
        for (key, one), value in zip(constants.items(), row[len(asked) :], strict=True):
            self._values[key] = Value(self._types[key], value, _is_text(one))

    def type_of(self, node: Node) -> str:
        """DuckDB's name of an expression's type."""
        found = self._types.get(_key(node))
        if found is None:
            raise NotUnderstood("an expression of unknown type")
        return found

    def value_of(self, node: Node, cast_to: str | None = None) -> Value:
        """The value of a constant, or of text as a value of another type."""
        found = self._values.get(_key(node))
        if found is None:
            raise NotUnderstood("not a constant")
        if cast_to is None or not found.is_text_literal or not found.scalar.is_valid:
            return found
        (scalar,) = self._run(f"SELECT CAST($1 AS {cast_to})", {"1": found.scalar.as_py()})
        return Value(cast_to, scalar, is_text_literal=False)

    def is_constant(self, node: Node) -> bool:
        """Whether an expression has one value for all rows of a query."""
        kind = node["class"]
        if kind not in _PURE or (kind == "OPERATOR" and node["type"] == "OPERATOR_TRY"):
            return False
        if kind == "FUNCTION":
            name = node["function_name"].lower()
            reads_clock = name == "age" and len(node["children"]) == 1  # DuckDB calls it consistent
            if reads_clock or name not in _consistent_functions(self._connection):
                return False
        return all(map(self.is_constant, _children(node)))

    def _ask(self, expressions: Sequence[Node]) -> list[AnyScalar]:
        chosen = [_exact(one) for one in expressions]
        tree = {**self._query, "node": {**self._query["node"], "select_list": chosen, "where_clause": None}}
        used = {one["identifier"] for one in nodes_below(list(expressions)) if one.get("class") == "PARAMETER"}
        if not used <= self._parameters.keys():
            raise NotUnderstood("a parameter without a value")
        return self._run(_written(self._connection, tree), {name: self._parameters[name] for name in used})

    def _run(self, text: str, parameters: dict[str, object]) -> list[AnyScalar]:
        try:
            table = self._connection.execute(text, parameters or None).to_arrow_table()
        except duckdb.Error as error:
            raise NotUnderstood(str(error)) from error
        return [column[0] for column in table.columns]


def _consistent_functions(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """The installed DuckDB's consistent functions, queried once."""
    with _lock:
        if not _consistent:
            _consistent.update([name for (name,) in connection.execute(_CONSISTENT).fetchall()])
        return frozenset(_consistent)


def _children(node: Node) -> list[Node]:
    """The direct children of an expression."""
    found = [node[name] for name in ("left", "right", "child", "input", "lower", "upper") if node.get(name)]
    if node["class"] in ("SUBQUERY", "LAMBDA", "WINDOW", "CASE", "COLLATE") or node.get("filter"):
        raise NotUnderstood(node["class"])
    return [*found, *node.get("children", ())]


def _is_text(node: Node) -> bool:
    return bool(node["class"] == "CONSTANT" and node["value"]["type"]["id"] == "VARCHAR")


def _key(node: Node) -> str:
    return json.dumps(node, sort_keys=True)


def _typeof(node: Node) -> Node:
    return {**_FUNCTION, "children": [node]}


def _exact(value: Any) -> Any:  # noqa: ANN401  # JSON
    """The same tree with doubles as casts of text: DuckDB writes 1e0 as 1.0, and reads a decimal."""
    if isinstance(value, list):
        return [_exact(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("class") == "CONSTANT" and value["value"]["type"]["id"] in ("DOUBLE", "FLOAT"):
        kind = value["value"]["type"]
        text = {"type": {"id": "VARCHAR", "type_info": None}, "is_null": False, "value": repr(value["value"]["value"])}
        cast = {"class": "CAST", "type": "OPERATOR_CAST", "alias": "", "query_location": 0, "try_cast": False}
        return {**cast, "child": {**value, "value": text}, "cast_type": kind}
    return {name: _exact(one) for name, one in value.items()}
