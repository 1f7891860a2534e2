"""What a sidecar's columns mean to the pruner: their order, their statistics, their bloom filters.

A sidecar has QuestDB's type code and the physical type, no logical type and no path. Where those leave a choice the
column is treated as every type it may be: an INT of a foreign file may be unsigned. With the file's schema there is
no such choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from underlay.errors import SchemaMismatch
from underlay.parquet.bloom import contains_all, hash_values
from underlay.parquet.logical import LogicalKind, LogicalType, TimeUnit
from underlay.parquet.schema import Leaf, Schema
from underlay.pm.blocks import bloom_places
from underlay.pm.footers import walk
from underlay.pm.sidecar import Sidecar
from underlay.pm.statistics import SIDES, Side, byte_bounds, fixed_bounds, null_counts
from underlay.pm.types import NANOSECONDS, Tag, decimal_parameters, describe, tag_of
from underlay.pm.values import Column
from underlay.prune import (
    Addresses,
    AmbiguousIntegers,
    Binary,
    BloomProbe,
    Booleans,
    BoundArray,
    Characters,
    ColumnBounds,
    ColumnPath,
    Decimals,
    Domain,
    FixedBinary,
    Floats,
    Integers,
    Text,
    Times,
    Unit,
    Unordered,
    Uuids,
)
from underlay.values.physical import PhysicalType, Repetition

_DTYPES = {
    PhysicalType.BOOLEAN: "<u1",
    PhysicalType.INT32: "<i4",
    PhysicalType.INT64: "<i8",
    PhysicalType.FLOAT: "<f4",
    PhysicalType.DOUBLE: "<f8",
}
_BITS = {PhysicalType.INT32: 32, PhysicalType.INT64: 64}
_UNITS = {TimeUnit.MILLIS: Unit.MILLISECOND, TimeUnit.MICROS: Unit.MICROSECOND, TimeUnit.NANOS: Unit.NANOSECOND}
_MAX_DECIMAL_BYTES = 32
_TEXT_TAGS = (Tag.STRING, Tag.SYMBOL, Tag.VARCHAR)


class SidecarColumns(Mapping[ColumnPath, ColumnBounds]):
    """The columns of a sidecar by path, read when they are asked for.

    Without `schema` a column is known by its top-level name, and a name that several leaves share proves nothing.
    `trust_appended_blooms` says that whoever appended versions wrote the filters right: QuestDB attaches them to the
    wrong row group when it merges into two at once, so filters of blocks that came after the first version are not
    asked otherwise. Raises SchemaMismatch when `schema` has other columns than the sidecar.
    """

    def __init__(self, sidecar: Sidecar, schema: Schema | None = None, *, trust_appended_blooms: bool = False) -> None:
        if schema is not None and len(schema.leaves) != sidecar.column_count:
            raise SchemaMismatch(
                "the schema has another number of leaf columns than the sidecar",
                expected=sidecar.column_count,
                found=len(schema.leaves),
            )
        self._sidecar = sidecar
        self._schema = schema
        self._trust_appended_blooms = trust_appended_blooms
        self._read: dict[ColumnPath, ColumnBounds] = {}

    def __getitem__(self, path: ColumnPath) -> ColumnBounds:
        if path not in self._read:  # a conjunction asks once for each of its parts
            self._read[path] = self._column_bounds(path)
        return self._read[path]

    def _column_bounds(self, path: ColumnPath) -> ColumnBounds:
        index = self._indices[path]
        if index is None:
            return ColumnBounds.of(
                Unordered("several columns"), block_count=self._sidecar.row_group_count, is_nested=True
            )
        column = self._sidecar.columns[index]
        leaf = self._schema.leaves[index] if self._schema else None
        if leaf is not None and leaf.top.name != column.name:
            raise SchemaMismatch(
                "the schema has another column here", place=f"column {index}", expected=column.name, found=leaf.top.name
            )
        domain = column_domain(column, leaf, is_questdb=self._sidecar.sections.seq_txn is not None)
        return self._bounds(index, domain, is_nested=_is_nested(column, leaf))

    def __iter__(self) -> Iterator[ColumnPath]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)

    @cached_property
    def _indices(self) -> dict[ColumnPath, int | None]:
        """The leaf of every path; None for a group, and for a name that stands for several leaves."""
        found: dict[ColumnPath, int | None] = {}
        if self._schema is None:
            for index, column in enumerate(self._sidecar.columns):
                found[column.name,] = None if (column.name,) in found else index
            return found
        for leaf in self._schema.leaves:
            for length in range(1, len(leaf.path)):
                found[leaf.path[:length]] = None
            found[leaf.path] = None if leaf.path in found else leaf.index
        return found

    def _bounds(self, index: int, domain: Domain, *, is_nested: bool) -> ColumnBounds:
        sidecar = self._sidecar
        chunks = sidecar.column_chunks(index)
        nulls, has_nulls = null_counts(chunks)
        bounds: dict[str, Any] = {}
        if domain.is_ordered and not is_nested:
            low, high = ordered_bounds(sidecar, index, domain).values()
            bounds = {"minimum": low.values, "has_minimum": low.present}
            bounds |= {"maximum": high.values, "has_maximum": high.present}
        return ColumnBounds.of(
            domain,
            block_count=sidecar.row_group_count,
            null_count=nulls,
            has_null_count=has_nulls,
            value_count=chunks["num_values"],
            is_nested=is_nested,
            bloom=self._bloom_probe(index),
            **bounds,
        )

    def _bloom_probe(self, index: int) -> BloomProbe | None:
        sidecar = self._sidecar
        places = bloom_places(sidecar, index)
        begins = np.where(self._is_bloom_trusted, places.begins, -1)
        if not (begins >= 0).any():
            return None
        words = np.frombuffer(sidecar.data, "<u4", sidecar.size // 4)
        begin_words = np.where(begins < 0, -1, begins // 4)
        split_blocks = places.sizes // 32

        def probe(plain: bytes, blocks: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
            return contains_all(words, begin_words[blocks], split_blocks[blocks], hash_values([plain])[0])

        return probe

    @cached_property
    def _is_bloom_trusted(self) -> npt.NDArray[np.bool_]:
        offsets = self._sidecar.block_offsets
        if self._trust_appended_blooms or self._sidecar.footer.previous_size == 0:
            return np.ones(len(offsets), np.bool_)
        *_, first = walk(self._sidecar.data, self._sidecar.size)
        return offsets < first.offset


class SideBounds(NamedTuple):
    """One side's bounds over all blocks, as `prune` takes them, and where there is one."""

    values: BoundArray
    present: npt.NDArray[np.bool_]


