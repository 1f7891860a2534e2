"""Decodes a column's bounds for the pruner and for display."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from underlay.pm.format.sidecar import Sidecar
from underlay.pm.format.statistics import SIDES, Side, byte_bounds, fixed_bounds
from underlay.pm.prune.domains import column_domain
from underlay.prune import BoundArray, Domain, Integers
from underlay.values.physical import PhysicalType

_DTYPES = {
    PhysicalType.BOOLEAN: "<u1",
    PhysicalType.INT32: "<i4",
    PhysicalType.INT64: "<i8",
    PhysicalType.FLOAT: "<f4",
    PhysicalType.DOUBLE: "<f8",
}


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
