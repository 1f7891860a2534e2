"""Converts a Parquet schema to a sidecar's header: columns with ids and flags, sorting, designated timestamp."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from underlay.errors import SchemaMismatch, Unsupported
from underlay.parquet.footer.footer import Footer, SortingColumn
from underlay.parquet.footer.logical import LogicalKind, TimeUnit
from underlay.parquet.footer.schema import Leaf, Schema
from underlay.pm.convert.questdb_key import QuestDBKey
from underlay.pm.format.layout import REPETITION_SHIFT, ColumnFlag
from underlay.pm.format.types import TIMESTAMP_NS, TIMESTAMP_US, UNKNOWN, Tag, array_code, decimal_code, tag_of
from underlay.pm.format.values import Generation, Header, SidecarColumn
from underlay.values.physical import PhysicalType, Repetition

# QuestDB's type code for a Parquet column that QuestDB did not write: the first rule that fits wins.
#
# The rules are QuestDB's, so that a sidecar made here is the one QuestDB would make; they lose the difference between
# signed and unsigned integers, and between text that is JSON or ENUM and plain binary.

_FIXED = {16: Tag.LONG128, 32: Tag.LONG256}
_TIMESTAMPS = {TimeUnit.MICROS: TIMESTAMP_US, TimeUnit.NANOS: TIMESTAMP_NS, TimeUnit.MILLIS: int(Tag.DATE)}
_SMALL_INTEGERS = {8: Tag.BYTE, 16: Tag.SHORT}


def infer_type(leaf: Leaf) -> int:
    """The type code of a leaf column, or UNKNOWN."""
    logical = leaf.node.logical
    kind = logical.kind
    # A ConvertedType alone says nothing about time here, although it does to Parquet.
    stated = LogicalKind.NONE if leaf.node.is_logical_from_converted else kind
    match leaf.physical_type:
        case PhysicalType.BOOLEAN:
            return Tag.BOOLEAN
        case PhysicalType.FLOAT:
            return Tag.FLOAT
        case PhysicalType.DOUBLE:
            return array_code(leaf.array_ndims) if leaf.array_ndims else Tag.DOUBLE
        case PhysicalType.INT96:
            return TIMESTAMP_NS if leaf.node.converted_type is None else UNKNOWN
    if kind is LogicalKind.DECIMAL:
        return decimal_code(logical.precision or 0, logical.scale or 0)
    match leaf.physical_type:
        case PhysicalType.INT64:
            if stated is LogicalKind.TIMESTAMP and logical.unit is not None:
                return _TIMESTAMPS[logical.unit]
            return Tag.LONG
        case PhysicalType.INT32:
            if kind is LogicalKind.DATE:
                return Tag.DATE
            if kind is LogicalKind.INT and logical.is_signed:
                return _SMALL_INTEGERS.get(logical.width or 0, Tag.INT)
            return Tag.INT
        case PhysicalType.BYTE_ARRAY:
            return Tag.VARCHAR if kind is LogicalKind.STRING else Tag.BINARY
        case PhysicalType.FIXED_LEN_BYTE_ARRAY:
            length = leaf.node.type_length or 0
            return Tag.UUID if length == 16 and kind is LogicalKind.UUID else _FIXED.get(length, UNKNOWN)
    return UNKNOWN


_MAX_LEVEL = 255
_MAX_KNOWN_COLUMNS = 500
"""Headers with more columns are not remembered: 64 of them would take too much memory."""


def header_of(footer: Footer, key: QuestDBKey | None, generation: Generation) -> Header:
    """The header of the sidecar, without bloom columns: those depend on what becomes of the file's filters."""
    sorting = tuple(_sorting(footer, key))
    if key is None and max(footer.column_count, len(sorting)) <= _MAX_KNOWN_COLUMNS:
        return _known_header(footer.schema, sorting, generation)
    return _header(footer.schema, sorting, generation, key)


def _header(
    schema: Schema, sorting: tuple[tuple[int, bool], ...], generation: Generation, key: QuestDBKey | None = None
) -> Header:
    leaves = schema.leaves
    is_descending = dict(reversed(sorting))  # if a column is named twice, the first counts
    return Header(
        columns=tuple(_column(leaf, key, generation, is_descending.get(leaf.index, False)) for leaf in leaves),
        designated_timestamp=_designated(leaves, sorting, key),
        sorting=tuple(column for column, _ in sorting),
        squash_tracker=key.squash_tracker if key and key.squash_tracker != -1 else None,
    )


_known_header = lru_cache(maxsize=64)(_header)


def _column(leaf: Leaf, key: QuestDBKey | None, generation: Generation, is_descending: bool) -> SidecarColumn:
    if max(leaf.max_def_level, leaf.max_rep_level) > _MAX_LEVEL:
        raise Unsupported("the column is nested too deep for a sidecar", place=".".join(leaf.path))
    told = key.schema[leaf.index] if key else None
    flags = int(leaf.top.repetition) << REPETITION_SHIFT
    ident = -1 if leaf.top.field_id is None else leaf.top.field_id
    if told is not None:
        flags |= ColumnFlag.LOCAL_KEY_IS_GLOBAL if told.format == 1 else 0
        flags |= ColumnFlag.IS_ASCII if told.ascii else 0
        if generation != "9.4" and told.id is not None and told.id >= 0:
            ident = told.id
    return SidecarColumn(
        name=leaf.top.name,
        id=ident,
        type=told.column_type if told else infer_type(leaf),
        flags=flags | (ColumnFlag.DESCENDING if is_descending else 0),
        fixed_byte_length=leaf.node.type_length or 0 if leaf.physical_type is PhysicalType.FIXED_LEN_BYTE_ARRAY else 0,
        physical_type=leaf.physical_type,
        max_rep_level=leaf.max_rep_level,
        max_def_level=leaf.max_def_level,
    )


def _sorting(footer: Footer, key: QuestDBKey | None) -> list[tuple[int, bool]]:
    """(leaf index, descending) of what the file is sorted by."""
    designated = key.designated() if key else None
    if designated is not None:
        return [designated]
    declared = [columns for columns in footer.row_groups.sorting_columns if columns]
    if not declared:
        return []
    wanted = _order(declared[0])
    for columns in declared[1:]:
        if _order(columns) != wanted:
            raise SchemaMismatch("row groups are sorted in different ways", expected=wanted, found=_order(columns))
    return wanted


def _order(columns: tuple[SortingColumn, ...]) -> list[tuple[int, bool]]:
    return [(column.column_index, column.is_descending) for column in columns]


def _designated(leaves: tuple[Leaf, ...], sorting: Sequence[tuple[int, bool]], key: QuestDBKey | None) -> int:
    told = key.designated() if key else None
    if told is not None:
        return told[0]
    if not sorting or sorting[0][1] or not 0 <= sorting[0][0] < len(leaves):
        return -1
    leaf = leaves[sorting[0][0]]
    if key is not None:
        is_timestamp = tag_of(key.schema[leaf.index].column_type) is Tag.TIMESTAMP
    else:
        is_timestamp = leaf.node.logical.kind is LogicalKind.TIMESTAMP and not leaf.node.is_logical_from_converted
    return leaf.index if is_timestamp and leaf.node.repetition is Repetition.REQUIRED else -1
