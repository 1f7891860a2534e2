"""Chooses files that may match, by their partition values alone."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc

from underlay.index.entry import Flag
from underlay.index.partition_specs import Specs, bind_record
from underlay.index.segment.arrays import ChunkStatistics
from underlay.index.segment.bounds import has_flag
from underlay.index.segment.packed import BoundColumn, BytesArray
from underlay.index.segment.segment import Segment
from underlay.index.segment.widen import widened
from underlay.plan.leaf_bounds import nothing_known
from underlay.plan.part import BoolArray, Numbers
from underlay.prune import ColumnBounds, ColumnPath, Operand, Predicate, evaluate
from underlay.prune.predicates.equality import equalities
from underlay.schema.bound_storage import Storage, bound_domain, storage_of
from underlay.schema.partitioning.partition import bucket_of_literal, source_bounds
from underlay.schema.partitioning.transform import BUCKET, PartitionField
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import Scalar

_NUMBER_BYTES = 8


def kept_by_partition(
    segment: Segment,
    specs: Specs,
    schema: TableSchema,
    predicate: Predicate,
    columns: dict[ColumnPath, LeafColumn | None],
) -> BoolArray | None:
    """For each file whether its partition values allow a match; None when they say nothing.

    A file is kept if it does not have one value for each field of its spec.
    """
    named = {leaf.id for leaf in columns.values() if leaf is not None and not leaf.is_repeated}
    if not segment.file_count or not any(one.field in named for spec in specs.values() for one in spec):
        return None
    lists = segment.files.partitions
    lengths = pc.call_function("list_value_length", [lists]).to_numpy(zero_copy_only=False)
    found: BoolArray | None = None
    for number in segment.remember("specs", lambda: tuple(np.unique(segment.files.specs).tolist())):
        spec = specs.get(number, ())
        fields = [(at, record) for at, record in enumerate(spec) if record.field in named]
        rows = np.flatnonzero((lengths == len(spec)) & (segment.files.specs == number))
        if not fields or not len(rows):
            continue
        inner = (lists if len(rows) == len(lists) else lists.take(rows)).flatten()
        kept = np.ones(len(rows), dtype=np.bool_)
        for at, record in fields:
            values = inner.take(np.arange(at, len(inner), len(spec)))
            leaf = schema.leaf_by_id[record.field]
            kept &= _kept_by_field(bind_record(schema, record), values, leaf, predicate, columns)
        found = np.ones(segment.file_count, dtype=np.bool_) if found is None else found
        found[rows] = kept
    return found


def _kept_by_field(
    field: PartitionField,
    values: BytesArray,
    leaf: LeafColumn,
    predicate: Predicate,
    columns: dict[ColumnPath, LeafColumn | None],
) -> BoolArray:
    """Decided once for each distinct value."""
    encoded = values.dictionary_encode(null_encoding="encode")
    distinct = encoded.dictionary
    stored, is_null = _stored(distinct, field.type)
    if stored is None:
        return np.ones(len(values), dtype=np.bool_)
    if field.transform == BUCKET:
        kept = _kept_buckets(field, np.asarray(stored), is_null, leaf, predicate)
    else:
        bounds = _value_bounds(field, stored, is_null, leaf)
        known = {
            path: bounds if found == leaf else nothing_known(found, len(distinct)) for path, found in columns.items()
        }
        kept = evaluate(predicate, known, block_count=len(distinct)).kept
    found: BoolArray = kept[np.asarray(encoded.indices)]
    return found


def _value_bounds(field: PartitionField, stored: BoundColumn, is_null: BoolArray, leaf: LeafColumn) -> ColumnBounds:
    """A partition value as bounds of its source; null says that all rows are null. Counts are of one row.

    The source's type may have been narrower when the files were written: its bounds are widened as those of blocks are.
    """
    span = source_bounds(field, stored)
    if span is None:
        return nothing_known(leaf, len(is_null))
    low, high = span
    flags = np.where(is_null, np.uint8(0), np.uint8(Flag.HAS_LOW | Flag.HAS_HIGH))
    if not isinstance(high, np.ndarray):
        flags = flags & np.where(high.is_null(), np.uint8(0xFF ^ Flag.HAS_HIGH), np.uint8(0xFF))
    counts = is_null.astype(np.int64)
    bounds = widened(ChunkStatistics(type=field.source, low=low, high=high, null_counts=counts, flags=flags), leaf.type)
    return ColumnBounds.of(
        bound_domain(leaf.type),
        block_count=len(is_null),
        minimum=bounds.low,
        maximum=bounds.high,
        has_minimum=has_flag(bounds.flags, Flag.HAS_LOW),
        has_maximum=has_flag(bounds.flags, Flag.HAS_HIGH),
        null_count=counts,
        value_count=np.ones(len(is_null), dtype=np.int64),
        may_hold_nan=has_flag(bounds.flags, Flag.MAY_HOLD_NAN),
    )


def _kept_buckets(
    field: PartitionField, buckets: Numbers, is_null: BoolArray, leaf: LeafColumn, predicate: Predicate
) -> BoolArray:
    kept = np.ones(len(buckets), dtype=np.bool_)
    for _, path, literals in equalities(predicate):
        wanted = _buckets_of(field, literals) if path == leaf.path else None
        if wanted is not None:
            kept &= np.isin(buckets, wanted) & ~is_null
    return kept


def _buckets_of(field: PartitionField, literals: tuple[Operand, ...]) -> list[int] | None:
    found = [bucket_of_literal(field, literal) for literal in literals]
    certain = [bucket for bucket in found if bucket is not None]
    return certain if len(certain) == len(found) else None


def _stored(values: BytesArray, scalar: Scalar) -> tuple[BoundColumn | None, BoolArray]:
    """Packed values by their type's storage, zero where null; None when one has another length than the type's."""
    is_null = values.is_null().to_numpy(zero_copy_only=False)
    storage = storage_of(scalar)
    if storage in (Storage.BYTES, Storage.NONE):
        return (values.fill_null(b"") if storage is Storage.BYTES else None), is_null
    packed = [bytes(_NUMBER_BYTES) if value is None else value for value in values.to_pylist()]
    if any(len(value) != _NUMBER_BYTES for value in packed):
        return None, is_null
    return np.frombuffer(b"".join(packed), storage.value), is_null
