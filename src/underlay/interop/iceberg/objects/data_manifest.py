"""The manifest of one part of a version: of a segment, or of the tail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from underlay.index.segment.arrays import Arrays
from underlay.interop.iceberg.columns.partition_specs import ExportedPartition
from underlay.interop.iceberg.objects.avro import Record
from underlay.interop.iceberg.objects.bounds import LeafMetrics, leaf_metrics
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.table_schema import LeafColumn

DATA_SEQUENCE = 1
"""Of all data files: so manifests need not change, and every deletion, which has a later one, applies."""
EXISTING = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFiles:
    """The entries of a manifest, and the totals that the manifest list has of them."""

    records: Sequence[Record]
    row_count: int
    size_bytes: int


def data_files(
    arrays: Arrays,
    leaves: Sequence[LeafColumn],
    partition: Sequence[ExportedPartition],
    *,
    url_of: Callable[[str], str],
    snapshot_id: int,
) -> DataFiles:
    """The entries of all files that have rows, with the metrics of these leaves."""
    files = arrays.files
    begins = files.block_begin
    sums = np.concatenate([[0], np.cumsum(arrays.block_rows)])
    rows = (sums[begins[1:]] - sums[begins[:-1]]).tolist()
    metrics = [found for leaf in leaves if (found := leaf_metrics(arrays, leaf)) is not None]
    offsets = _split_offsets(arrays)
    values = partition_values(arrays, partition)
    records: list[Record] = []
    for at, (location, size) in enumerate(zip(files.locations.to_pylist(), files.size_bytes.tolist(), strict=True)):
        if not rows[at]:
            continue  # no reader misses a file without rows
        file: Record = {
            "content": 0,
            "file_path": url_of(str(location)),
            "file_format": "PARQUET",
            "partition": values[at],
            "record_count": rows[at],
            "file_size_in_bytes": size,
            "split_offsets": offsets[at],
            **_maps(metrics, at),
        }
        records.append(
            {
                "status": EXISTING,
                "snapshot_id": snapshot_id,
                "sequence_number": DATA_SEQUENCE,
                "file_sequence_number": DATA_SEQUENCE,
                "data_file": file,
            }
        )
    return DataFiles(
        records=records,
        row_count=sum(record["data_file"]["record_count"] for record in records),
        size_bytes=sum(record["data_file"]["file_size_in_bytes"] for record in records),
    )


def _maps(metrics: Sequence[LeafMetrics], at: int) -> Record:
    def entries(values_of: Callable[[LeafMetrics], Sequence[Any]]) -> list[Record]:
        pairs = ((one.field, values_of(one)[at]) for one in metrics)
        return [{"key": field, "value": value} for field, value in pairs if value is not None]

    return {
        "column_sizes": entries(lambda one: one.sizes),
        "value_counts": entries(lambda one: one.values),
        "null_value_counts": entries(lambda one: one.nulls),
        "nan_value_counts": entries(lambda one: one.nans),
        "lower_bounds": entries(lambda one: one.lows),
        "upper_bounds": entries(lambda one: one.highs),
    }


def _split_offsets(arrays: Arrays) -> list[list[int] | None]:
    """Where the blocks of each file begin: at the first of their chunks. None if they do not ascend."""
    first = None
    for field in sorted(arrays.files.fields):
        places = arrays.places(field)
        if places is None:
            continue
        begins = np.where(places.sizes > 0, places.begins, np.iinfo(np.int64).max)
        first = begins if first is None else np.minimum(first, begins)
    found: list[list[int] | None] = []
    bounds = arrays.files.block_begin.tolist()
    for begin, end in pairwise(bounds):
        offsets = [] if first is None else first[begin:end].tolist()
        is_usable = offsets and offsets[-1] < np.iinfo(np.int64).max and offsets == sorted(set(offsets))
        found.append(offsets if is_usable else None)
    return found


def partition_values(arrays: Arrays, partition: Sequence[ExportedPartition]) -> list[Record]:
    """The partition of each file."""
    if not partition:
        return [{}] * arrays.files.file_count
    rows: list[Any] = arrays.files.partitions.to_pylist()
    return [{f"f{one.id}": partition_value(row[one.place], one) for one in partition} for row in rows]


def partition_value(packed: bytes | None, one: ExportedPartition) -> Any:  # noqa: ANN401  # by its type
    """A value of the index as Avro has it."""
    if packed is None:
        return None
    if storage_of(one.scalar) is Storage.BYTES:
        return bytes(packed).decode()
    number = int.from_bytes(packed, "little", signed=True)
    return bool(number) if one.type.text == "boolean" else number


def partition_summaries(records: Sequence[Record], partition: Sequence[ExportedPartition]) -> list[Record]:
    """The range of each partition field over a manifest: readers skip the manifest by it."""
    found = []
    for one in partition:
        every = [record["data_file"]["partition"][f"f{one.id}"] for record in records]
        some = [value.encode() if isinstance(value, str) else value for value in every if value is not None]
        found.append(
            {
                "contains_null": len(some) < len(every),
                "contains_nan": False,
                "lower_bound": one.type.pack(min(some)) if some else None,
                "upper_bound": one.type.pack(max(some)) if some else None,
            }
        )
    return found
