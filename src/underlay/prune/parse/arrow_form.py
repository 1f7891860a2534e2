"""The serialised form of an Arrow expression, as a tree.

Arrow does not expose the tree of an expression, but it pickles one: an IPC file with one record batch, whose columns
are literals and options, and whose schema's metadata lists calls, fields and literals in prefix order. Names stand
there as they are, without quotes, so that nothing is parsed: no column name or literal can be mistaken for something
else.

    | key | value | then |
    |---|---|---|
    | call | name of the function | arguments, options if there are any, end |
    | end | name of the function | |
    | field_ref | name of a column | |
    | nested_field_ref | number of steps | one reference for each step |
    | literal, options | index of a column of the batch | |
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from underlay.prune.predicates.operand import ColumnPath

AnyScalar: TypeAlias = "pa.Scalar[Any]"  # Any: of every type

_KINDS = frozenset((b"call", b"end", b"field_ref", b"nested_field_ref", b"literal", b"options"))
_METADATA_SLOT = 2
"""Place of the metadata's pointer in the struct ArrowSchema, after the format and the name."""


_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
"""A prototype of our own: the types of `ctypes.pythonapi`'s functions are shared by the whole process."""


class UnknownForm(Exception):
    """The expression has no serialised form, or one that this version of Underlay does not know."""


@dataclass(frozen=True, slots=True)
class _Node:
    begin: int
    end: int
    """The node's position among the entries of the form."""


@dataclass(frozen=True, slots=True)
class FieldNode(_Node):
    """A column, or a field inside structs."""

    path: ColumnPath


@dataclass(frozen=True, slots=True)
class LiteralNode(_Node):
    """A constant with its exact Arrow type."""

    value: AnyScalar


@dataclass(frozen=True, slots=True)
class CallNode(_Node):
    """A function of other nodes. `options` has the fields of its options class and their exact types."""

    function: str
    arguments: tuple[Node, ...]
    options: pa.StructScalar | None


Node = FieldNode | LiteralNode | CallNode
_Entry = tuple[bytes, bytes]


class ArrowForm:
    """An expression taken apart. Raises UnknownForm when that is not possible."""

    def __init__(self, expression: pc.Expression) -> None:
        self._build, self._batch = _serialised(expression)
        self._entries = _ordered_metadata(self._batch.schema)
        if not {key for key, _ in self._entries} <= _KINDS:
            raise UnknownForm("an entry of an unknown kind")
        self.root = self._tree()

    def expression(self, node: Node) -> pc.Expression:
        """The node as an expression of its own."""
        entries = self._entries[node.begin : node.end]
        metadata = pa.KeyValueMetadata(entries)  # type: ignore[arg-type]  # pairs keep repeated keys
        # a batch without columns would have no row, and Arrow wants one
        batch = self._batch if self._batch.num_columns else pa.record_batch({"": pa.nulls(1)})
        schema = batch.schema.with_metadata(metadata)  # type: ignore[arg-type]  # it takes these too
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, schema) as file:
            file.write_batch(pa.record_batch(batch.columns, schema=schema))
        return self._build(sink.getvalue())

    def _tree(self) -> Node:
        """Every entry belongs to one expression. A stack, not recursion: a chain of AND is as deep as it is long."""
        opened: list[tuple[int, str, list[Node], list[pa.StructScalar]]] = []
        found: list[Node] = []
        at = 0
        while at < len(self._entries):
            begin, (key, value) = at, self._entries[at]
            into = opened[-1][2] if opened else found
            at += 1
            if key == b"call":
                opened.append((begin, _text(value), [], []))
            elif key == b"options" and opened:
                opened[-1][3].append(self._options(value))
            elif key == b"end" and opened and opened[-1][1] == _text(value):
                call_begin, function, arguments, options = opened.pop()
                if len(options) > 1:
                    raise UnknownForm("a call with two options")
                call = CallNode(call_begin, at, function, tuple(arguments), options[0] if options else None)
                (opened[-1][2] if opened else found).append(call)
            elif key == b"literal":
                into.append(LiteralNode(begin, at, self._scalar(value)))
            elif key in (b"field_ref", b"nested_field_ref"):
                path, at = self._path(begin)
                into.append(FieldNode(begin, at, path))
            else:
                raise UnknownForm(f"{_text(key)} out of place")
        if opened or len(found) != 1:
            raise UnknownForm("not one expression")
        return found[0]

    def _path(self, at: int) -> tuple[ColumnPath, int]:
        if at >= len(self._entries):
            raise UnknownForm("a reference without a name")
        key, value = self._entries[at]
        if key == b"field_ref":
            return (_text(value),), at + 1
        if key != b"nested_field_ref":
            raise UnknownForm("a reference without a name")
        path: ColumnPath = ()
        at += 1
        for _ in range(_index(value, len(self._entries))):
            steps, at = self._path(at)
            path += steps
        return path, at

    def _scalar(self, index: bytes) -> AnyScalar:
        scalar: AnyScalar = self._batch.column(_index(index, self._batch.num_columns))[0]
        return scalar

    def _options(self, index: bytes) -> pa.StructScalar:
        options = self._scalar(index)
        if not isinstance(options, pa.StructScalar):
            raise UnknownForm("options that are not a struct")
        return options


def columns_below(node: Node) -> Iterator[ColumnPath]:
    """Every column that a node names, in order."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, FieldNode):
            yield one.path
        elif isinstance(one, CallNode):
            waiting += reversed(one.arguments)


def _serialised(expression: pc.Expression) -> tuple[Callable[[pa.Buffer], pc.Expression], pa.RecordBatch]:
    """The function that rebuilds an expression from its serialised form, and that form."""
    try:
        reduced = expression.__reduce__()
    except pa.ArrowException as error:  # a column by its number, or a literal that is an array
        raise UnknownForm(str(error)) from None
    match reduced:
        case (build, (pa.Buffer() as buffer,)) if callable(build):
            pass
        case _:
            raise UnknownForm("pyarrow pickles expressions in another way")
    try:
        with pa.ipc.open_file(buffer) as file:
            if file.num_record_batches != 1 or file.get_batch(0).num_rows != 1:
                raise UnknownForm("not one row of literals")
            return build, file.get_batch(0)
    except pa.ArrowException as error:
        raise UnknownForm(str(error)) from None


def _ordered_metadata(schema: pa.Schema) -> list[_Entry]:
    """The pairs of the metadata in order, repeated keys too.

    pyarrow gives a dict, which keeps one value for a key; the C data interface gives them all, as counted bytes.
    """
    capsule = schema.__arrow_c_schema__()  # owns the memory until we return
    address = ctypes.cast(_capsule_pointer(capsule, b"arrow_schema"), ctypes.POINTER(ctypes.c_void_p))[_METADATA_SLOT]
    if address is None:
        raise UnknownForm("no metadata")
    at = address

    def number() -> int:
        nonlocal at
        (found,) = struct.unpack("=i", ctypes.string_at(at, 4))
        at += 4
        return int(found)

    def octets() -> bytes:
        nonlocal at
        size = number()
        found = ctypes.string_at(at, size)
        at += size
        return found

    return [(octets(), octets()) for _ in range(number())]


def _index(text: bytes, count: int) -> int:
    """A number below `count`. Arrow does not check, and would read past the end."""
    if not text.isdigit() or int(text) >= count:
        raise UnknownForm("a number that is out of range")
    return int(text)


def _text(octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        raise UnknownForm("a name that is not UTF-8") from None
