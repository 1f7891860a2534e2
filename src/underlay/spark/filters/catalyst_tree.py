"""Reads a Catalyst expression as a tree, from the JSON that the JVM prints, and the values of its literals.

Text in that JSON is not exact for dates, times and bytes, so these are fetched one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import msgspec
import numpy as np

from underlay.prune.predicates.instant import Instant
from underlay.prune.predicates.operand import ColumnPath, Operand

_PACKAGE = "org.apache.spark.sql.catalyst.expressions."
_WHOLE = frozenset({"byte", "short", "integer", "long"})
_DECIMAL = re.compile(r"decimal\(\d+,-?\d+\)")
_DAYS_TO_1970 = date(1970, 1, 1).toordinal()
_MOST_LEVELS = 100
"""Deeper expressions are not translated: Python's stack is limited."""
_UNREADABLE = "\ufffd"
"""Java's replacement for bytes of a string that are not UTF-8."""
_OF_FILES = frozenset(
    {"file_path", "file_name", "file_size", "file_block_start", "file_block_length", "file_modification_time"}
)
ASKED_FOR = frozenset({"date", "timestamp", "timestamp_ntz", "binary"})
"""Types whose text is inexact."""


class Unknown(Exception):
    """This part of a filter cannot be translated."""


class Node(msgspec.Struct, rename="kebab"):
    """One node of an expression's JSON, with only the fields that we use."""

    class_: str = msgspec.field(name="class")
    num_children: int
    name: str | None = None
    data_type: object = msgspec.field(name="dataType", default=None)
    value: object = None
    ordinal: int | None = None
    nullable: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalystTree:
    """An expression. `place` is its number in the order of the walk, by which we find it in the JVM."""

    node: Node
    place: int
    children: tuple[CatalystTree, ...]

    @property
    def kind(self) -> str:
        """The name of its class, without Catalyst's package."""
        return self.node.class_.removeprefix(_PACKAGE)


_decoder = msgspec.json.Decoder(list[Node])


def try_parse(text: str) -> CatalystTree | None:
    """The tree of an expression's JSON, whose nodes are listed in the order of a walk; None for an unknown form."""
    try:
        return _tree(enumerate(_decoder.decode(text)), _MOST_LEVELS)
    except (msgspec.DecodeError, Unknown):
        return None


def _tree(nodes: Iterator[tuple[int, Node]], levels: int) -> CatalystTree:
    found = next(nodes, None)
    if found is None or not levels:
        raise Unknown
    place, node = found
    children = tuple(_tree(nodes, levels - 1) for _ in range(node.num_children))
    return CatalystTree(node=node, place=place, children=children)


def column_and_type(tree: CatalystTree) -> tuple[ColumnPath, object]:
    """The path and type of a bare column, or of a field of structs. Raises Unknown for anything else.

    A field is found by its number: its name in the expression is as the user spelt it.
    """
    if tree.kind == "AttributeReference" and tree.node.name is not None and not _may_be_of_a_file(tree.node):
        return (tree.node.name,), tree.node.data_type
    if tree.kind == "GetStructField" and tree.node.ordinal is not None:
        path, above = column_and_type(tree.children[0])
        fields = above.get("fields") if isinstance(above, dict) else None
        if isinstance(fields, list) and tree.node.ordinal < len(fields):
            field = fields[tree.node.ordinal]
            return (*path, str(field["name"])), field["type"]
    raise Unknown


def _may_be_of_a_file(node: Node) -> bool:
    """Whether a column may be a field of a file's `_metadata`: Spark shows those with bare names, and as never null."""
    return node.name in _OF_FILES and node.nullable is False


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


def read_moment(kind: str, text: str) -> Operand:
    """A date or time by its number in text. Raises Unknown."""
    if kind == "binary":
        raise Unknown
    return exact_value(kind, int(text))