def ordered_bounds(sidecar: Sidecar, index: int, domain: Domain) -> dict[Side, SideBounds]:
    """Both sides' bounds of a column whose values are ordered as `domain` says."""
    dtype = _DTYPES.get(PhysicalType(sidecar.columns[index].physical_type))
    if dtype is None:
        arrays = {side: byte_bounds(sidecar, index, side) for side in SIDES}
        return {side: SideBounds(array, array.is_valid().to_numpy(False)) for side, array in arrays.items()}
    found = fixed_bounds(sidecar, index, dtype)
    return {
        "min": SideBounds(_signed_as(domain, found.minimum), found.has_minimum),
        "max": SideBounds(_signed_as(domain, found.maximum), found.has_maximum),
    }


def show_bounds(sidecar: Sidecar, index: int) -> tuple[list[str | None], list[str | None]]:
    """Minima and maxima of a column as people read them; bytes in hexadecimal where the type has no order we know."""
    domain = column_domain(sidecar.columns[index], is_questdb=True)
    if not domain.is_ordered:
        low, high = (
            [value and value.hex() for value in byte_bounds(sidecar, index, side).to_pylist()] for side in SIDES
        )
        return low, high
    sides = ordered_bounds(sidecar, index, domain)
    low, high = (_show(domain, sides[side]) for side in SIDES)
    return low, high


def _show(domain: Domain, bounds: SideBounds) -> list[str | None]:
    keys, _ = domain.keys(bounds.values)
    return [domain.show(key) if is_there else None for key, is_there in zip(keys, bounds.present.tolist(), strict=True)]


def as_bounds(values: pa.Array[Any], domain: Domain) -> BoundArray:
    """Decoded physical values without nulls in the form that `ordered_bounds` has."""
    if pa.types.is_boolean(values.type):
        return values.to_numpy(zero_copy_only=False).view(np.uint8)
    return _signed_as(domain, values.to_numpy()) if pa.types.is_primitive(values.type) else values


