"""The statistics of one leaf column over many blocks, and which of them are trusted.

A statistic is used only when nothing speaks against it. Discarded are NaN as a bound, a pair with the minimum above the
maximum or with a value that the type cannot hold, and a null count that is negative or above the number of values. What
is discarded is unknown, and unknown never drops a block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from underlay.prune.domains.domain import BoolArray, BoundArray, Domain, KeyArray, present_mask
from underlay.prune.domains.integers import AmbiguousIntegers

BloomProbe = Callable[[bytes, NDArray[np.intp]], BoolArray]
"""Given the PLAIN bytes of one value and block numbers: for each of those blocks, whether it may hold it.

A block without a filter may hold every value.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRanges:
    """One trusted range of keys per block. Where a `has_` mask is false, the key beside it means nothing."""

    domain: Domain
    minimum: KeyArray
    maximum: KeyArray
    has_minimum: BoolArray
    has_maximum: BoolArray

    @staticmethod
    def of(domain: Domain, minimum: BoundArray, maximum: BoundArray, given: tuple[BoolArray, BoolArray]) -> KeyRanges:
        """The ranges of the bounds that `given` says exist, less those that cannot be right."""
        low, is_low_valid = domain.keys(minimum)
        high, is_high_valid = domain.keys(maximum)
        has_low, has_high = given[0] & is_low_valid, given[1] & is_high_valid
        if not domain.holds_nan:
            has_foreign = (given[0] & ~is_low_valid) | (given[1] & ~is_high_valid)
            has_low, has_high = has_low & ~has_foreign, has_high & ~has_foreign
        is_inverted = has_low & has_high & np.asarray(low > high, dtype=np.bool_)
        return KeyRanges(
            domain=domain,
            minimum=low,
            maximum=high,
            has_minimum=has_low & ~is_inverted,
            has_maximum=has_high & ~is_inverted,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnBounds:
    """What is known about one leaf column in each of N blocks. Build it with `of`.

    `ranges` holds one reading of the bounds, or two when the column's sign is not known. `null_count` is -1 where
    unknown, and so is `value_count`, which counts nulls too. `is_nested` says that the statistics describe something
    other than the rows' values of the named column: items of a list or map, or one field of a struct. Then they prove
    nothing. A field of a struct addressed by its own full path, with no list above it, is not nested in this sense.
    """

    domain: Domain
    ranges: tuple[KeyRanges, ...]
    null_count: NDArray[np.int64]
    value_count: NDArray[np.int64]
    may_hold_nan: BoolArray
    is_nested: bool
    bloom: BloomProbe | None

    @staticmethod
    def of(
        domain: Domain,
        *,
        block_count: int,
        minimum: BoundArray | None = None,
        maximum: BoundArray | None = None,
        has_minimum: ArrayLike | None = None,
        has_maximum: ArrayLike | None = None,
        null_count: ArrayLike | None = None,
        has_null_count: ArrayLike | None = None,
        value_count: ArrayLike | None = None,
        may_hold_nan: ArrayLike = True,
        is_nested: bool = False,
        bloom: BloomProbe | None = None,
    ) -> ColumnBounds:
        """Checks every array's length and discards what cannot be right.

        Bounds are numpy arrays, or pyarrow arrays whose nulls are missing bounds; None is N missing bounds.
        Raises ValueError when an array has another length than `block_count`.
        """
        low, has_low = _given("minimum", minimum, has_minimum, block_count)
        high, has_high = _given("maximum", maximum, has_maximum, block_count)
        values = _counts("value_count", value_count, None, block_count)
        nulls = _counts("null_count", null_count, has_null_count, block_count)
        is_absurd = (nulls < 0) | ((values >= 0) & (nulls > values))
        return ColumnBounds(
            domain=domain,
            ranges=_ranges(domain, low, high, (has_low, has_high)),
            null_count=np.where(is_absurd, -1, nulls),
            value_count=values,
            may_hold_nan=_may_hold_nan(domain, low, high, _mask("may_hold_nan", may_hold_nan, block_count)),
            is_nested=is_nested,
            bloom=bloom,
        )

    @property
    def block_count(self) -> int:
        """N."""
        return len(self.null_count)

    @property
    def is_null_free(self) -> BoolArray:
        """Where it is known that no row is null."""
        if self.is_nested:
            return np.zeros(self.block_count, dtype=np.bool_)
        return np.asarray(self.null_count == 0, dtype=np.bool_)

    @property
    def is_all_null(self) -> BoolArray:
        """Where it is known that every row is null: the counts agree, and no bound speaks of a value."""
        counts_agree = (self.null_count == self.value_count) & (self.value_count > 0)
        if self.is_nested or not counts_agree.any():
            return np.zeros(self.block_count, dtype=np.bool_)
        has_bound = np.logical_or.reduce([r.has_minimum | r.has_maximum for r in self.ranges])
        return np.asarray(counts_agree & ~has_bound, dtype=np.bool_)

    def show_minimum(self, block: int) -> str:
        """The minimum in words, in each reading."""
        return " or ".join(dict.fromkeys(r.domain.show(r.minimum[block]) for r in self.ranges))

    def show_maximum(self, block: int) -> str:
        """The maximum in words, in each reading."""
        return " or ".join(dict.fromkeys(r.domain.show(r.maximum[block]) for r in self.ranges))


def _ranges(
    domain: Domain, low: BoundArray, high: BoundArray, given: tuple[BoolArray, BoolArray]
) -> tuple[KeyRanges, ...]:
    if not isinstance(domain, AmbiguousIntegers):
        return (KeyRanges.of(domain, low, high, given),)
    as_signed, as_unsigned = domain.readings
    signed = KeyRanges.of(as_signed, low, high, given)
    unsigned = KeyRanges.of(as_unsigned, as_unsigned.wrap(signed.minimum), as_unsigned.wrap(signed.maximum), given)
    return signed, unsigned


def _given(
    name: str, bounds: BoundArray | None, mask: ArrayLike | None, block_count: int
) -> tuple[BoundArray, BoolArray]:
    if bounds is None:
        return np.zeros(block_count, dtype=np.int64), np.zeros(block_count, dtype=np.bool_)
    _check_length(name, len(bounds), block_count)
    return bounds, present_mask(bounds) & _mask(f"has_{name}", True if mask is None else mask, block_count)


def _counts(name: str, counts: ArrayLike | None, mask: ArrayLike | None, block_count: int) -> NDArray[np.int64]:
    """The counts, -1 where unknown. A count beyond int64 is as wrong as a negative one."""
    if counts is None:
        return np.full(block_count, -1, dtype=np.int64)
    given = np.asarray(counts).astype(np.int64)
    _check_length(name, given.size, block_count)
    known = _mask(f"has_{name}", True if mask is None else mask, block_count)
    return np.where(known & (given >= 0), given, -1)


def _may_hold_nan(domain: Domain, low: BoundArray, high: BoundArray, claimed: BoolArray) -> BoolArray:
    """What the caller claims, and wherever a bound is NaN."""
    if not domain.holds_nan:
        return np.zeros(len(claimed), dtype=np.bool_)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        seen = [np.isnan(np.asarray(bounds, dtype=np.float64)) for bounds in (low, high)]
    return np.asarray(claimed | seen[0] | seen[1], dtype=np.bool_)


def _mask(name: str, mask: ArrayLike, block_count: int) -> BoolArray:
    given = np.asarray(mask, dtype=np.bool_)
    if given.ndim == 0:
        return np.full(block_count, bool(given), dtype=np.bool_)
    _check_length(name, given.size, block_count)
    return given


def _check_length(name: str, found: int, block_count: int) -> None:
    if found != block_count:
        raise ValueError(f"{name} has {found} entries for {block_count} blocks")
