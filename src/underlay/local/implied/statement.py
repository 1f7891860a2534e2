"""Derives what a whole statement implies for the tables that it reads: no other row can affect the answer.

It does so only if DuckDB's own tree shows it plainly: wherever the statement names the table, it is in the FROM of a
SELECT, alone or in joins that yield no row without a row of the table; so a row that WHERE refuses may as well not
exist. In a join, only columns written with the table's name count. Otherwise nothing is implied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import duckdb
import pyarrow as pa

from underlay.local.implied.derive import implied_by_parts
from underlay.local.implied.syntax import Node, NotUnderstood, conjuncts_of, nodes_below, read_query
from underlay.prune import TRUE, Predicate
from underlay.prune.parse.parameters import key_of
from underlay.prune.predicates.normalise import normalise
from underlay.prune.predicates.predicate import And, Or
from underlay.runtime.locks import ProcessLock

TableName = tuple[str, str]
_MOST_KNOWN = 256
_PLAIN_JOINS = ("REGULAR", "CROSS", "NATURAL")
_KEPT_SIDES = {
    "INNER": ("left", "right"),
    "LEFT": ("left",),
    "RIGHT": ("right",),
    "SEMI": ("left",),
    "ANTI": ("left",),
}
"""The sides of a join that contribute a row to every row of the result. Dropping a row of the other side may create a
row of nulls, which WHERE may accept."""
_lock = ProcessLock()
_known: dict[object, dict[TableName, Predicate]] = {}
"""The implied predicates of statements, by text, tables and values. They stay true, since no clock is read."""


def implied_by_statement(
    connection: duckdb.DuckDBPyConnection,
    text: str,
    tables: Mapping[TableName, pa.Schema],
    parameters: Sequence[object] | Mapping[str, object] | None,
) -> dict[TableName, Predicate]:
    """For each table, by schema and name, what every relevant row must match."""
    values = _by_name(parameters)
    key = text, tuple(tables.items()), key_of(values)
    with _lock:
        if key in _known:
            return _known[key]
    try:
        tree = read_query(connection, text)
        found = dict(_implied(connection, tree, tables, values))
    except (NotUnderstood, KeyError, TypeError):  # a tree of another form implies nothing
        found = {}
    with _lock:
        if len(_known) >= _MOST_KNOWN:
            _known.pop(next(iter(_known)))
        _known[key] = found
    return found


def _by_name(parameters: Sequence[object] | Mapping[str, object] | None) -> dict[str, object]:
    if isinstance(parameters, Mapping):
        return dict(parameters)
    return {str(at): value for at, value in enumerate(parameters or (), 1)}


def _implied(
    connection: duckdb.DuckDBPyConnection,
    tree: Node,
    tables: Mapping[TableName, pa.Schema],
    parameters: Mapping[str, object],
) -> Iterator[tuple[TableName, Predicate]]:
    nodes = list(nodes_below(tree))
    places = {
        id(place.table): place
        for one in nodes
        if one.get("type") == "SELECT_NODE"
        for place in _places(one, one["from_table"], is_joined=False)
    }
    for name, schema in tables.items():
        uses = [one for one in nodes if one.get("type") == "BASE_TABLE" and _names(one, name)]
        found = [places[id(one)] for one in uses if id(one) in places]
        if not uses or len(uses) != len(found) or not all(map(_is_plain, found)):
            continue
        predicates = tuple(
            normalise(And(tuple(implied_by_parts(connection, _parts(place, name, schema), schema, parameters))))
            for place in found
        )
        if TRUE not in predicates:
            yield name, normalise(Or(predicates))


class _Place(NamedTuple):
    """A table in the FROM of a SELECT; every row of the answer comes from one of its rows."""

    select: Node
    table: Node
    is_joined: bool


def _places(select: Node, table: Node, *, is_joined: bool) -> Iterator[_Place]:
    if table.get("type") != "JOIN":
        yield _Place(select, table, is_joined)
        return
    if table["ref_type"] not in _PLAIN_JOINS or table["sample"] or table["alias"]:
        return
    for side in _KEPT_SIDES.get(table["join_type"], ()):
        yield from _places(select, table[side], is_joined=True)


def _names(node: Node, name: TableName) -> bool:
    return (node["schema_name"].lower(), node["table_name"].lower()) == (name[0].lower(), name[1].lower())


def _is_plain(place: _Place) -> bool:
    """Whether WHERE sees the table's rows as they are: not sampled, and without renamed columns."""
    select, table, _ = place
    return not (table["sample"] or table["column_name_alias"] or table["at_clause"] or select["sample"])


def _parts(place: _Place, name: TableName, schema: pa.Schema) -> list[Node]:
    """The parts of WHERE that are only about the table's columns, with the table's name removed."""
    select, table, is_joined = place
    columns = {column.lower() for column in schema.names}
    alias = (table["alias"] or name[1]).lower()
    if is_joined and _named_alike(select["from_table"], alias) > 1:
        return []
    others = {one["alias"].lower() for one in select["select_list"] if one["alias"]}
    own = columns - others  # in WHERE, these names may mean aliases of SELECT

    def is_own(ref: Node) -> bool:
        names = ref["column_names"]
        is_unclear = len(names) > 1 and names[0].lower() in columns & {alias, name[0].lower()}
        if is_joined and (len(names) == 1 or names[0].lower() != alias):
            return False
        return not is_unclear and _short(names, name, alias)[0].lower() in own

    return [
        _stripped(part, name, alias)
        for part in conjuncts_of(select["where_clause"])
        if all(is_own(one) for one in nodes_below(part) if one.get("class") == "COLUMN_REF")
    ]


def _named_alike(table: Node, alias: str) -> int:
    """How many tables of a FROM have this name."""
    if table.get("type") == "JOIN":
        return _named_alike(table["left"], alias) + _named_alike(table["right"], alias)
    return (table["alias"] or table.get("table_name") or "").lower() == alias


def _short(names: list[str], name: TableName, alias: str) -> list[str]:
    lowered = [one.lower() for one in names]
    if len(names) > 2 and lowered[:2] == [name[0].lower(), name[1].lower()]:
        return names[2:]
    return names[1:] if len(names) > 1 and lowered[0] == alias else names


def _stripped(value: Node, name: TableName, alias: str) -> Node:
    if value.get("class") == "COLUMN_REF":
        return {**value, "column_names": _short(value["column_names"], name, alias)}
    found: Node = {}
    for key, one in value.items():
        if isinstance(one, dict):
            found[key] = _stripped(one, name, alias)
        elif isinstance(one, list):
            found[key] = [_stripped(item, name, alias) if isinstance(item, dict) else item for item in one]
        else:
            found[key] = one
    return found
