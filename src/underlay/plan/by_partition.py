"""Chooses files that may match, by their partition values alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from underlay.index.root import PartitionFieldRecord
from underlay.index.segment.packed import BoundColumn, BytesArray
from underlay.index.segment.segment import Segment
from underlay.plan.equality import equalities
from underlay.plan.leaf_bounds import nothing_known
from underlay.plan.part import BoolArray, Numbers
from underlay.prune import ColumnBounds, ColumnPath, Operand, Predicate, evaluate
from underlay.schema.bound_storage import Storage, bound_domain, storage_of
from underlay.schema.partitioning.partition import bucket_of_literal, source_bounds
from underlay.schema.partitioning.transform import BUCKET, PartitionField, bind_partition
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import Scalar

_NUMBER_BYTES = 8


def kept_by_partition(
    segment: Segment,
    spec: Sequence[PartitionFieldRecord],
    schema: TableSchema,
    predicate: Predicate,
    columns: dict[ColumnPath, LeafColumn | None],
) -> BoolArray | None:
    """For each file whether its partition values allow a match; None when they say nothing.

    A file with another number of values than there are partition fields was written under another spec, and stays.
    """
    named = {leaf.id for leaf in columns.values() if leaf is not None and not leaf.is_repeated}
    fields = [(at, record) for at, record in enumerate(spec) if record.field in named]
    if not fields or not segment.file_count:
        return None
    lists = segment.files.partitions
    lengths = pc.call_function("list_value_length", [lists]).to_numpy(zero_copy_only=False)
    has_values = np.asarray(lengths == len(spec), dtype=np.bool_)
    if not has_values.any():
        return None
    rows = np.flatnonzero(has_values)
    inner = (lists if len(rows) == len(lists) else lists.take(rows)).flatten()
    kept = np.ones(len(rows), dtype=np.bool_)
    for at, record in fields:
        bound = bind_partition(schema, record.field, record.transform, record.width)
        values = inner.take(np.arange(at, len(inner), len(spec)))
        kept &= _kept_by_field(bound, values, schema.leaf_by_id[record.field], predicate, columns)
    found = np.ones(segment.file_count, dtype=np.bool_)
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
    """A partition value as bounds of its source; null says that all rows are null. Counts are of one row."""
    span = source_bounds(field, stored)
    if span is None:
        return nothing_known(leaf, len(is_null))
    return ColumnBounds.of(
        bound_domain(leaf.type),
        block_count=len(is_null),
        minimum=span[0],
        maximum=span[1],
        has_minimum=~is_null,
        has_maximum=~is_null,
        null_count=is_null.astype(np.int64),
        value_count=np.ones(len(is_null), dtype=np.int64),
        may_hold_nan=False,
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
