"""Checks the plan that Spark's parser made of a text, before anything of it is resolved: analysis evaluates some
expressions, and `spark.sql` runs commands at once.

Every object that the plan holds is looked at, by its class, whether it is a child of a node, hidden in a tuple or in a
map: what is on no list is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from underlay.errors import InvalidRequest
from underlay.spark.jvm.gateway import JavaObject, call, call_number, call_text
from underlay.spark.jvm.plan_nodes import items_of
from underlay.spark.serving.functions import ALLOWED_FUNCTIONS, ALLOWED_TABLE_FUNCTIONS, LITERAL_FUNCTIONS
from underlay.spark.serving.nodes import ALLOWED_NODES

MOST_BYTES = 64 << 10
MOST_WORDS = 10_000
MOST_NESTED = 100
MOST_OBJECTS = 50_000
_PACKAGES = r"(?:(?:analysis|expressions(?:\.aggregate)?|plans(?:\.logical)?)\.)?"
_NODE = re.compile(rf"org\.apache\.spark\.sql\.catalyst\.{_PACKAGES}(\w+\$?(?:\w+\$)?)")
_VALUES = (
    "org.apache.spark.sql.types.",
    "org.apache.spark.sql.catalyst.expressions.Literal",
    "org.apache.spark.sql.catalyst.expressions.ExprId",
    "org.apache.spark.sql.catalyst.plans.logical.LocalRelation",
    "scala.Enumeration$Val",
)
"""Constants, rows of them, and types: nothing in them is evaluated. The parser makes rows of VALUES with constants."""
_PRODUCTS = re.compile(r"scala\.(?:Some|Tuple\d+)")
_MAPS = re.compile(r"scala\.collection\.(?:im)?mutable\.(?:\w*Map\b.*)")
_SEQUENCES = re.compile(r"scala\.collection\.(?:im)?mutable\.\S+")
_NOTHING = "scala.None$"
_OPTIONS = "org.apache.spark.sql.util.CaseInsensitiveStringMap"
_METADATA = "_metadata"
"""The hidden column of a file's path."""
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(slots=True)
class CheckedPlan:
    """A plan that may run. `tables` are the relations that it names with two parts, `queries` the names of WITH."""

    plan: JavaObject
    tables: list[tuple[str, ...]] = field(default_factory=list)
    queries: set[str] = field(default_factory=set)


def check_size(text: str) -> None:
    """Raise InvalidRequest for a text that Spark's parser should not be given."""
    if len(text.encode(errors="surrogatepass")) > MOST_BYTES:
        raise InvalidRequest("the statement is too long for Spark", expected=f"at most {MOST_BYTES:,} bytes")
    words = _WORD.findall(text)
    if len(words) > MOST_WORDS:
        raise InvalidRequest(
            "the statement has too many words for Spark", expected=f"at most {MOST_WORDS:,}", found=len(words)
        )
    depth = most = 0
    for word in words:  # brackets inside of texts count too: better than a lexer that reads quotes another way
        depth += (word in "([{<") - (word in ")]}>")
        most = max(most, depth)
    if most > MOST_NESTED:
        raise InvalidRequest("the statement is nested too deeply", expected=f"at most {MOST_NESTED} levels")


def check_plan(plan: JavaObject) -> CheckedPlan:
    """The plan, if all of it may run. Raises InvalidRequest."""
    found = CheckedPlan(plan)
    left: list[object] = [plan]
    for _ in range(MOST_OBJECTS):
        if not left:
            return found
        left.extend(_inside(left.pop(), found))
    raise InvalidRequest("the statement says too much", hint="Run parts of it.")


