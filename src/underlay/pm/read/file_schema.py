"""The schema by which a sidecar's columns are decoded, if the caller has one: a footer's or a table's."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from underlay.errors import SchemaMismatch
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.logical import LogicalKind
from underlay.parquet.footer.schema import Leaf, Schema
from underlay.parquet.footer.tail import read_tail
from underlay.parquet.thrift.encode import I32, List, Raw, Struct, Value, encode
from underlay.parquet.thrift.tree import ThriftKind, parse
from underlay.pm.format.values import SidecarColumn
from underlay.values.physical import PhysicalType, Repetition

ARROW_SCHEMA_KEY = b"ARROW:schema"
_DECIMAL_STORAGE = (
    PhysicalType.INT32,
    PhysicalType.INT64,
    PhysicalType.BYTE_ARRAY,
    PhysicalType.FIXED_LEN_BYTE_ARRAY,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSchema:
    """A Parquet schema and, where the writer kept it, the Arrow schema that its columns came from.

    A schema that `is_of_table` says what columns mean and not how a file stores them: a decimal may be in integers or
    bytes, a timestamp in INT96, and a column that may be null may be stored as one that is not.
    """

    schema: Schema
    arrow: bytes | None = None
    is_of_table: bool = False

    @classmethod
    def of_footer(cls, footer: Footer) -> FileSchema:
        """The schema of another footer: of the same file, say, or of a file with equal columns."""
        return cls(schema=footer.schema, arrow=dict(footer.key_values).get(ARROW_SCHEMA_KEY))

    @classmethod
    def of_arrow(cls, schema: pa.Schema) -> FileSchema:
        """The schema that Arrow's own writer gives a file with these columns."""
        sink = pa.BufferOutputStream()
        pq.write_table(schema.empty_table(), sink)
        data = sink.getvalue().to_pybytes()
        tail = read_tail(data, len(data))
        footer = Footer.parse(data[tail.footer_offset : tail.footer_offset + tail.footer_length])
        return replace(cls.of_footer(footer), is_of_table=True)


def elements_of(given: FileSchema, columns: tuple[SidecarColumn, ...]) -> tuple[Value, list[tuple[str, ...]]]:
    """The schema's elements, when its leaves are the columns; paths of the leaves."""
    schema = given.schema
    if len(schema.leaves) != len(columns):
        raise SchemaMismatch(
            "the schema has the wrong number of leaf columns for the sidecar",
            expected=len(columns),
            found=len(schema.leaves),
        )
    pairs = list(zip(columns, schema.leaves, strict=True))
    paths = [leaf.path for leaf in schema.leaves]
    if all(_stored_by(column) == _described_by(leaf) for column, leaf in pairs):
        return Raw(ThriftKind.LIST, schema.raw), paths
    tree = parse(encode(Struct({1: Raw(ThriftKind.LIST, schema.raw)})))
    elements = [tree.value(entry) for entry in tree.children(1)]
    leaves = iter(pairs)
    adapted = [
        element if not isinstance(element, Struct) or 5 in element.fields else _adapted(element, *next(leaves), given)
        for element in elements
    ]
    return List(ThriftKind.STRUCT, tuple(adapted)), paths


def _adapted(element: Struct, column: SidecarColumn, leaf: Leaf, given: FileSchema) -> Struct:
    """The leaf's element as the file stores it. Raises SchemaMismatch when it cannot be the same column."""
    if _stored_by(column) == _described_by(leaf):
        return element
    kind, physical = leaf.node.logical.kind, column.physical_type
    is_same_type = (physical, column.fixed_byte_length) == _described_by(leaf)[:2]
    is_decimal = kind is LogicalKind.DECIMAL and physical in _DECIMAL_STORAGE
    is_instant = kind is LogicalKind.TIMESTAMP and physical == PhysicalType.INT96
    is_flat = len(leaf.path) == 1 and column.max_rep_level == 0 and column.max_def_level <= 1
    if not (given.is_of_table and is_flat and (is_same_type or is_decimal or is_instant)):
        raise SchemaMismatch(
            "the column is stored differently than the schema says (physical type, length, levels)",
            place=".".join(leaf.path),
            expected=_stored_by(column),
            found=_described_by(leaf),
        )
    fields = {field: value for field, value in element.fields.items() if field not in (1, 2, 3)}
    if is_instant:
        fields = {field: value for field, value in fields.items() if field not in (6, 10)}
    fields[1] = I32(physical)
    fields[3] = I32(Repetition.OPTIONAL if column.max_def_level else Repetition.REQUIRED)
    if physical == PhysicalType.FIXED_LEN_BYTE_ARRAY:
        fields[2] = I32(column.fixed_byte_length)
    return Struct(dict(sorted(fields.items())))


def _stored_by(column: SidecarColumn) -> tuple[int, int, int, int]:
    """What decoding depends on: physical type, its length, the levels."""
    return column.physical_type, column.fixed_byte_length, column.max_def_level, column.max_rep_level


def _described_by(leaf: Leaf) -> tuple[int, int, int, int]:
    length = (leaf.node.type_length or 0) if leaf.physical_type is PhysicalType.FIXED_LEN_BYTE_ARRAY else 0
    return int(leaf.physical_type), length, leaf.max_def_level, leaf.max_rep_level
