"""Answers count, min and max from metadata alone, only where that is exact (T11, T12, T34)."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa

from underlay.errors import UnknownColumn
from underlay.index.entry import Flag
from underlay.index.segment.bounds import has_flag, pack_key
from underlay.plan.by_part import PartChoice
from underlay.plan.leaf_bounds import block_bounds, leaf_statistics
from underlay.plan.plan import BlockPlan
from underlay.schema.bound_storage import WIDE_DECIMAL_BYTES, Storage, storage_of
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.table_schema import LeafColumn
from underlay.schema.types import Scalar, TypeKind

AnyScalar: TypeAlias = "pa.Scalar[Any]"  # Any: of the column's type


def exact_row_count(plan: BlockPlan) -> int | None:
    """How many rows match; None when only a scan can tell."""
    return int(plan.row_counts.sum() - plan.deleted_counts.sum()) if plan.must.all() else None


def minimum(plan: BlockPlan, field: int) -> AnyScalar | None:
    """The least value of a leaf in matching rows, null when there is none; None when only a scan can tell."""
    return _extreme(plan, field, Flag.IS_LOW_EXACT)


def maximum(plan: BlockPlan, field: int) -> AnyScalar | None:
    """The greatest value of a leaf in matching rows, null when there is none; None when only a scan can tell."""
    return _extreme(plan, field, Flag.IS_HIGH_EXACT)


def lower_bound(plan: BlockPlan, field: int) -> AnyScalar | None:
    """A value below which no matching row is, also where no row has it; None when metadata knows none."""
    return _bound(plan, field, is_low=True)


def upper_bound(plan: BlockPlan, field: int) -> AnyScalar | None:
    """A value above which no matching row is, also where no row has it; None when metadata knows none."""
    return _bound(plan, field, is_low=False)


def _bound(plan: BlockPlan, field: int, *, is_low: bool) -> AnyScalar | None:
    leaf = plan.schema.leaf_by_id.get(field)
    if leaf is None:
        raise UnknownColumn(f"there is no leaf column with id {field}")
    if leaf.is_repeated or storage_of(leaf.type) is Storage.NONE:
        return None
    keys: list[Any] = []
    for choice in plan.choices:
        if not len(choice.blocks):
            continue
        bounds = block_bounds(choice.part.segment, leaf, choice.blocks)
        (ranges,) = bounds.ranges
        has_values = ~bounds.is_all_null
        is_known = ranges.has_minimum if is_low else ranges.has_maximum & ~bounds.may_hold_nan  # NaN is above all
        if not is_known[has_values].all():
            return None
        chosen = (ranges.minimum if is_low else ranges.maximum)[has_values]
        keys += chosen.tolist() if len(chosen) < 2 else [chosen.min() if is_low else chosen.max()]
    if not keys:
        return None
    # A writer may have cut a text in the middle of a character: without that a lower bound stays one.
    return _value(min(keys) if is_low else max(keys), leaf.type, errors="ignore" if is_low else "replace")


def _extreme(plan: BlockPlan, field: int, exact: Flag) -> AnyScalar | None:
    leaf = plan.schema.leaf_by_id.get(field)
    if leaf is None:
        raise UnknownColumn(f"there is no leaf column with id {field}")
    if leaf.is_repeated or not plan.must.all() or plan.deleted_counts.any() or storage_of(leaf.type) is Storage.NONE:
        return None
    keys: list[Any] = []
    for choice in plan.choices:
        if len(choice.blocks):
            found = _keys(choice, leaf, exact)
            if found is None:
                return None
            keys += found
    if not keys:
        nothing: AnyScalar = pa.scalar(None, to_arrow_type(leaf.type))
        return nothing
    return _value(min(keys) if exact is Flag.IS_LOW_EXACT else max(keys), leaf.type)


def _keys(choice: PartChoice, leaf: LeafColumn, exact: Flag) -> list[Any] | None:
    """The exact bound of each block that has values; None when one of them has none."""
    segment, blocks = choice.part.segment, choice.blocks
    bounds = block_bounds(segment, leaf, blocks)
    (ranges,) = bounds.ranges
    has_values = ~bounds.is_all_null
    flags = leaf_statistics(segment, leaf).flags[blocks]
    # An absent chunk reads as the default, whose bounds are always exact.
    is_exact = has_flag(flags, exact | Flag.IS_ABSENT) & ~bounds.may_hold_nan
    is_low = exact is Flag.IS_LOW_EXACT
    is_exact &= ranges.has_minimum if is_low else ranges.has_maximum
    if not is_exact[has_values].all():
        return None
    chosen = (ranges.minimum if is_low else ranges.maximum)[has_values]
    if leaf.default is not None and len(leaf.path) > 1 and has_flag(flags, Flag.IS_ABSENT).any():
        return None  # the struct may be null in every row
    return chosen.tolist() if len(chosen) < 2 else [chosen.min() if is_low else chosen.max()]


def _value(key: Any, scalar: Scalar, errors: str = "strict") -> AnyScalar:  # noqa: ANN401  # a key of any domain
    arrow = to_arrow_type(scalar)
    if scalar.kind is TypeKind.DECIMAL:
        octets = int(key).to_bytes(WIDE_DECIMAL_BYTES, "little", signed=True)
        return pa.Array.from_buffers(arrow, 1, [None, pa.py_buffer(octets)])[0]
    value: str | bytes | float | bool
    stored = arrow
    match scalar.kind:
        case TypeKind.STRING:
            value = pack_key(key, scalar).decode(errors=errors)
        case TypeKind.BINARY | TypeKind.FIXED | TypeKind.UUID:
            value = pack_key(key, scalar)
        case TypeKind.FLOAT32 | TypeKind.FLOAT64:
            value = float(key) + 0.0  # a bound of zero is stored as -0.0, which may stand for either
        case TypeKind.BOOLEAN:
            value = bool(key)
        case _:
            value = int(key)
            if not pa.types.is_integer(arrow):
                stored = pa.int32() if arrow.bit_width == 32 else pa.int64()
    found: AnyScalar = pa.scalar(value, stored)
    return found if stored is arrow else found.cast(arrow)
