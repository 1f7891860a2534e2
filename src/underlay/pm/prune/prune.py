"""Prunes row groups by a sidecar alone, and returns the byte ranges that remain."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from underlay.errors import Inconsistent, InvalidRequest
from underlay.parquet.footer.schema import Schema
from underlay.pm.format.sidecar import Sidecar
from underlay.pm.format.statistics import fixed_bounds
from underlay.pm.prune.columns import SidecarColumns
from underlay.prune import And, Verdict, evaluate
from underlay.values.ranges import ByteRange, coalesce

DecodeBounds = Callable[[int], tuple[int, int]]
"""First and last designated timestamp of a row group, decoded from its data."""


def prune(
    sidecar: Sidecar, where: And, schema: Schema | None = None, *, trust_appended_blooms: bool = False
) -> Verdict:
    """Which row groups may hold a matching row, and why each other one cannot (see `SidecarColumns`)."""
    columns = SidecarColumns(sidecar, schema, trust_appended_blooms=trust_appended_blooms)
    return evaluate(where, columns, block_count=sidecar.row_group_count, row_count=sidecar.num_rows)


def chunk_ranges(
    sidecar: Sidecar, row_groups: Iterable[int], columns: Iterable[int] | None = None, *, gap_bytes: int = 0
) -> list[ByteRange]:
    """The byte ranges of the chosen chunks in the Parquet file, neighbours joined.

    Raises Inconsistent for a chunk that does not lie before the Parquet footer of this version.
    """
    rows = np.fromiter(row_groups, np.intp)
    wanted = np.arange(sidecar.column_count) if columns is None else np.fromiter(columns, np.intp)
    _check_indices("row group", rows, sidecar.row_group_count)
    _check_indices("column", wanted, sidecar.column_count)
    chunks = sidecar.chunks[np.ix_(rows, wanted)]
    begins, sizes = chunks["begin"], chunks["size"]
    limit = np.uint64(sidecar.footer.parquet_footer_offset)
    outside = (begins > limit) | (sizes > limit - np.minimum(begins, limit))
    if outside.any():
        row, column = (int(i) for i in np.argwhere(outside)[0])
        raise Inconsistent(
            "the chunk does not lie before the Parquet footer",
            place=f"row group {rows[row]}, column {sidecar.columns[int(wanted[column])].name}",
            expected=f"an end at or before byte {int(limit)}",
            found=f"{int(begins[row, column])} + {int(sizes[row, column])}",
        )
    ends = begins + sizes
    pairs = zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True)
    return coalesce((ByteRange(begin, end) for begin, end in pairs), gap_bytes=gap_bytes)


def _check_indices(what: str, indices: npt.NDArray[np.intp], count: int) -> None:
    bad = indices[(indices < 0) | (indices >= count)]
    if len(bad):
        raise InvalidRequest(f"no such {what}", expected=f"0 to {count - 1}", found=int(bad[0]))


def search_timestamp(sidecar: Sidecar, value: int, decode_bounds: DecodeBounds | None = None) -> int:
    """Where `value`, in the designated timestamp's own unit, belongs among the row groups, as QuestDB answers it.

    With R row groups: 2·i + 1 when it lies before row group i and after those before it, 2·(i + 1) when it lies
    inside row group i before its last timestamp, 2·R + 1 when it is not before any last timestamp. Row groups without
    rows are skipped. Bounds that the sidecar does not have come from `decode_bounds`, asked only for row groups that
    the answer depends on.
    """
    column = sidecar.header.designated_timestamp
    if column < 0:
        raise InvalidRequest("the sidecar has no designated timestamp")
    bounds = fixed_bounds(sidecar, column, "<i8")
    has_rows = sidecar.num_rows > 0
    is_known = bounds.has_minimum & bounds.has_maximum
    stops = is_known & ((value < bounds.minimum) | (value < bounds.maximum))
    for row_group in np.flatnonzero(has_rows & (stops | ~is_known)).tolist():
        if is_known[row_group]:
            low, high = bounds.minimum[row_group], bounds.maximum[row_group]
        elif decode_bounds is not None:
            low, high = decode_bounds(row_group)
        else:
            raise InvalidRequest(
                f"row group {row_group} has no bounds of the designated timestamp",
                hint="Give decode_bounds, or build the sidecar again with timestamps backfilled.",
            )
        if value < low:
            return 2 * row_group + 1
        if value < high:
            return 2 * (row_group + 1)
    return 2 * sidecar.row_group_count + 1
