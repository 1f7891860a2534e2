"""Files of a segment with constants: columns that the files do not have, each with one value per file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from underlay.errors import InvalidRequest
from underlay.index.constants import constant_scalar, pack_constants
from underlay.index.entry import NO_COLUMN, FileConstant, Flag
from underlay.index.segment.arrays import I64, Arrays, ChunkPlaces, ChunkStatistics, FileArrays, Shape
from underlay.index.segment.merge import absent_places, absent_statistics
from underlay.index.segment.packed import MAX_BOUND_BYTES, BoundColumn, shorten_high, shorten_low
from underlay.schema.bound_storage import Storage, storage_of
from underlay.schema.convert.stored_values import stored_array
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar, TypeKind

Bound = int | float | bytes | None


class ConstantBounds(msgspec.Struct, frozen=True):
    """The statistics of a constant: stored bounds, which are None for null, for NaN and for types without order."""

    low: Bound
    high: Bound
    flags: int
    is_null: bool


@lru_cache(maxsize=4096)
def constant_bounds(constant: FileConstant, type_: Scalar) -> ConstantBounds:
    """The statistics of every block of a file with this constant. Raises Malformed, SchemaMismatch."""
    value = constant_scalar(constant, type_)
    if value is None:
        return ConstantBounds(None, None, int(Flag.HAS_NULL_COUNT), True)
    if storage_of(type_) is Storage.NONE:
        return ConstantBounds(None, None, int(Flag.HAS_NULL_COUNT | Flag.MAY_HOLD_NAN), False)
    stored = stored_array(pa.repeat(value, 1), type_)
    key: int | float | bytes = stored[0].item() if isinstance(stored, np.ndarray) else stored[0].as_py()
    if key != key:  # NaN has no place among bounds
        return ConstantBounds(None, None, int(Flag.HAS_NULL_COUNT | Flag.MAY_HOLD_NAN), False)
    flags = Flag.HAS_NULL_COUNT | Flag.HAS_LOW | Flag.HAS_HIGH
    if isinstance(key, float) and key == 0.0:  # a bound of zero is one of both zeros (T5)
        return ConstantBounds(-0.0, 0.0, int(flags | Flag.IS_LOW_EXACT | Flag.IS_HIGH_EXACT), False)
    if isinstance(key, bytes) and len(key) > MAX_BOUND_BYTES:
        high = shorten_high(key, type_.kind is TypeKind.STRING)
        return ConstantBounds(shorten_low(key), high, int(flags if high is not None else flags ^ Flag.HAS_HIGH), False)
    return ConstantBounds(key, key, int(flags | Flag.IS_LOW_EXACT | Flag.IS_HIGH_EXACT), False)


class ConstantFiles:
    """Other arrays with these constants added, which the files lack as columns. See Arrays."""

    def __init__(self, arrays: Arrays, constants: Sequence[Sequence[FileConstant]], schema: TableSchema) -> None:
        """`constants` are those of each file. Raises InvalidRequest for a column that a file has."""
        self._arrays = arrays
        self._schema = schema
        self._by_field: dict[int, dict[int, FileConstant]] = {}
        for row, of_file in enumerate(constants):
            for constant in of_file:
                self._by_field.setdefault(constant.field, {})[row] = constant
        self.block_rows: I64 = arrays.block_rows
        self.files: FileArrays = self._files(constants)

    def _files(self, constants: Sequence[Sequence[FileConstant]]) -> FileArrays:
        given = self._arrays.files
        numbers: dict[Shape, int] = {}
        ids = []
        for shape_id, of_file in zip(given.shape_ids.tolist(), constants, strict=True):
            shape, fields = given.shapes[shape_id], [constant.field for constant in of_file]
            if not {field for field, _ in shape}.isdisjoint(fields):
                raise InvalidRequest("a file has a column that would also be a constant of it")
            ids.append(numbers.setdefault((*shape, *((field, NO_COLUMN) for field in fields)), len(numbers)))
        return replace(
            given,
            constants=pa.array([pack_constants(of_file) for of_file in constants], pa.binary()),
            shape_ids=np.array(ids, np.int32),
            shapes=tuple(numbers),
        )

    def statistics(self, field: int) -> ChunkStatistics | None:
        """See Arrays."""
        found, by_row = self._arrays.statistics(field), self._by_field.get(field)
        if by_row is None:
            return found
        scalar = self._schema.leaf_by_id[field].type
        files, rows = self.files, self.block_rows
        given = absent_statistics(scalar, len(rows)) if found is None else found
        bounds = {row: constant_bounds(constant, scalar) for row, constant in by_row.items()}
        flags = self._spread(lambda row: bounds[row].flags if row in bounds else 0, np.dtype(np.uint8))
        is_null = self._spread(lambda row: row in bounds and bounds[row].is_null, np.dtype(np.bool_))
        is_constant = np.repeat(np.isin(np.arange(files.file_count), list(bounds)), files.block_counts)
        return ChunkStatistics(
            type=scalar,
            low=_filled(given.low, self._values({row: one.low for row, one in bounds.items()}, scalar), is_constant),
            high=_filled(given.high, self._values({row: one.high for row, one in bounds.items()}, scalar), is_constant),
            null_counts=np.where(is_constant, np.where(is_null, rows, 0), given.null_counts),
            flags=np.where(is_constant, flags, given.flags),
        )

    def _spread(self, of_file: Callable[[int], float], dtype: np.dtype[np.generic]) -> NDArray[np.generic]:
        """One value for each block of a file."""
        files = self.files
        return np.repeat(np.array([of_file(row) for row in range(files.file_count)], dtype), files.block_counts)

    def _values(self, bounds: dict[int, Bound], scalar: Scalar) -> BoundColumn | None:
        """A bound for each block, with any value where there is none."""
        storage, count = storage_of(scalar), self.files.file_count
        if storage is Storage.NONE:
            return None
        if storage is Storage.BYTES:
            every = pa.array([bounds.get(row) or b"" for row in range(count)], pa.binary())
            taken: BoundColumn = every.take(self.files.file_of_block)
            return taken
        numbers = np.zeros(count, storage.value)
        for row, bound in bounds.items():
            if bound is not None:
                numbers[row] = bound
        return np.repeat(numbers, self.files.block_counts)

    def places(self, field: int) -> ChunkPlaces | None:
        """See Arrays. A constant lies nowhere."""
        found = self._arrays.places(field)
        return absent_places(len(self.block_rows)) if found is None and field in self._by_field else found


def _filled(given: BoundColumn | None, values: BoundColumn | None, where: NDArray[np.bool_]) -> BoundColumn | None:
    if given is None or values is None:
        return given
    if isinstance(given, np.ndarray):
        return np.where(where, values, given)
    filled: BoundColumn = pc.if_else(pa.array(where), values, given)
    return filled
