"""Builds the smallest footer that decodes chosen chunks: positions, codecs and columns only.

A reader that knows where chunks lie does not need the file's own footer. It gives the chunks it fetched, at whatever
offsets they have in its buffer, and gets the Thrift bytes of a footer for exactly those. Nearly all bytes of a chunk
are constants here, so that it costs four varints and not a tree of values.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec

from underlay.errors import Malformed
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.schema import Leaf, Schema, SchemaNode
from underlay.parquet.thrift.encode import I32, List, Raw, Struct, Value, encode
from underlay.parquet.thrift.tree import ThriftKind, parse
from underlay.runtime.locks import cached_property

_ELEMENTS = 2
_CHILD_COUNT = 5
_ENCODINGS = b"\x35\x00\x06\x10"  # a list of PLAIN, RLE, RLE_DICTIONARY: readers do not decode by it
_NO_OFFSET = b"\x26\x00"


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """One column chunk as it lies in the buffer that will be decoded."""

    begin: int
    size: int
    codec: int
    value_count: int


class MinimalColumns:
    """The columns of a file's schema, from the Thrift list of schema elements that a footer holds."""

    def __init__(self, elements: bytes) -> None:
        data = encode(Struct({1: I32(1), _ELEMENTS: Raw(ThriftKind.LIST, elements), 4: List(ThriftKind.STRUCT, ())}))
        self._tree = parse(data)
        entry = self._tree.field(0, _ELEMENTS)
        if entry is None:
            raise Malformed("the schema's elements are not a list")
        self._entries = list(self._tree.children(entry))
        self.schema: Schema = Footer(self._tree).schema

    def select(self, leaves: Collection[int], created_by: str | None) -> LeanSchema:
        """The schema with only these leaves, by position, and the groups around them, in the file's order."""
        kept: list[bytes] = []
        cursor = _Cursor(element=0, leaf=0)
        self._keep(self.schema.root, frozenset(leaves), cursor, kept)
        return LeanSchema(
            leaves=tuple(self.schema.leaves[position] for position in sorted(leaves)),
            elements=_list_header(len(kept), ThriftKind.STRUCT) + b"".join(kept),
            created_by=created_by,
        )

    def _keep(self, node: SchemaNode, leaves: frozenset[int], cursor: _Cursor, kept: list[bytes]) -> bool:
        """Append the elements of `node` that have a wanted leaf below; whether there was one."""
        entry = self._entries[cursor.element]
        cursor.element += 1
        if node.physical_type is not None:
            cursor.leaf += 1
            if cursor.leaf - 1 in leaves:
                kept.append(self._tree.raw(entry))
                return True
            return False
        place = len(kept)
        kept.append(b"")
        count = sum(self._keep(child, leaves, cursor, kept) for child in node.children)
        if not count and node is not self.schema.root:
            del kept[place:]
            return False
        kept[place] = self._tree.raw(entry) if count == len(node.children) else self._with_children(entry, count)
        return True

    def _with_children(self, entry: int, count: int) -> bytes:
        tree = self._tree
        fields: dict[int, Value] = {
            number: Raw(tree.kind(field), tree.raw(field)) for number, field in tree.fields(entry).items()
        }
        fields[_CHILD_COUNT] = I32(count)
        return encode(Struct(dict(sorted(fields.items()))))


@dataclass(slots=True)
class _Cursor:
    element: int
    leaf: int


@dataclass(frozen=True, kw_only=True)
class LeanSchema:
    """Some columns of a file, ready to be written into footers."""

    leaves: tuple[Leaf, ...]
    elements: bytes
    created_by: str | None

    @cached_property
    def _column_heads(self) -> tuple[bytes, ...]:
        """The bytes of each column's chunk up to its codec."""
        return tuple(
            b"".join(
                (
                    _NO_OFFSET,
                    b"\x1c\x15",
                    _zigzag(leaf.physical_type.value),
                    b"\x19",
                    _ENCODINGS,
                    b"\x19",
                    _list_header(len(leaf.path), ThriftKind.BINARY),
                    *(_binary(name.encode()) for name in leaf.path),
                    b"\x15",
                )
            )
            for leaf in self.leaves
        )

    def footer(self, row_counts: Sequence[int], chunks: Sequence[Sequence[Chunk]]) -> bytes:
        """The Thrift bytes of a footer with these row groups; `chunks` has one for each leaf in each of them."""
        parts = [b"\x15\x02\x19", self.elements, b"\x16", _zigzag(sum(row_counts))]
        parts += [b"\x19", _list_header(len(row_counts), ThriftKind.STRUCT)]
        heads = self._column_heads
        for row_count, columns in zip(row_counts, chunks, strict=True):
            parts += [b"\x19", _list_header(len(columns), ThriftKind.STRUCT)]
            total = 0
            for head, chunk in zip(heads, columns, strict=True):
                size = _zigzag(chunk.size)
                total += chunk.size
                parts += [head, _zigzag(chunk.codec), b"\x16", _zigzag(chunk.value_count), b"\x16", size, b"\x16", size]
                parts += [b"\x26", _zigzag(chunk.begin), b"\x00\x00"]
            parts += [b"\x16", _zigzag(total), b"\x16", _zigzag(row_count), b"\x00"]
        if self.created_by is not None:
            parts += [b"\x28", _binary(self.created_by.encode())]
        parts.append(b"\x00")
        return b"".join(parts)


def _zigzag(value: int) -> bytes:
    """The zig-zag varint of a non-negative number."""
    value <<= 1
    if value < 0x80:
        return bytes((value,))
    return _varint(value)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _binary(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _list_header(count: int, kind: ThriftKind) -> bytes:
    if count < 15:
        return bytes((count << 4 | kind.value,))
    return bytes((0xF0 | kind.value,)) + _varint(count)
