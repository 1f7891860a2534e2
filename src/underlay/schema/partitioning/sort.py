"""The order of a table's rows: as a user writes it, and as a sort of Arrow rows.

Ascending and nulls first unless said otherwise. NaN is the greatest number, and the two zeros are one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from underlay.errors import InvalidRequest
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyArray, AnyChunks, AnyType
from underlay.schema.names import find_leaf, parse_path
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import TypeKind

_ENTRY = re.compile(
    r"\s*(?P<minus>-)?\s*(?P<column>.*?)(?:\s+(?P<order>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?\s*",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SortField:
    """One leaf that rows are sorted by."""

    field: int
    is_descending: bool = False
    is_nulls_last: bool = False


def parse_sort(schema: TableSchema, texts: Sequence[str]) -> tuple[SortField, ...]:
    """What `sort_by` says: `pickup`, `-fare`, `zone desc nulls last`. Raises InvalidRequest."""
    found: dict[int, SortField] = {}
    for text in texts:
        field = _parse_entry(schema, text)
        if field.field in found:
            raise InvalidRequest("the rows are sorted by this column already", found=text, hint="Leave one out.")
        found[field.field] = field
    return tuple(found.values())


def sort_indices(table: pa.Table, fields: Sequence[SortField], schema: TableSchema) -> AnyArray:
    """The positions of the rows in order; equal rows keep theirs. The table has the columns of the schema."""
    columns: list[AnyChunks] = []
    orders: list[Literal["ascending", "descending"]] = []
    for field in fields:
        leaf = schema.leaf_by_id[field.field]
        column = _column(table, leaf.path)
        if column.null_count:
            columns.append(column.is_null().cast(pa.uint8()))
            orders.append("ascending" if field.is_nulls_last else "descending")
        columns.append(_key(column, leaf.type.kind))
        orders.append("descending" if field.is_descending else "ascending")
    if not columns:
        return pa.array(np.arange(table.num_rows, dtype=np.uint64))
    names = [str(at) for at in range(len(columns))]
    keys = list(zip(names, orders, strict=True))
    return pc.call_function("sort_indices", [pa.table(columns, names=names)], pc.SortOptions(keys))


def _parse_entry(schema: TableSchema, text: str) -> SortField:
    for minus in ("", "-"):  # the text is a column's exact name
        name = text.removeprefix(minus)
        if text.startswith(minus) and (name,) in schema.leaf_by_path:
            text = minus + format_column((name,))
            break
    match = _ENTRY.fullmatch(text)
    if match is None or (match["minus"] and match["order"]):
        raise InvalidRequest("not an order of rows", found=text, hint="Write pickup, -fare or zone desc nulls last.")
    leaf = find_leaf(schema, parse_path(match["column"]))
    if leaf.type.kind is TypeKind.FLOAT16:
        raise InvalidRequest("rows are not sorted by float16", found=text, hint="Use another column.")
    return SortField(
        field=leaf.id,
        is_descending=bool(match["minus"]) or (match["order"] or "").lower() == "desc",
        is_nulls_last=(match["nulls"] or "").lower() == "last",
    )


def _column(table: pa.Table, path: tuple[str, ...]) -> AnyChunks:
    column: AnyChunks = table.column(path[0])
    for name in path[1:]:
        column = pc.struct_field(column, [column.type.get_field_index(name)])
    return column


def _key(column: AnyChunks, kind: TypeKind) -> AnyChunks:
    """Values that Arrow sorts in the right order; a separate key before this one places the nulls."""
    if kind in (TypeKind.FLOAT32, TypeKind.FLOAT64):
        return pa.chunked_array([_float_key(chunk) for chunk in column.chunks], pa.int64())
    if kind is TypeKind.BOOLEAN:
        return column.cast(pa.uint8())
    if kind is TypeKind.UUID:
        storage: AnyType = column.type.storage_type
        return pa.chunked_array([chunk.storage for chunk in column.chunks], storage)
    return column


def _float_key(array: AnyArray) -> AnyArray:
    """Integers in the order of the doubles: their bits, reversed in order for negative numbers."""
    values = array.fill_null(0).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        doubles = values.astype(np.float64) + 0.0
    bits = np.where(np.isnan(doubles), np.float64(np.nan), doubles).view(np.int64)
    return pa.array(np.where(bits < 0, ~bits ^ np.iinfo(np.int64).min, bits))
