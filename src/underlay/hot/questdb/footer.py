"""A footer with statistics, made from a QuestDB sidecar, for the index.

Which of its statistics are sound (see decision 0064):

| in `_pm` | taken | why |
|---|---|---|
| null count | as it is | a copy of the footer's; absent where that has none |
| bounds of integers, times, floats | as bounds, never as values | only the type tells how long they are, and it fits |
| bounds of text | as bounds, never as values | cut ones are widened, from 10.0.0 on; ordered by bytes |
| the exact bits | no | 9.4 sets them also where it cut a bound, and no version is stored |
| other bounds | no | binary, decimals, addresses, UUIDs: their order is not worth the doubt |
| bloom filters | no | an in-place merge of QuestDB attaches one to the wrong group |

Whether floats hold NaN is not known: QuestDB stores none, but a sidecar does not say who wrote the file.
"""

from __future__ import annotations

from underlay.parquet.thrift.encode import I64, Bool, Struct, ThriftBinary, Value
from underlay.pm.format.sidecar import Sidecar
from underlay.pm.format.statistics import SIDES, Side, bound_spans, null_counts
from underlay.pm.format.types import Tag, tag_of
from underlay.pm.format.values import SidecarColumn
from underlay.pm.read.synthesise import to_footer
from underlay.values.physical import PhysicalType

_BOUND_FIELDS: dict[Side, tuple[int, int]] = {"max": (5, 7), "min": (6, 8)}
"""The Thrift fields of a bound, and of whether it is a value."""
_NULL_COUNT_FIELD = 3
_WIDTHS = {
    (Tag.BYTE, PhysicalType.INT32): 4,
    (Tag.SHORT, PhysicalType.INT32): 4,
    (Tag.INT, PhysicalType.INT32): 4,
    (Tag.LONG, PhysicalType.INT64): 8,
    (Tag.DATE, PhysicalType.INT64): 8,
    (Tag.TIMESTAMP, PhysicalType.INT64): 8,
    (Tag.FLOAT, PhysicalType.FLOAT): 4,
    (Tag.DOUBLE, PhysicalType.DOUBLE): 8,
}
_TEXTS = (Tag.STRING, Tag.SYMBOL, Tag.VARCHAR)


def questdb_footer(sidecar: Sidecar) -> bytes:
    """The Thrift bytes of a footer for the index. Only for a sidecar that QuestDB wrote: its types say how bounds are
    ordered.
    """
    found = {
        (block, column): statistics
        for column in range(sidecar.column_count)
        for block, statistics in enumerate(_statistics(sidecar, column))
    }
    return to_footer(sidecar, statistics=lambda block, column: found[block, column])


def _statistics(sidecar: Sidecar, index: int) -> list[Struct]:
    column = sidecar.columns[index]
    fields: list[dict[int, Value]] = [{} for _ in range(sidecar.row_group_count)]
    counts, known = null_counts(sidecar.column_chunks(index))
    for block, (count, is_known) in enumerate(zip(counts.tolist(), known.tolist(), strict=True)):
        if is_known:
            fields[block][_NULL_COUNT_FIELD] = I64(count)
    if is_ordered(column):
        for side in SIDES:
            value_field, exact_field = _BOUND_FIELDS[side]
            begins, lengths = bound_spans(sidecar, index, side)
            for block, (begin, length) in enumerate(zip(begins.tolist(), lengths.tolist(), strict=True)):
                if length and length == _width(column, length):
                    value = bytes(sidecar.bytes_view[begin : begin + length])
                    fields[block] |= {value_field: ThriftBinary(value), exact_field: Bool(False)}
    return [Struct(dict(sorted(one.items()))) for one in fields]


def is_ordered(column: SidecarColumn) -> bool:
    """Whether the bounds of a column are taken."""
    if column.max_rep_level:
        return False
    tag = tag_of(column.type)
    if column.physical_type == PhysicalType.BYTE_ARRAY:
        return tag in _TEXTS
    return (tag, column.physical_type) in _WIDTHS


def _width(column: SidecarColumn, length: int) -> int:
    """How long a bound is."""
    tag = tag_of(column.type)
    if tag is None or column.physical_type == PhysicalType.BYTE_ARRAY:
        return length
    return _WIDTHS[tag, PhysicalType(column.physical_type)]
