"""A Parquet file's columns in the shape that Arrow and tables give them: structs, lists and maps.

Parquet writes a list as two groups around its element, and older writers as one or none; by the rules of its
specification, as Arrow reads them, each becomes one list with one element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from underlay.parquet.footer.logical import LogicalKind
from underlay.parquet.footer.schema import Schema, SchemaNode
from underlay.values.physical import Repetition


class ColumnForm(Enum):
    """Whether a column is a scalar, struct, list or map."""

    SCALAR = "a single value"
    STRUCT = "a struct"
    LIST = "a list"
    MAP = "a map"
    UNREADABLE = "a group that no reader understands"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnShape:
    """A column or a part of one. `leaves` are the positions of its leaves in the file, from `begin` up to `end`.

    A list has one child, its element; a map two, key and value.
    """

    node: SchemaNode
    form: ColumnForm
    is_required: bool
    children: tuple[ColumnShape, ...]
    begin: int
    end: int

    @property
    def leaves(self) -> range:
        """Positions among the file's leaves."""
        return range(self.begin, self.end)


def shapes_of(schema: Schema) -> tuple[ColumnShape, ...]:
    """The top-level columns of a file."""
    return tuple(_shapes(schema.root.children, 0))


def _shapes(nodes: tuple[SchemaNode, ...], begin: int) -> Iterator[ColumnShape]:
    for node in nodes:
        shape = _shape(node, begin)
        yield shape
        begin = shape.end


def _shape(node: SchemaNode, begin: int) -> ColumnShape:
    if node.repetition is not Repetition.REPEATED:
        return _annotated(node, begin, is_required=node.repetition is Repetition.REQUIRED)
    element = _annotated(node, begin)  # a repeated field that no LIST group surrounds
    return _made(node, ColumnForm.LIST, (element,), is_required=True)


def _annotated(node: SchemaNode, begin: int, *, is_required: bool = True) -> ColumnShape:
    """The node without regard to its repetition."""
    inner = node.children[0] if len(node.children) == 1 else None
    match node.logical.kind:
        case LogicalKind.LIST | LogicalKind.MAP if inner is None or inner.repetition is not Repetition.REPEATED:
            return _unreadable(node, begin)
        case LogicalKind.LIST if inner is not None:
            return _made(node, ColumnForm.LIST, (_element(inner, begin),), is_required=is_required)
        case LogicalKind.MAP if inner is not None:
            entries = tuple(_shapes(inner.children, begin))
            if len(entries) != 2:
                return _unreadable(node, begin)
            return _made(node, ColumnForm.MAP, entries, is_required=is_required)
    return _plain(node, begin, is_required=is_required)


def _element(repeated: SchemaNode, begin: int) -> ColumnShape:
    """The element of a LIST group: the repeated node's only child, or in files of older writers the node itself."""
    is_itself = (
        len(repeated.children) != 1
        or repeated.children[0].repetition is Repetition.REPEATED
        or repeated.name == "array"
        or repeated.name.endswith("_tuple")
    )
    return _annotated(repeated, begin) if is_itself else _shape(repeated.children[0], begin)


def _plain(node: SchemaNode, begin: int, *, is_required: bool) -> ColumnShape:
    if node.physical_type is not None:
        return ColumnShape(
            node=node, form=ColumnForm.SCALAR, is_required=is_required, children=(), begin=begin, end=begin + 1
        )
    children = tuple(_shapes(node.children, begin))
    if not children:
        return _unreadable(node, begin)
    return _made(node, ColumnForm.STRUCT, children, is_required=is_required)


def _made(node: SchemaNode, form: ColumnForm, children: tuple[ColumnShape, ...], *, is_required: bool) -> ColumnShape:
    return ColumnShape(
        node=node,
        form=form,
        is_required=is_required,
        children=children,
        begin=children[0].begin,
        end=children[-1].end,
    )


def _unreadable(node: SchemaNode, begin: int) -> ColumnShape:
    end = begin + _leaf_count(node)
    return ColumnShape(node=node, form=ColumnForm.UNREADABLE, is_required=False, children=(), begin=begin, end=end)


def _leaf_count(node: SchemaNode) -> int:
    return sum(map(_leaf_count, node.children)) if node.children else int(node.physical_type is not None)
