"""QuestDB's type code for a Parquet column that QuestDB did not write: the first rule that fits wins.

The rules are QuestDB's, so that a sidecar made here is the one QuestDB would make; they lose the difference between
signed and unsigned integers, and between text that is JSON or ENUM and plain binary.
"""

from __future__ import annotations

from underlay.parquet.footer.logical import LogicalKind, TimeUnit
from underlay.parquet.footer.schema import Leaf
from underlay.pm.format.types import TIMESTAMP_NS, TIMESTAMP_US, UNKNOWN, Tag, array_code, decimal_code
from underlay.values.physical import PhysicalType

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