def _signed_as(domain: Domain, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Integers as the unsigned ones they are stored for, where the domain is unsigned."""
    is_unsigned = isinstance(domain, Integers) and not domain.signed
    return values.view(f"<u{values.itemsize}") if is_unsigned else values


def _is_nested(column: Column, leaf: Leaf | None) -> bool:
    """Whether a row's value of the named column may be something else than one leaf value.

    Without the schema a leaf of a struct shows itself by more than one optional level, or by a required top-level
    field over an optional leaf.
    """
    if leaf is not None:
        return leaf.max_rep_level > 0
    if column.max_rep_level > 0 or column.max_def_level > 1:
        return True
    return (
        column.max_def_level == 1 and column.repetition is Repetition.REQUIRED and tag_of(column.type) is not Tag.SYMBOL
    )


def column_domain(column: Column, leaf: Leaf | None = None, *, is_questdb: bool = False) -> Domain:
    """How the values of a column are ordered. `is_questdb`: QuestDB wrote the file, so its INT and LONG are signed."""
    if column.physical_type not in list(PhysicalType):
        return Unordered(f"physical type {column.physical_type}")
    physical = PhysicalType(column.physical_type)
    if leaf is None:
        return _typed_domain(column, physical, is_questdb) or Unordered(describe(column.type))
    if leaf.physical_type is not physical:
        return Unordered(f"{physical.name}, {leaf.physical_type.name} in the schema")
    length = column.fixed_byte_length
    return _logical_domain(leaf.node.logical, physical, length) or Unordered(leaf.node.logical.kind.value)


def _typed_domain(column: Column, physical: PhysicalType, is_questdb: bool) -> Domain | None:
    """The domain that QuestDB's type code gives on its proper physical type."""
    tag, bits = tag_of(column.type), _BITS.get(physical)
    match tag, physical:
        case Tag.BOOLEAN, PhysicalType.BOOLEAN:
            return Booleans()
        case ((Tag.BYTE | Tag.SHORT), PhysicalType.INT32):
            return Integers(32)
        case Tag.CHAR, PhysicalType.INT32:
            return Characters()
        case (Tag.INT, PhysicalType.INT32) | (Tag.LONG, PhysicalType.INT64) if bits:
            return Integers(bits) if is_questdb else AmbiguousIntegers(bits)
        case Tag.DATE, PhysicalType.INT32:
            return Times(Unit.DAY, 32)
        case Tag.DATE, PhysicalType.INT64:
            return Times(Unit.MILLISECOND)
        case Tag.TIMESTAMP, PhysicalType.INT64:
            return Times(Unit.NANOSECOND if column.type & NANOSECONDS else Unit.MICROSECOND)
        case (Tag.FLOAT, PhysicalType.FLOAT) | (Tag.DOUBLE, PhysicalType.DOUBLE):
            return Floats(32 if physical is PhysicalType.FLOAT else 64)
        case _, PhysicalType.BYTE_ARRAY if tag in _TEXT_TAGS:
            return Text()
        case Tag.BINARY, PhysicalType.BYTE_ARRAY:
            return Binary()
        case Tag.UUID, PhysicalType.FIXED_LEN_BYTE_ARRAY if column.fixed_byte_length == 16:
            return Uuids()
        case Tag.IPV4, PhysicalType.INT32:
            return Addresses()
    if tag is not None and Tag.DECIMAL8 <= tag <= Tag.DECIMAL256:
        return _decimal(*decimal_parameters(column.type), physical, column.fixed_byte_length)
    return None


def _logical_domain(logical: LogicalType, physical: PhysicalType, length: int) -> Domain | None:
    """The domain that a schema's logical type gives, None when the type has no order we know."""
    bits = _BITS.get(physical)
    match logical.kind, physical:
        case LogicalKind.NONE, PhysicalType.BOOLEAN:
            return Booleans()
        case LogicalKind.NONE, (PhysicalType.FLOAT | PhysicalType.DOUBLE):
            return Floats(32 if physical is PhysicalType.FLOAT else 64)
        case LogicalKind.NONE, (PhysicalType.INT32 | PhysicalType.INT64) if bits:
            return Integers(bits)
        case LogicalKind.INT, (PhysicalType.INT32 | PhysicalType.INT64) if bits:
            return Integers(bits, signed=bool(logical.is_signed))
        case LogicalKind.DATE, PhysicalType.INT32:
            return Times(Unit.DAY, 32)
        case LogicalKind.TIMESTAMP, PhysicalType.INT64 if logical.unit:
            return Times(_UNITS[logical.unit])
        case ((LogicalKind.STRING | LogicalKind.ENUM | LogicalKind.JSON), PhysicalType.BYTE_ARRAY):
            return Text()
        case ((LogicalKind.NONE | LogicalKind.BSON), PhysicalType.BYTE_ARRAY):
            return Binary()
        case LogicalKind.NONE, PhysicalType.FIXED_LEN_BYTE_ARRAY:
            return FixedBinary(length)
        case LogicalKind.UUID, PhysicalType.FIXED_LEN_BYTE_ARRAY if length == 16:
            return Uuids()
        case LogicalKind.DECIMAL, _:
            return _decimal(logical.precision or 0, logical.scale or 0, physical, length)
    return None


def _decimal(precision: int, scale: int, physical: PhysicalType, length: int) -> Domain | None:
    match physical:
        case PhysicalType.INT32 | PhysicalType.INT64:
            return Decimals(precision, scale, _BITS[physical] // 8, big_endian=False)
        case PhysicalType.FIXED_LEN_BYTE_ARRAY if 1 <= length <= _MAX_DECIMAL_BYTES:
            return Decimals(precision, scale, length)
        case PhysicalType.BYTE_ARRAY:
            return Decimals(precision, scale, None)
    return None
