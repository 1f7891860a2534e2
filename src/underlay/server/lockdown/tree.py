"""Checks DuckDB's own syntax tree of a query: refuses every node, relation and function that is not on a list."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from underlay.errors import InvalidRequest
from underlay.local.sql.duckdb_errors import no_table
from underlay.server.lockdown.functions import ALLOWED_TABLE_FUNCTIONS, is_allowed

Node: TypeAlias = Mapping[str, Any]  # Any: JSON

_EXPRESSIONS = frozenset((
    "CONSTANT", "COLUMN_REF", "FUNCTION", "OPERATOR", "COMPARISON", "CONJUNCTION", "CASE", "CAST", "BETWEEN",
    "SUBQUERY", "WINDOW", "STAR", "LAMBDA", "LAMBDA_REF", "COLLATE", "PARAMETER", "POSITIONAL_REFERENCE", "DEFAULT",
))  # fmt: skip
_QUERIES = frozenset(("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"))
_RELATIONS = frozenset((
    "BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY", "PIVOT", "SHOW_REF",
))  # fmt: skip
_MODIFIERS = frozenset(("ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER"))
_ORDERS = frozenset(("ORDER_DEFAULT", "ASCENDING", "DESCENDING", "INVALID"))
_TYPES = frozenset((
    "DECIMAL_TYPE_INFO", "LIST_TYPE_INFO", "STRUCT_TYPE_INFO", "ARRAY_TYPE_INFO", "ENUM_TYPE_INFO", "USER_TYPE_INFO",
    "STRING_TYPE_INFO", "ANY_TYPE_INFO", "GENERIC_TYPE_INFO", "UNBOUND_TYPE_INFO", "INTEGER_LITERAL_TYPE_INFO", "TYPE",
))  # fmt: skip
_NODES = _QUERIES | _RELATIONS | _MODIFIERS | _ORDERS | _TYPES
_SHOWN = frozenset(("DESCRIBE", "SUMMARY"))
_CLOCKS = frozenset((
    "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "today", "now",
))  # fmt: skip
"""Names that are calls without parentheses unless a column has the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """What a query may name: `tables` are `dataset.table` in lower case, `inner` the engine's own relations."""

    tables: Collection[str]
    inner: Collection[str]


def check_tree(statement: Node, relations: Relations, unstable: Collection[str]) -> bool:
    """Raise InvalidRequest for anything that is not on a list, TableNotFound for a relation that the caller cannot see.

    Returns whether the same tables always give the same answer: nothing random, no clock, no sample.
    """
    nodes: list[Node] = list(nodes_in(statement))
    queries = {name.lower() for node in nodes for name in _named_queries(node)}
    hidden = sorted(queries & set(relations.inner))
    if hidden:
        raise InvalidRequest(
            "a query of WITH has the name of a view of the engine", found=hidden[0], hint="Give it another name."
        )
    is_stable = True
    for node in nodes:
        _check_kind(node)
        kind = node.get("type")
        if kind == "BASE_TABLE":
            _check_table(node, queries, relations)
        elif kind == "SHOW_REF" and node.get("show_type") not in _SHOWN:
            raise InvalidRequest("this form of SHOW is not available", hint="Write SHOW TABLES, or DESCRIBE a table.")
        elif kind == "TABLE_FUNCTION":
            _check_function(node["function"], ALLOWED_TABLE_FUNCTIONS.__contains__)
        elif node.get("class") in ("FUNCTION", "WINDOW"):
            _check_function(node, is_allowed)
            is_stable = is_stable and node["function_name"].lower() not in unstable
        elif node.get("class") == "COLUMN_REF":
            names = list(node.get("column_names") or [])
            is_stable = is_stable and not (len(names) == 1 and str(names[0]).lower() in _CLOCKS)
        is_stable = is_stable and not node.get("sample")
    return is_stable


def _check_kind(node: Node) -> None:
    found, kind = node.get("class"), node.get("type")
    is_relation = found is None and (not isinstance(kind, str) or kind in _NODES)
    if not is_relation and found not in _EXPRESSIONS:
        raise InvalidRequest("this form of query is not available", found=str(found or kind))


def _check_table(node: Node, queries: Collection[str], relations: Relations) -> None:
    catalog, schema, table = (str(node.get(key) or "") for key in ("catalog_name", "schema_name", "table_name"))
    name = ".".join(part for part in (catalog, schema, table) if part)
    is_query = not schema and not catalog and table.lower() in queries
    is_table = not catalog and f"{schema}.{table}".lower() in relations.tables
    if not is_query and not is_table:
        raise no_table(name, [one for one in relations.tables if "@" not in one])


def _check_function(node: Node, is_one: Callable[[str], bool]) -> None:
    name = str(node.get("function_name", "")).lower()
    if not is_one(name):
        raise refused_function(name)


def refused_function(name: str, place: str | None = None) -> InvalidRequest:
    """The error for a function that is not allowed. An unknown name gets the same error."""
    return InvalidRequest(
        f"the function {name} is not available",
        place=place,
        hint="SQL over HTTP can call only functions of values, and reach only the lake's tables.",
    )


def _named_queries(node: Node) -> Iterator[str]:
    """The names of this node's WITH queries."""
    known = node.get("cte_map")
    if isinstance(known, dict):
        for pair in known.get("map") or ():
            yield str(pair["key"])
    if node.get("type") in ("RECURSIVE_CTE_NODE", "CTE_NODE") and isinstance(node.get("cte_name"), str):
        yield node["cte_name"]


def nodes_in(statement: Node) -> Iterator[Node]:
    """Every object of the tree except values of constants. Iterative, as a tree may be deeper than Python's stack."""
    left: list[Any] = [statement]
    while left:
        found = left.pop()
        if isinstance(found, list):
            left.extend(found)
        elif isinstance(found, dict):
            yield found
            if found.get("class") != "CONSTANT":
                left.extend(child for child in found.values() if isinstance(child, dict | list))
