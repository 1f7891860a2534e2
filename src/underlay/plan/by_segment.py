"""Chooses segments that may match, by the bounds in the root; the others are not loaded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from underlay.index.entry import Flag
from underlay.index.root import SegmentBound, SegmentRef
from underlay.index.segment.arrays import ChunkStatistics
from underlay.index.segment.bounds import trusted_bounds
from underlay.index.segment.directory import PieceKind, decode_directory
from underlay.index.segment.packed import BoundColumn, empty_bounds
from underlay.index.segment.widen import widened
from underlay.plan.leaf_bounds import nothing_known, resolve
from underlay.plan.part import BoolArray, Numbers
from underlay.prune import ColumnBounds, Predicate, columns_of, evaluate
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import Scalar, parse_scalar


def surviving(refs: Sequence[SegmentRef], schema: TableSchema, predicate: Predicate) -> BoolArray:
    """For each segment whether it may hold a matching row. Raises UnknownColumn and BadPredicate."""
    rows = np.array([ref.row_count for ref in refs], dtype=np.int64)
    columns = {
        path: nothing_known(leaf, len(refs)) if leaf is None or leaf.is_repeated else _bounds(refs, leaf, rows)
        for path, leaf in resolve(schema, columns_of(predicate)).items()
    }
    return evaluate(predicate, columns, block_count=len(refs), row_count=rows).kept


def _bounds(refs: Sequence[SegmentRef], leaf: LeafColumn, rows: Numbers) -> ColumnBounds:
    found = [next((bound for bound in ref.bounds if bound.field == leaf.id), None) for ref in refs]
    if not any(found):
        return nothing_known(leaf, len(refs))
    types = [
        leaf.type if bound is None else _type_of(ref, leaf.id) or leaf.type
        for ref, bound in zip(refs, found, strict=True)
    ]
    if all(scalar == leaf.type for scalar in types):
        return trusted_bounds(_statistics(found, leaf.type), rows)
    each = [widened(_statistics([bound], scalar), leaf.type) for bound, scalar in zip(found, types, strict=True)]
    return trusted_bounds(_joined(each, leaf.type), rows)


@lru_cache(maxsize=4096)
def _types(pieces: bytes, size_bytes: int) -> dict[int, Scalar]:
    directory = decode_directory(pieces, size_bytes)
    return {
        field: parse_scalar(piece.type) for (kind, field), piece in directory.items() if kind is PieceKind.STATISTICS
    }


def _type_of(ref: SegmentRef, field: int) -> Scalar | None:
    return _types(ref.pieces, ref.size_bytes).get(field)


def _statistics(bounds: Sequence[SegmentBound | None], scalar: Scalar) -> ChunkStatistics:
    """Bounds of segments as if each segment were a block."""
    flags = [Flag.MAY_HOLD_NAN if bound is None else _flags(bound) for bound in bounds]
    return ChunkStatistics(
        type=scalar,
        low=_column([bound.low if bound else None for bound in bounds], scalar),
        high=_column([bound.high if bound else None for bound in bounds], scalar),
        null_counts=np.array([bound.null_count if bound else -1 for bound in bounds], dtype=np.int64),
        flags=np.array(flags, dtype=np.uint8),
    )


def _flags(bound: SegmentBound) -> int:
    flags = Flag.HAS_NULL_COUNT if bound.null_count >= 0 else Flag(0)
    flags |= Flag.HAS_LOW if bound.low is not None else Flag(0)
    flags |= Flag.HAS_HIGH if bound.high is not None else Flag(0)
    return flags | (Flag.MAY_HOLD_NAN if bound.may_hold_nan else Flag(0))


def _column(values: Sequence[bytes | None], scalar: Scalar) -> BoundColumn | None:
    storage = storage_of(scalar)
    if storage is Storage.NONE:
        return None
    if storage is Storage.BYTES:
        return pa.array([value or b"" for value in values], pa.binary())
    return np.frombuffer(b"".join([bytes(8) if value is None else value for value in values]), storage.value)


def _joined(each: Sequence[ChunkStatistics], scalar: Scalar) -> ChunkStatistics:
    empty = empty_bounds(storage_of(scalar), 0)
    return ChunkStatistics(
        type=scalar,
        low=_concatenated([one.low for one in each], empty),
        high=_concatenated([one.high for one in each], empty),
        null_counts=np.concatenate([one.null_counts for one in each]),
        flags=np.concatenate([one.flags for one in each]),
    )


def _concatenated(columns: Sequence[BoundColumn | None], empty: BoundColumn | None) -> BoundColumn | None:
    if empty is None:
        return None
    if isinstance(empty, np.ndarray):
        return np.concatenate([np.asarray(column) for column in columns])
    return pa.concat_arrays([column for column in columns if isinstance(column, pa.Array)])
