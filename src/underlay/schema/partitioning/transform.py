"""Partition transforms as a user writes them, checked against a table's columns.

`zone` (identity), `year(pickup)`, `month(pickup)`, `day(pickup)`, `hour(pickup)`, `bucket(16, id)` and
`truncate(4, name)`; the number may also come second.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from underlay.errors import InvalidRequest
from underlay.prune.predicates.operand import format_column
from underlay.schema.names import find_leaf, parse_path
from underlay.schema.partitioning.bucket import BUCKET_KINDS, HASHES, MURMUR3
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import Scalar, TypeKind

IDENTITY: Final = "identity"
YEAR: Final = "year"
MONTH: Final = "month"
DAY: Final = "day"
HOUR: Final = "hour"
BUCKET: Final = "bucket"
TRUNCATE: Final = "truncate"

MAX_WIDTH = 2**31 - 1

_INTEGER_KINDS = frozenset(kind for kind in TypeKind if kind.value.lstrip("u").startswith("int"))
_DATED = frozenset({TypeKind.DATE, TypeKind.TIMESTAMP})
_TAKES: dict[str, frozenset[TypeKind]] = {
    IDENTITY: frozenset(TypeKind) - {TypeKind.FLOAT16},
    YEAR: _DATED,
    MONTH: _DATED,
    DAY: _DATED,
    HOUR: frozenset({TypeKind.TIMESTAMP}),
    BUCKET: BUCKET_KINDS,
    TRUNCATE: _INTEGER_KINDS | {TypeKind.STRING, TypeKind.BINARY},
}
_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_WIDTH_FIRST = re.compile(r"\s*(\d{1,10})\s*,(.*)", re.DOTALL)
_WIDTH_LAST = re.compile(r"(.*),\s*(\d{1,10})\s*", re.DOTALL)
_HINT = "Write zone, year(pickup), month(pickup), day(pickup), hour(pickup), bucket(16, id) or truncate(4, name)."


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTransform:
    """What the text says, before it is checked against a schema. `width` is 0 where the transform has none."""

    path: tuple[str, ...]
    transform: str
    width: int = 0

    def __str__(self) -> str:
        column = format_column(self.path)
        if self.transform == IDENTITY:
            return column
        return f"{self.transform}({self.width}, {column})" if self.width else f"{self.transform}({column})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionField:
    """A transform of one leaf. `source` is the leaf's type and `type` that of the partition values.

    Years, months, days and hours are counted from 1970 as int64, buckets are int32; the others keep the source's type.
    """

    field: int
    transform: str
    width: int = 0
    source: Scalar
    type: Scalar
    hash: str = ""
    """Of a bucket, see `bucket`."""


def parse_transform(text: str) -> WrittenTransform:
    """What one entry of `partition_by` says. Raises InvalidRequest."""
    call = _CALL.fullmatch(text)
    if call is None:
        return WrittenTransform(path=parse_path(text), transform=IDENTITY)
    name, inside = call[1].lower(), call[2]
    if name not in _TAKES:
        raise InvalidRequest("no such partition transform", found=text, hint=_HINT)
    if name not in (BUCKET, TRUNCATE):
        return WrittenTransform(path=parse_path(inside), transform=name)
    first, last = _WIDTH_FIRST.fullmatch(inside), _WIDTH_LAST.fullmatch(inside)
    if first is not None:
        return WrittenTransform(path=parse_path(first[2]), transform=name, width=_width(first[1], text))
    if last is not None:
        return WrittenTransform(path=parse_path(last[1]), transform=name, width=_width(last[2], text))
    raise InvalidRequest(f"{name} needs a column and a number", found=text, hint=_HINT)


def partition_fields(schema: TableSchema, texts: Sequence[str]) -> tuple[PartitionField, ...]:
    """The partition fields that a user asks for. Raises InvalidRequest."""
    found: list[PartitionField] = []
    for text in texts:
        is_name = (text,) in schema.leaf_by_path
        written = WrittenTransform(path=(text,), transform=IDENTITY) if is_name else parse_transform(text)
        hash_name = MURMUR3 if written.transform == BUCKET else ""
        field = _bind(find_leaf(schema, written.path), written.transform, written.width, hash_name)
        if field in found:
            raise InvalidRequest("the table is partitioned by this already", found=text, hint="Leave one out.")
        found.append(field)
    return tuple(found)


def bind_partition(
    schema: TableSchema, field: int, transform: str, width: int, *, hash_name: str = "", source: Scalar | None = None
) -> PartitionField:
    """A stored partition field with the column's current type, or with the `source` type. Raises InvalidRequest."""
    leaf = schema.leaf_by_id.get(field)
    if leaf is None:
        raise InvalidRequest("the column that partitions the table is gone", found=f"field {field}")
    return _bind(leaf if source is None else replace(leaf, type=source), transform, width, hash_name)


def write_transform(schema: TableSchema, field: PartitionField) -> str:
    """The text that a user would write."""
    path = schema.leaf_by_id[field.field].path
    return str(WrittenTransform(path=path, transform=field.transform, width=field.width))


def _bind(leaf: LeafColumn, transform: str, width: int, hash_name: str) -> PartitionField:
    takes = _TAKES.get(transform)
    if hash_name not in HASHES:
        raise InvalidRequest("no such hash of buckets", found=hash_name, hint="Update Underlay.")
    if takes is None:
        raise InvalidRequest("no such partition transform", found=transform, hint=_HINT)
    if leaf.type.kind not in takes:
        kinds = ", ".join(sorted(kind.value for kind in takes))
        raise InvalidRequest(
            f"{transform} does not take a column of this type",
            place=format_column(leaf.path),
            expected=kinds,
            found=leaf.type,
        )
    return PartitionField(
        field=leaf.id,
        transform=transform,
        width=width,
        source=leaf.type,
        type=_result(leaf.type, transform),
        hash=hash_name,
    )


def _result(source: Scalar, transform: str) -> Scalar:
    if transform in (IDENTITY, TRUNCATE):
        return source
    return Scalar(TypeKind.INT32 if transform == BUCKET else TypeKind.INT64)


def _width(digits: str, text: str) -> int:
    width = int(digits)
    if not 1 <= width <= MAX_WIDTH:
        raise InvalidRequest("the number is out of range", expected=f"1 to {MAX_WIDTH}", found=text)
    return width
