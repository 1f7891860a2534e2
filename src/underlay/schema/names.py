"""Rules for names of columns, and paths of names as a user writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from underlay.errors import InvalidRequest, SchemaMismatch, UnknownColumn, name_hint
from underlay.prune.predicates.operand import format_column
from underlay.schema.table_schema import LeafColumn, TableSchema

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NAME = re.compile(r'"(?P<double>(?:[^"]|"")+)"|`(?P<tick>(?:[^`]|``)+)`|(?P<bare>[^\s"`.,()]+)')


def check_names(names: Iterable[str], above: tuple[str, ...]) -> None:
    """Raises SchemaMismatch for siblings that share a name, and for names that are empty or cannot be printed."""
    seen: set[str] = set()
    for name in names:
        place = format_column((*above, name))
        if not name:
            raise SchemaMismatch("a column has no name", place=place, hint="Give it one.")
        if _CONTROL.search(name):
            raise SchemaMismatch(
                "a column's name holds a control character or half a surrogate pair",
                place=ascii(name),
                hint="Rename the column.",
            )
        if name in seen:
            raise SchemaMismatch("two columns have the same name", place=place, hint="Rename one of them.")
        seen.add(name)


def parse_path(text: str) -> tuple[str, ...]:
    """The names of `a`, `a.b` or `"a b".c`. Raises InvalidRequest."""
    names = []
    at = 0
    stripped = text.strip()
    while match := _NAME.match(stripped, at):
        names.append(_unquoted(match))
        at = match.end()
        if at == len(stripped):
            return tuple(names)
        if stripped[at] != ".":
            break
        at += 1
    raise InvalidRequest("not the name of a column", found=text, hint='Write zone, pos.x or "my column".')


def find_leaf(schema: TableSchema, path: tuple[str, ...]) -> LeafColumn:
    """The scalar column of this path, of which every row has at most one value.

    Raises UnknownColumn, and InvalidRequest for a column that is nested or lies in a list or map.
    """
    leaf = schema.leaf_by_path.get(path)
    place = format_column(path)
    if leaf is None and any(known.path[: len(path)] == path for known in schema.leaves):
        raise InvalidRequest("the column is nested", place=place, hint="Name one of the scalar fields in it.")
    if leaf is None:
        folded = [name.lower() for name in path]
        alike = [one.path for one in schema.leaves if [name.lower() for name in one.path] == folded]
        near = " or ".join(map(format_column, alike))
        hint = (
            f"Did you mean {near}?" if alike else name_hint(place, (format_column(one.path) for one in schema.leaves))
        )
        raise UnknownColumn(f"there is no column {place}", hint=hint)
    if leaf.is_repeated:
        raise InvalidRequest("a row may have many values of it", place=place, hint="Name a column outside lists.")
    return leaf


def find_named(schema: TableSchema, text: str) -> LeafColumn:
    """The scalar column of exactly this name, else of this path. Raises InvalidRequest, and as `find_leaf` does."""
    is_name = (text,) in schema.leaf_by_path
    return find_leaf(schema, (text,) if is_name else parse_path(text))


def _unquoted(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return match["double"].replace('""', '"')
    return match["tick"].replace("``", "`") if match["tick"] is not None else match["bare"]
