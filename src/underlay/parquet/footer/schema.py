"""The columns of a Parquet file, from its flat list of schema elements.

The elements are a tree written in depth-first order: the first is the root, and an element with `num_children` is
followed by that many children. Leaves, in order, are the columns that row groups have chunks of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from underlay.errors import Malformed, Unsupported
from underlay.parquet.footer.logical import NONE, LogicalKind, LogicalType, from_converted, from_union
from underlay.parquet.records.records import StructRecords
from underlay.parquet.thrift.tree import ITEM, ThriftKind, ThriftTree
from underlay.values.physical import PhysicalType, Repetition

MAX_SCHEMA_DEPTH = 64
"""How many groups may lie inside each other."""

MAX_SCHEMA_ELEMENTS = 100_000
"""More than any schema has. Each element becomes an object, so this bounds what hostile input can ask for."""

ELEMENTS = 2
"""Field id of the schema in FileMetaData."""


_FIELDS = (
    *(((field,), ThriftKind.I32) for field in (1, 2, 3, 5, 6, 7, 8, 9)),
    ((4,), ThriftKind.BINARY),
    ((10,), ThriftKind.STRUCT),
)
_NAME, _UNION = 8, 9
"""Of a SchemaElement: type, length, repetition, children, converted type, scale, precision, id; name; logical type."""

_KNOWN_SCHEMAS, _KNOWN_BYTES = 64, 1 << 16
"""How many schemas a process remembers, and how long they may be. A table's files share one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaNode:
    """A field: a group with children, or a leaf with a physical type.

    `logical` comes from the LogicalType if the element has one (`logical_member` is then the union's member number, 0
    for none), else from the ConvertedType. Absent numbers are None. A missing repetition counts as REQUIRED, as in
    Thrift.
    """

    name: str
    repetition: Repetition
    physical_type: PhysicalType | None
    type_length: int | None
    field_id: int | None
    logical: LogicalType
    logical_member: int | None
    converted_type: int | None
    children: tuple[SchemaNode, ...]

    @property
    def is_logical_from_converted(self) -> bool:
        """Whether only a ConvertedType gives the logical type."""
        return self.logical_member is None and self.converted_type is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A column. `top` is the top-level field that it is or is inside; `path` has the names from there to the leaf.

    `array_ndims` counts the repeated levels of a column that is nothing but lists: its top-level field is a LIST group
    and no group on the way has a second child. It is 0 for every other column.
    """

    index: int
    path: tuple[str, ...]
    node: SchemaNode
    top: SchemaNode
    physical_type: PhysicalType
    max_def_level: int
    max_rep_level: int
    array_ndims: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """All fields of a file. `raw` is the stored list of schema elements with its header."""

    root: SchemaNode
    leaves: tuple[Leaf, ...]
    raw: bytes

    def __hash__(self) -> int:
        return hash(self.raw)  # the rest follows from it


@dataclass(frozen=True, slots=True)
class _Element:
    node: SchemaNode
    child_count: int


def read_schema(tree: ThriftTree) -> Schema:
    """The schema of a parsed FileMetaData. Takes time in proportion to the number of elements."""
    entry = tree.field(0, ELEMENTS)
    if entry is None or tree.kind(entry) is not ThriftKind.LIST:
        raise Malformed("the footer has no schema", place="footer")
    raw = tree.raw(entry)
    known = _known.get(raw)
    if known is not None:
        return known
    schema = _read(tree, entry, raw)
    if len(raw) <= _KNOWN_BYTES:
        if len(_known) >= _KNOWN_SCHEMAS:
            _known.clear()
        _known[raw] = schema
    return schema


_known: dict[bytes, Schema] = {}
"""By their bytes, which decide everything about them."""


def _read(tree: ThriftTree, entry: int, raw: bytes) -> Schema:
    count = tree.integer(entry)
    if count > MAX_SCHEMA_ELEMENTS:
        raise Unsupported("the schema is too large", expected=f"at most {MAX_SCHEMA_ELEMENTS} elements", found=count)
    elements = list(_elements(tree))
    if not elements:
        raise Malformed("the schema has no root element", place=f"byte {int(tree.begin[entry])}")
    root, after = _group(elements, 0, 1)
    if after != len(elements):
        raise Malformed("the schema has elements outside its root", expected=after, found=len(elements))
    return Schema(root=root, leaves=tuple(_leaves(root)), raw=raw)


def _elements(tree: ThriftTree) -> Iterator[_Element]:
    """The elements one by one, not yet as a tree."""
    records = StructRecords(tree, (ELEMENTS, ITEM))
    values = records.read(_FIELDS)
    begins = records.begins_at(values.entries[_NAME]).tolist()
    elements = zip(values.numbers.T.tolist(), values.present.T.tolist(), values.entries[_UNION].tolist(), strict=True)
    for index, (numbers, present, union) in enumerate(elements):
        place = f"schema element {index}"
        physical, type_length, repetition, children, converted, scale, precision, field_id, _, _ = (
            number if is_there else None for number, is_there in zip(numbers, present, strict=True)
        )
        begin, length = begins[index], numbers[_NAME]
        logical, member = NONE, None
        if union >= 0:
            member, logical = from_union(tree, union)
        elif converted is not None:
            logical = from_converted(converted, precision or 0, scale or 0)
        if begin < 0:
            raise Malformed("a schema element has no name", place=place)
        if physical is None and children is None:
            raise Malformed("a schema element has neither a type nor children", place=place)
        node = SchemaNode(
            name=_name(tree.data[begin : begin + length], place),
            repetition=_repetition(repetition, place),
            physical_type=None if children else _physical(physical, place),
            type_length=type_length,
            field_id=field_id,
            logical=logical,
            logical_member=member,
            converted_type=converted,
            children=(),
        )
        yield _Element(node, children or 0)


def _name(data: bytes, place: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Malformed("a column's name is not UTF-8", place=place, found=data) from None


def _repetition(number: int | None, place: str) -> Repetition:
    if number is None:
        return Repetition.REQUIRED
    if number not in (0, 1, 2):
        raise Malformed("a schema element's repetition does not exist", place=place, expected="0 to 2", found=number)
    return Repetition(number)


def _physical(number: int | None, place: str) -> PhysicalType | None:
    if number is None:
        return None
    if not 0 <= number <= max(PhysicalType):
        raise Unsupported("a column's physical type is not known", place=place, expected="0 to 7", found=number)
    return PhysicalType(number)


def _group(elements: list[_Element], index: int, depth: int) -> tuple[SchemaNode, int]:
    """The node at `index` with everything below it, and the index after all that. Recurses at most 64 deep."""
    node, child_count = elements[index].node, elements[index].child_count
    if depth > MAX_SCHEMA_DEPTH:
        raise Malformed(
            "the schema is too deep", place=f"schema element {index}", expected=f"at most {MAX_SCHEMA_DEPTH}"
        )
    after = index + 1
    if not 0 <= child_count <= len(elements) - after:
        raise Malformed(
            "a schema element's number of children is out of range",
            place=f"schema element {index}",
            expected=f"0 to {len(elements) - after}",
            found=child_count,
        )
    if not child_count:
        return node, after
    children = []
    for _ in range(child_count):
        if after >= len(elements):
            raise Malformed("the schema has fewer elements than its groups ask for", place=f"schema element {index}")
        child, after = _group(elements, after, depth + 1)
        children.append(child)
    return replace(node, children=tuple(children)), after


def _leaves(root: SchemaNode) -> Iterator[Leaf]:
    """The leaves in order, with their levels. The root adds no level."""
    index = 0
    pending: list[tuple[SchemaNode, SchemaNode, tuple[str, ...], int, int, bool]] = [
        (child, child, (child.name,), 0, 0, True) for child in reversed(root.children)
    ]
    while pending:
        node, top, path, definition, repetition, is_chain = pending.pop()
        definition += node.repetition is not Repetition.REQUIRED
        repetition += node.repetition is Repetition.REPEATED
        if node.physical_type is not None:
            is_array = is_chain and node is not top and top.logical.kind is LogicalKind.LIST
            yield Leaf(
                index=index,
                path=path,
                node=node,
                top=top,
                physical_type=node.physical_type,
                max_def_level=definition,
                max_rep_level=repetition,
                array_ndims=repetition if is_array else 0,
            )
            index += 1
        is_chain = is_chain and len(node.children) == 1
        pending += [
            (child, top, (*path, child.name), definition, repetition, is_chain) for child in reversed(node.children)
        ]
