"""Merges several segments, array by array: removed files are left out, and changed deletions are applied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.index.entry import Flag
from underlay.index.root import SegmentRef
from underlay.index.segment.arrays import I64, ChunkPlaces, ChunkStatistics, FileArrays, Shape
from underlay.index.segment.packed import empty_bounds
from underlay.index.segment.segment import Segment
from underlay.index.segment.widen import widened
from underlay.index.segment.write import encode_segment
from underlay.runtime.locks import cached_property
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar

BoolArray = NDArray[np.bool_]
AnyArray: TypeAlias = "pa.Array[Any]"  # Any: of every type


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeInput:
    """A segment, which of its files remain (None: all), and the deletions that replace its own, by row: the serialised
    positions and their number."""

    segment: Segment
    is_kept: BoolArray | None = None
    deletes: Mapping[int, tuple[bytes, int]] = field(default_factory=dict)


def merge_segments(
    inputs: Sequence[MergeInput], schema: TableSchema, *, segment_id: str, bounded_fields: Iterable[int]
) -> tuple[bytes, SegmentRef]:
    """One segment of all kept files, in order. Bounds are converted to the schema's types or left out; so are
    leaves that it does not have."""
    return encode_segment(MergedArrays(inputs, schema), segment_id=segment_id, bounded_fields=bounded_fields)


class MergedArrays:
    """The arrays of one segment of all kept files, in order. See Arrays."""

    def __init__(self, inputs: Sequence[MergeInput], schema: TableSchema) -> None:
        self._inputs = inputs
        self._types = {leaf.id: leaf.type for leaf in schema.leaves}
        for given in inputs:
            known = given.segment.files.fields & self._types.keys()
            given.segment.prefetch(known, known)

    @cached_property
    def _block_masks(self) -> list[BoolArray | None]:
        return [
            None if given.is_kept is None else np.repeat(given.is_kept, given.segment.files.block_counts)
            for given in self._inputs
        ]

    @cached_property
    def files(self) -> FileArrays:
        """See Arrays."""
        numbers: dict[Shape, int] = {}
        shape_ids, given_files = [], []
        for given in self._inputs:
            files = given.segment.files
            known = [tuple((f, c) for f, c in shape if f in self._types) for shape in files.shapes]
            renumbered = np.array([numbers.setdefault(shape, len(numbers)) for shape in known] or [0], dtype=np.int32)
            shape_ids.append(renumbered[files.shape_ids])
            given_files.append(_with_deletes(files, given.deletes))
        masks = [given.is_kept for given in self._inputs]
        names = [f.name for f in fields(FileArrays) if f.name not in ("shape_ids", "shapes")]
        joined = {name: _joined([getattr(files, name) for files in given_files], masks) for name in names}
        return FileArrays(shape_ids=_joined(shape_ids, masks), shapes=tuple(numbers), **joined)

    @cached_property
    def block_rows(self) -> I64:
        """See Arrays."""
        found: I64 = _joined([given.segment.block_rows for given in self._inputs], self._block_masks)
        return found

    def statistics(self, field_id: int) -> ChunkStatistics | None:
        """See Arrays."""
        scalar = self._types[field_id]
        parts = [self._statistics_of(given.segment, field_id, scalar) for given in self._inputs]
        masks = self._block_masks
        has_bounds = storage_of(scalar) is not Storage.NONE
        return ChunkStatistics(
            type=scalar,
            low=_joined([part.low for part in parts], masks) if has_bounds else None,
            high=_joined([part.high for part in parts], masks) if has_bounds else None,
            null_counts=_joined([part.null_counts for part in parts], masks),
            flags=_joined([part.flags for part in parts], masks),
        )

    @staticmethod
    def _statistics_of(segment: Segment, field_id: int, scalar: Scalar) -> ChunkStatistics:
        found = segment.statistics(field_id)
        return absent_statistics(scalar, segment.block_count) if found is None else widened(found, scalar)

    def places(self, field_id: int) -> ChunkPlaces | None:
        """See Arrays."""
        given = [(found.segment.places(field_id), found.segment.block_count) for found in self._inputs]
        parts = [places or absent_places(count) for places, count in given]
        masks = self._block_masks
        has_counts = any(part.value_counts is not None for part in parts)
        counts = [np.full(len(p.sizes), -1, np.int64) if p.value_counts is None else p.value_counts for p in parts]
        return ChunkPlaces(
            begins=_joined([part.begins for part in parts], masks),
            sizes=_joined([part.sizes for part in parts], masks),
            codecs=_joined([part.codecs for part in parts], masks),
            value_counts=_joined(counts, masks) if has_counts else None,
        )


def absent_statistics(scalar: Scalar, count: int) -> ChunkStatistics:
    """What is stored for blocks of files without a leaf."""
    empty = empty_bounds(storage_of(scalar), count)
    return ChunkStatistics(
        type=scalar,
        low=empty,
        high=empty,
        null_counts=np.zeros(count, dtype=np.int64),
        flags=np.full(count, Flag.IS_ABSENT, dtype=np.uint8),
    )


def absent_places(count: int) -> ChunkPlaces:
    """What is stored for blocks of files without a leaf."""
    zeros = np.zeros(count, dtype=np.int64)
    return ChunkPlaces(begins=zeros, sizes=zeros, codecs=np.zeros(count, dtype=np.uint8), value_counts=None)


def _with_deletes(files: FileArrays, deletes: Mapping[int, tuple[bytes, int]]) -> FileArrays:
    if not deletes:
        return files
    rows = np.array(sorted(deletes), dtype=np.intp)
    is_replaced = np.zeros(files.file_count, dtype=np.bool_)
    is_replaced[rows] = True
    counts = files.deleted_rows.copy()
    counts[rows] = [deletes[row][1] for row in rows.tolist()]
    given = pa.array([deletes[row][0] for row in rows.tolist()], pa.binary())
    return replace(
        files, deletes=pc.replace_with_mask(files.deletes, pa.array(is_replaced), given), deleted_rows=counts
    )


def _joined(parts: Sequence[Any], masks: Sequence[BoolArray | None]) -> Any:  # noqa: ANN401  # numpy or Arrow arrays, all of one type
    """What the masks keep of each array, one after another."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate([part if mask is None else part[mask] for part, mask in zip(parts, masks, strict=True)])
    kept: list[AnyArray] = [
        part if mask is None else part.filter(pa.array(mask)) for part, mask in zip(parts, masks, strict=True)
    ]
    return pa.concat_arrays(kept)
