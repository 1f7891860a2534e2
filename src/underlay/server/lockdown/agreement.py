"""Whether a query in DuckDB's SQL has the same answer on Spark, as far as its syntax tree tells.

Both parsers must read the text alike, and each node and function must be on a list of those whose answers agree. All
else runs on DuckDB.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from underlay.server.lockdown.tree import Node, nodes_in

_READ_OTHERWISE = re.compile(r"[\"\\`$#{\[]|\b[eE]'")
"""Names in quotes, escapes, parameters by name, lists and structs: the two parsers disagree about them."""
_CLASSES = frozenset((
    "CONSTANT", "COLUMN_REF", "FUNCTION", "OPERATOR", "COMPARISON", "CONJUNCTION", "CASE", "CAST", "BETWEEN",
    "SUBQUERY", "STAR", "PARAMETER",
))  # fmt: skip
_OPERATORS = frozenset((
    "OPERATOR_COALESCE", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "OPERATOR_NOT", "COMPARE_IN", "COMPARE_NOT_IN",
))  # fmt: skip
_FUNCTIONS = frozenset((
    "count", "count_star", "sum", "min", "max", "avg", "+", "-", "*", "abs", "length", "~~", "!~~", "year", "month",
    "day",
))  # fmt: skip
_TYPES = frozenset((
    "SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE", "BASE_TABLE", "SUBQUERY", "JOIN", "EMPTY", "ORDER_MODIFIER",
    "LIMIT_MODIFIER", "DISTINCT_MODIFIER", "ORDER_DEFAULT", "ASCENDING", "DESCENDING",
))  # fmt: skip
_SETS = frozenset(("UNION", "EXCEPT", "INTERSECT"))
_JOINS = frozenset(("INNER", "LEFT", "RIGHT", "OUTER", "SEMI", "ANTI"))
_CASTS = frozenset(("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"))
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?")
_DEFAULT = "ORDER_DEFAULT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """`why_not`: what may be answered otherwise on Spark; None for nothing. `are_nulls_last`: Spark must be told to
    sort so, since the text leaves it to the engine."""

    why_not: str | None = None
    are_nulls_last: bool = False


def agreement_of(text: str, tree: Node) -> Agreement:
    """How far the engines agree on a query."""
    if _READ_OTHERWISE.search(text):
        return Agreement(why_not="Spark reads quotes, escapes and brackets in another way")
    nodes = list(nodes_in(tree))
    unlike = next((found for node in nodes if (found := _unlike(node)) is not None), None)
    if unlike is not None:
        return Agreement(why_not=f"Spark may answer {unlike} in another way")
    has_using = any(node.get("using_columns") for node in nodes)
    if has_using and any(node.get("class") == "STAR" for node in nodes):
        return Agreement(why_not="Spark has the columns of USING in another order")
    nulls = {node["null_order"] == _DEFAULT for node in nodes if "null_order" in node}
    if len(nulls) > 1:
        return Agreement(why_not="only some of its sort keys say where nulls go")
    return Agreement(are_nulls_last=nulls == {True})


def tables_of(tree: Node) -> Collection[str]:
    """The tables that a query names, as `dataset.table`; versions and system views among them."""
    found = (node for node in nodes_in(tree) if node.get("type") == "BASE_TABLE")
    return {f"{node['schema_name']}.{node['table_name']}".lower() for node in found if node.get("schema_name")}


def _unlike(node: Node) -> str | None:
    """What of a node may have another answer."""
    found, kind = node.get("class"), node.get("type")
    if found is None:
        return _unlike_relation(node, kind) if isinstance(kind, str) else None
    if found not in _CLASSES:
        return str(found).lower()
    match found:
        case "FUNCTION":
            name = str(node.get("function_name", "")).lower()
            is_plain = name in _FUNCTIONS and not (node.get("order_bys") or {}).get("orders")
            return None if is_plain else f"{name}()"
        case "OPERATOR" if kind not in _OPERATORS:
            return str(kind).lower()
        case "STAR":
            others = ("columns", "exclude_list", "replace_list", "rename_list", "qualified_exclude_list", "expr")
            return "this form of *" if any(node.get(name) for name in others) else None
        case "CAST":
            value = (node.get("child") or {}).get("value") or {}
            text = value.get("value")
            is_moment = isinstance(text, str) and _MOMENT.fullmatch(text) is not None
            is_plain = is_moment and (node.get("cast_type") or {}).get("id") in _CASTS and not node.get("try_cast")
            return None if is_plain else "a cast"
    return None


def _unlike_relation(node: Node, kind: str) -> str | None:
    if kind not in _TYPES and "id" not in node:  # a type, of a constant or a cast, has an id
        return kind.lower()
    if node.get("sample"):
        return "a sample"
    if node.get("qualify"):
        return "QUALIFY"
    if kind == "SELECT_NODE":
        return None if node.get("aggregate_handling") == "STANDARD_HANDLING" else "GROUP BY ALL"
    if kind == "SET_OPERATION_NODE" and node.get("setop_type") not in _SETS:
        return "a union by name"
    if kind == "JOIN" and (node.get("join_type") not in _JOINS or node.get("ref_type") not in ("REGULAR", "CROSS")):
        return "this form of JOIN"
    return "DISTINCT ON" if node.get("distinct_on_targets") else None
