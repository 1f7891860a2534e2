"""Finds the partitions of foreign files by their statistics: all rows of a file must lie in one partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from underlay.index.intake.schema_match import Misfit
from underlay.index.partition_specs import bind_record
from underlay.index.root import Definition
from underlay.index.segment.bounds import pack_key
from underlay.index.segment.segment import Segment
from underlay.plan.leaf_bounds import file_bounds
from underlay.prune import ColumnBounds
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.convert.stored_values import from_stored, stored_array
from underlay.schema.partitioning.bucket import bucket_of_key
from underlay.schema.partitioning.partition import apply_transform
from underlay.schema.partitioning.transform import BUCKET, IDENTITY, PartitionField, write_transform
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar

Values = tuple[bytes | None, ...]


def partition_values(segment: Segment, definition: Definition, schema: TableSchema) -> list[Values | Misfit]:
    """For each file its partition, in the form of `FileEntry.partition`, or why it has none."""
    if not definition.partition_by:
        return [()] * segment.file_count
    columns = []
    for record in definition.partition_by:
        field = bind_record(schema, record)
        bounds = file_bounds(segment, schema.leaf_by_id[record.field])
        columns.append(list(_values(field, bounds, write_transform(schema, field))))
    return [_together(values) for values in zip(*columns, strict=True)]


def _together(values: Sequence[bytes | Misfit | None]) -> Values | Misfit:
    misfits = [value for value in values if isinstance(value, Misfit)]
    if misfits:
        return Misfit(tuple(reason for misfit in misfits for reason in misfit.reasons))
    return tuple(value for value in values if not isinstance(value, Misfit))


def _values(field: PartitionField, bounds: ColumnBounds, written: str) -> Iterator[bytes | Misfit | None]:
    """A partition value for each file: that of both its bounds, and so of all values between them."""
    (ranges,) = bounds.ranges
    low, high = (_transformed(field, keys) for keys in (ranges.minimum, ranges.maximum))
    is_known = ranges.has_minimum & ranges.has_maximum & (bounds.null_count == 0) & ~bounds.may_hold_nan
    is_one = ranges.minimum == ranges.maximum if field.transform == BUCKET else low == high
    for at, (known, all_null, one) in enumerate(zip(is_known, bounds.is_all_null, is_one, strict=True)):
        if all_null:
            yield None
        elif known and one:
            yield pack_key(low[at], field.type)
        else:
            yield Misfit((f"Its statistics do not say that all rows have one value of {written}.",))


def _transformed(field: PartitionField, keys: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The partition values of keys, as keys of the partition's type."""
    if field.transform == IDENTITY:
        return keys
    if field.transform == BUCKET:
        buckets = [bucket_of_key(key, field.source, field.width, field.hash) for key in keys.tolist()]
        return np.array(buckets, dtype=np.int64)
    values = stored_array(apply_transform(field, _arrow(keys, field.source)), field.type)
    return values if isinstance(values, np.ndarray) else np.array(values.to_pylist(), dtype=np.object_)


def _arrow(keys: np.ndarray[Any, Any], scalar: Scalar) -> pa.Array[Any]:
    """Keys of a type that the other transforms take, as Arrow values."""
    if storage_of(scalar) is Storage.BYTES:
        found: pa.Array[Any] = pa.array(keys.tolist(), pa.binary()).cast(to_arrow_type(scalar))
        return found
    numbers: pa.Array[Any] = from_stored(keys, scalar, None)
    return numbers
