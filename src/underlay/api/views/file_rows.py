"""The files and blocks of a version as rows: location, size, and the bounds of their columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.api.opened.versioned_table import VersionedTable
from underlay.index import deletion_vectors
from underlay.index.entry import NO_COLUMN, ColumnEntry, FileEntry, Flag
from underlay.index.keys import is_own, plain_location
from underlay.index.partition_specs import bind_record, specs_of
from underlay.index.segment.packed import bound_column, pack_bytes
from underlay.prune.predicates.operand import format_column
from underlay.schema.arrow_aliases import AnyType
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.convert.stored_values import from_stored
from underlay.schema.partitioning.transform import PartitionField, write_transform
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import Scalar, TypeKind
from underlay.table.versions.snapshot import Snapshot

Row = dict[str, object]
_TEXT, _NUMBER = pa.string(), pa.int64()
FILES: dict[str, AnyType] = {
    "location": _TEXT, "is_registered": pa.bool_(), "rows": _NUMBER, "deleted_rows": _NUMBER, "bytes": _NUMBER,
    "blocks": _NUMBER, "partition": pa.map_(_TEXT, _TEXT),
}  # fmt: skip
BLOCKS: dict[str, AnyType] = {
    "location": _TEXT, "block": _NUMBER, "rows": _NUMBER, "deleted_rows": _NUMBER, "column_name": _TEXT,
    "byte_begin": _NUMBER, "byte_size": _NUMBER, "null_count": _NUMBER, "min": _TEXT, "max": _TEXT,
    "is_exact": pa.bool_(), "has_bloom": pa.bool_(),
}  # fmt: skip


def file_rows(table: VersionedTable) -> Iterator[Row]:
    """One row for each file."""
    snapshot = table.snapshot()
    specs = _Specs(snapshot)
    for file in snapshot.files():
        yield {
            "location": _location(snapshot, file),
            "is_registered": not is_own(file.location),
            "rows": int(_numbers(file.block_rows).sum()),
            "deleted_rows": file.deleted_rows,
            "bytes": file.size_bytes,
            "blocks": len(_numbers(file.block_rows)),
            "partition": specs.values(file),
        }


def block_rows(table: VersionedTable) -> Iterator[Row]:
    """One row for each column of each block."""
    snapshot = table.snapshot()
    for file in snapshot.files():
        rows = _numbers(file.block_rows)
        location, deleted = _location(snapshot, file), _deleted(file, rows)
        for column in file.columns:
            leaf = snapshot.schema.leaf_by_id.get(column.field)
            if leaf is None:  # the column was dropped since
                continue
            for block, facts in enumerate(_chunks(column, leaf, len(rows))):
                yield {
                    "location": location,
                    "block": block,
                    "rows": int(rows[block]),
                    "deleted_rows": int(deleted[block]),
                    "column_name": format_column(leaf.path),
                    **facts,
                }


def _chunks(column: ColumnEntry, leaf: LeafColumn, count: int) -> Iterator[Row]:
    flags = np.frombuffer(column.flags, np.uint8)
    low, high = (shown_values(data, leaf.type, count) for data in (column.low, column.high))
    begins, sizes, nulls = (_numbers(data) for data in (column.begins, column.sizes, column.null_counts))
    for block in range(count):
        flag = int(flags[block])
        is_stored = column.column != NO_COLUMN and not flag & Flag.IS_ABSENT
        yield {
            "byte_begin": int(begins[block]) if is_stored else None,
            "byte_size": int(sizes[block]) if is_stored else None,
            "null_count": int(nulls[block]) if flag & Flag.HAS_NULL_COUNT else None,
            "min": low[block] if flag & Flag.HAS_LOW else None,
            "max": high[block] if flag & Flag.HAS_HIGH else None,
            "is_exact": bool(flag & Flag.IS_LOW_EXACT and flag & Flag.IS_HIGH_EXACT),
            "has_bloom": bool(flag & Flag.HAS_BLOOM),
        }


def shown_values(data: bytes, type_: Scalar, count: int) -> Sequence[str | None]:
    """Stored values as text: ISO dates and times, decimal digits, bytes in hexadecimal."""
    stored = bound_column(data, storage_of(type_), count)
    if stored is None:
        return [None] * count
    if type_.kind is TypeKind.DECIMAL:
        numbers = [_unscaled(one) for one in stored.tolist()]
        return [f"{Decimal(number).scaleb(-type_.scale):f}" for number in numbers]
    if not isinstance(stored, np.ndarray):
        return [shown_bytes(one or b"", type_.kind) for one in stored.to_pylist()]
    texts: list[str | None] = from_stored(stored, type_, None).cast(pa.string()).to_pylist()
    return texts


def _unscaled(value: object) -> int:
    """A decimal's unscaled value, which is stored as an integer, or as 16 bytes if wider."""
    return (
        value
        if isinstance(value, int)
        else int.from_bytes(value if isinstance(value, bytes) else b"", "big", signed=True)
    )


def _shown(value: bytes, type_: Scalar) -> str | None:
    """One partition value of a file as text: bytes without offsets."""
    is_bytes = storage_of(type_) is Storage.BYTES
    return shown_values(pack_bytes([value]) if is_bytes else value, type_, 1)[0]


def shown_bytes(value: bytes, kind: TypeKind) -> str:
    """Text as it is, a UUID as one, other bytes in hexadecimal."""
    if kind is TypeKind.STRING:
        return value.decode(errors="replace")
    return str(UUID(bytes=value)) if kind is TypeKind.UUID and len(value) == 16 else value.hex()


class _Specs:
    """The partition specs of a table, with which files' partition values are shown."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._schema: TableSchema = snapshot.schema
        self._fields: dict[int, list[PartitionField]] = {
            number: [bind_record(snapshot.schema, one) for one in fields]
            for number, fields in specs_of(snapshot.definition).items()
        }

    def values(self, file: FileEntry) -> list[tuple[str, str | None]]:
        """The values as text, by transform."""
        return [
            (write_transform(self._schema, field), None if value is None else _shown(value, field.type))
            for field, value in zip(self._fields.get(file.spec, ()), file.partition, strict=False)
        ]


def _location(snapshot: Snapshot, file: FileEntry) -> str:
    """The key of a file in the lake, the URL of any other."""
    return snapshot.keys.file(file.location) or plain_location(file.location)


def _deleted(file: FileEntry, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    if file.deletes is None:
        return np.zeros(len(rows), np.int64)
    begins = np.concatenate(([0], np.cumsum(rows)[:-1])).astype(np.int64)
    return deletion_vectors.counts_in_blocks(file.deletes, begins)


def _numbers(data: bytes) -> NDArray[np.int64]:
    values: NDArray[Any] = np.frombuffer(data, "<i8")
    return values