def _inside(one: object, found: CheckedPlan) -> Iterator[object]:
    """What an object of a plan holds. Raises InvalidRequest for one that may not be there."""
    if one is None or isinstance(one, bool | int | float):
        return
    if isinstance(one, str):
        if one.lower() == _METADATA:
            raise InvalidRequest("the column _metadata is not available")
        return
    held = JavaObject(one)
    name = call_text(call(held, "getClass"), "getName")
    if name == _NOTHING or name.startswith(_VALUES):
        return
    if name == _OPTIONS:
        if not call(held, "isEmpty"):
            raise InvalidRequest("options of tables are not available")
    elif _MAPS.fullmatch(name):
        yield from items_of(call(call(held, "values"), "toSeq"))
    elif _SEQUENCES.fullmatch(name):
        yield from items_of(held)
    elif _PRODUCTS.fullmatch(name):
        yield from _parts(held)
    else:
        node = _NODE.fullmatch(name)
        if node is None or node[1] not in ALLOWED_NODES:
            raise InvalidRequest("this form of query is not available", found=_shown(name))
        if node[1] in _CHECKS:
            _CHECKS[node[1]](held, found)
        yield from _parts(held)


def _parts(product: JavaObject) -> Iterator[object]:
    return (call(product, "productElement", place) for place in range(call_number(product, "productArity")))


def _shown(name: str) -> str:
    return name.rpartition(".")[2].rstrip("$").removeprefix("Unresolved")


def _check_function(node: JavaObject, _: CheckedPlan) -> None:
    parts = [str(part) for part in items_of(call(node, "nameParts"))]
    _check_name(parts, is_allowed=parts[-1].lower() in ALLOWED_FUNCTIONS)


def _check_table_function(node: JavaObject, _: CheckedPlan) -> None:
    parts = [str(part) for part in items_of(call(node, "name"))]
    _check_name(parts, is_allowed=parts[-1].lower() in ALLOWED_TABLE_FUNCTIONS)


def _check_generator(node: JavaObject, _: CheckedPlan) -> None:
    name = call(node, "name")
    is_bare = bool(call(call(name, "database"), "isEmpty")) and bool(call(call(name, "catalog"), "isEmpty"))
    function = call_text(name, "funcName")
    _check_name([function], is_allowed=is_bare and function.lower() in ALLOWED_FUNCTIONS)


def _check_name(parts: list[str], *, is_allowed: bool) -> None:
    if len(parts) != 1 or not is_allowed:
        raise InvalidRequest(
            f"the function {'.'.join(parts).lower()} is not available",
            hint="SQL over HTTP calls functions of values, and reaches the lake's tables only.",
        )


def _check_column(node: JavaObject, _: CheckedPlan) -> None:
    parts = [str(part) for part in items_of(call(node, "nameParts"))]
    if len(parts) == 1 and parts[0].lower() in LITERAL_FUNCTIONS:
        raise InvalidRequest(
            f"the function {parts[0].lower()} is not available", hint="Write the table's name before a column's."
        )


def _check_relation(node: JavaObject, found: CheckedPlan) -> None:
    if call(node, "isStreaming"):
        raise InvalidRequest("streams are not available")
    found.tables.append(tuple(str(part) for part in items_of(call(node, "multipartIdentifier"))))


def _check_travel(node: JavaObject, _: CheckedPlan) -> None:
    """A time that is computed would be computed before the query runs."""
    moment = call(node, "timestamp")
    if not call(moment, "isEmpty"):
        kind = call_text(call(call(moment, "get"), "getClass"), "getSimpleName")
        if kind != "Literal":
            raise InvalidRequest("TIMESTAMP AS OF takes a text", expected="such as '2026-01-31 12:00:00'", found=kind)


def _check_with(node: JavaObject, found: CheckedPlan) -> None:
    found.queries |= {str(call(one, "_1")).lower() for one in items_of(call(node, "cteRelations"))}


_CHECKS: Mapping[str, Callable[[JavaObject, CheckedPlan], None]] = {
    "UnresolvedFunction": _check_function,
    "UnresolvedTableValuedFunction": _check_table_function,
    "UnresolvedGenerator": _check_generator,
    "UnresolvedAttribute": _check_column,
    "UnresolvedRelation": _check_relation,
    "RelationTimeTravel": _check_travel,
    "UnresolvedWith": _check_with,
}
