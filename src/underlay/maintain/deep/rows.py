"""Checks the index entry of a file against its rows, decoded block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from underlay.errors import Inconsistent
from underlay.index.constants import pack_constants
from underlay.index.entry import NO_COLUMN, FileEntry, FileLayout, Flag
from underlay.index.segment.arrays import ChunkStatistics
from underlay.maintain.verify.history import known_file
from underlay.parquet.footer.minimal import Chunk
from underlay.prune.domains.domain import KeyArray
from underlay.prune.predicates.operand import format_column
from underlay.scan.read.file_read import BlockChunks, FileRead
from underlay.scan.read.file_shape import FileShape
from underlay.scan.read.file_stores import ObjectPlace
from underlay.schema.arrow_aliases import AnyArray
from underlay.schema.bound_storage import Storage, bound_domain, storage_of
from underlay.schema.cast.list_items import list_entries, map_entries
from underlay.schema.convert.stored_values import one_array, stored_array
from underlay.schema.partitioning.partition import apply_transform
from underlay.schema.partitioning.transform import PartitionField
from underlay.schema.table_schema import LeafColumn, TableSchema
from underlay.schema.types import Field, ListOf, MapOf, Scalar, StructOf, TypeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsCheck:
    """A file, and what its entry says about its rows: statistics by leaf, in the schema's types, and partition
    values.
    """

    place: ObjectPlace
    entry: FileEntry
    layout: FileLayout
    schema: TableSchema
    statistics: Mapping[int, ChunkStatistics]
    partitions: Sequence[tuple[PartitionField, bytes | None]] = ()


def row_problems(check: RowsCheck) -> Iterator[str]:
    """What the rows contradict. Raises Damaged when they do not decode, Replaced when the file is another one."""
    shape = FileShape.of(check.layout, check.schema, check.schema.fields)
    for block, chunks in enumerate(_blocks(check.entry, shape)):
        read = FileRead(
            place=check.place,
            known=known_file(check.entry),
            shape=shape,
            blocks=(chunks,),
            constants=pack_constants(check.entry.constants),
        )
        for problem in _block_problems(check, block, read.read()):
            yield f"{problem} (block {block})"


def _blocks(entry: FileEntry, shape: FileShape) -> Iterator[BlockChunks]:
    columns = {column.column: column for column in entry.columns if column.column != NO_COLUMN}
    leaves = [leaf for column in shape.columns for leaf in column.leaves]
    if not columns.keys() >= set(leaves):
        raise Inconsistent("the entry lacks a column that its layout has", place=entry.location)
    for block, row_count in enumerate(np.frombuffer(entry.block_rows, "<i8").tolist()):
        chunks = {}
        for leaf in leaves:
            column = columns[leaf]
            counts = np.frombuffer(column.value_counts, "<i8")
            chunks[leaf] = Chunk(
                begin=int(np.frombuffer(column.begins, "<i8")[block]),
                size=int(np.frombuffer(column.sizes, "<i8")[block]),
                codec=column.codecs[block],
                value_count=int(counts[block]) if len(counts) else row_count,
            )
        yield BlockChunks(row_count=row_count, chunks=chunks)


def _block_problems(check: RowsCheck, block: int, rows: pa.Table) -> Iterator[str]:
    leaves = check.schema.leaf_by_id
    held: dict[int, AnyArray] = {}
    for field, column in zip(check.schema.fields, rows.columns, strict=True):
        held |= dict(_leaf_arrays(one_array(column), field))
    for ident, values in held.items():
        if ident in check.statistics:
            yield from _leaf_problems(leaves[ident], check.statistics[ident], block, values)
    for partition, value in check.partitions:
        if partition.field in held and not _has_only(
            apply_transform(partition, held[partition.field]), partition.type, value
        ):
            name = format_column(leaves[partition.field].path)
            yield f"a row belongs to another partition ({partition.transform} of {name}) than its file"


def _leaf_arrays(array: AnyArray, field: Field) -> Iterator[tuple[int, AnyArray]]:
    """The values of each leaf of a column, by leaf id: one for each row, or all items of all lists."""
    match field.type:
        case Scalar():
            yield field.id, array
        case StructOf(fields) if isinstance(array, pa.StructArray):
            for inner, values in zip(fields, array.flatten(), strict=True):
                yield from _leaf_arrays(values, inner)
        case ListOf(element):
            yield from _leaf_arrays(list_entries(array)[0], element)
        case MapOf(key, value):
            keys, values, _ = map_entries(array)
            yield from _leaf_arrays(keys, key)
            yield from _leaf_arrays(values, value)


def _leaf_problems(leaf: LeafColumn, statistics: ChunkStatistics, block: int, values: AnyArray) -> Iterator[str]:
    flags = Flag(int(statistics.flags[block]))
    name = format_column(leaf.path)
    if Flag.HAS_NULL_COUNT in flags and not leaf.is_repeated and statistics.null_counts[block] != values.null_count:
        yield f"{name} has {values.null_count} nulls, not {statistics.null_counts[block]}"
    if leaf.type.kind in (TypeKind.FLOAT16, TypeKind.FLOAT32, TypeKind.FLOAT64):
        is_nan = pc.is_nan(values.cast(pa.float64()))
        if Flag.MAY_HOLD_NAN not in flags and pc.any(is_nan).as_py():
            yield f"{name} holds NaN"
        values = values.filter(pc.invert(is_nan))
    keys = _extremes(values, leaf.type)
    if keys is None:
        return
    domain = bound_domain(leaf.type)
    for side, bounds, has, exact in (
        ("lower", statistics.low, Flag.HAS_LOW, Flag.IS_LOW_EXACT),
        ("upper", statistics.high, Flag.HAS_HIGH, Flag.IS_HIGH_EXACT),
    ):
        if bounds is None or has not in flags:
            continue
        (bound,), (is_bound,) = domain.keys(bounds[block : block + 1])
        extreme = keys[0] if side == "lower" else keys[1]
        if is_bound and (extreme < bound if side == "lower" else extreme > bound):
            yield f"{name} holds {domain.show(extreme)}, beyond its {side} bound {domain.show(bound)}"
        elif exact in flags and is_bound and extreme != bound:
            yield f"the {side} bound of {name}, {domain.show(bound)}, is said to occur and does not"


def _extremes(values: AnyArray, scalar: Scalar) -> KeyArray | None:
    """The keys of the least and the greatest value; None without values, or when the type has no order."""
    present = values.drop_null()
    if not len(present) or storage_of(scalar) is Storage.NONE:
        return None
    if scalar.kind is TypeKind.DECIMAL:
        ends = pc.min_max(present)
        stored = stored_array(pa.array([ends["min"].as_py(), ends["max"].as_py()], present.type), scalar)
    else:
        stored = stored_array(present, scalar)
        if isinstance(stored, np.ndarray):
            stored = np.array([stored.min(), stored.max()], stored.dtype)
        else:
            ends = pc.min_max(stored)
            stored = pa.array([ends["min"].as_py(), ends["max"].as_py()], pa.binary())
    return bound_domain(scalar).keys(stored)[0]


def _has_only(values: AnyArray, scalar: Scalar, value: bytes | None) -> bool:
    """Whether every row has this partition value, packed as entries have it."""
    if not len(values):
        return True
    if value is None or values.null_count:
        return value is None and values.null_count == len(values)
    stored = stored_array(values, scalar)
    if isinstance(stored, np.ndarray):
        return stored.astype(storage_of(scalar).value).tobytes() == value * len(values)
    return bool(pc.all(pc.equal(stored, pa.scalar(value, pa.binary()))).as_py())
