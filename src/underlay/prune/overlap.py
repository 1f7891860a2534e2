"""Whether the ranges of many blocks can meet a selection of keys, all blocks at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from underlay.prune.bounds import KeyRanges
from underlay.prune.domain import BoolArray, KeyArray
from underlay.prune.span import Key, Selection, Span
from underlay.prune.verdict import KEPT, Cause


def miss(ranges: KeyRanges, selection: Selection, may_hold_nan: BoolArray) -> NDArray[np.uint8]:
    """For each block the cause why its range and the selection have nothing in common, or 0."""
    if selection.is_never:
        return np.full(len(ranges.minimum), Cause.NEVER, dtype=np.uint8)
    if not selection.spans:
        causes = np.full(len(ranges.minimum), Cause.NO_NAN, dtype=np.uint8)
    elif len(selection.spans) == 1:
        causes = _miss_span(ranges, selection.spans[0])
    else:
        causes = _miss_all(ranges, selection.spans)
    if selection.nan:
        causes[may_hold_nan] = KEPT
    return causes


def _miss_span(ranges: KeyRanges, span: Span) -> NDArray[np.uint8]:
    causes = np.full(len(ranges.minimum), KEPT, dtype=np.uint8)
    if span.high is not None:
        high = _keys([span.high], ranges.minimum.dtype)
        reached = ranges.minimum < high if span.high_open else ranges.minimum <= high
        causes[ranges.has_minimum & ~_mask(reached)] = Cause.ABOVE
    if span.low is not None:
        low = _keys([span.low], ranges.maximum.dtype)
        reached = ranges.maximum > low if span.low_open else ranges.maximum >= low
        causes[ranges.has_maximum & ~_mask(reached)] = Cause.BELOW
    return causes


def _miss_all(ranges: KeyRanges, spans: tuple[Span, ...]) -> NDArray[np.uint8]:
    """For closed, disjoint, ascending spans: the last one that begins at or before the maximum decides."""
    lows, highs = (
        _keys([span.low for span in spans], ranges.minimum.dtype),
        _keys([span.high for span in spans], ranges.minimum.dtype),
    )
    begun = np.full(len(ranges.minimum), len(spans), dtype=np.intp)
    begun[ranges.has_maximum] = np.searchsorted(lows, ranges.maximum[ranges.has_maximum], side="right")
    ended = np.zeros(len(ranges.minimum), dtype=np.intp)
    ended[ranges.has_minimum] = np.searchsorted(highs, ranges.minimum[ranges.has_minimum], side="left")
    causes = np.where(begun <= ended, Cause.GAP, KEPT).astype(np.uint8)
    causes[begun == 0] = Cause.BELOW
    causes[ended == len(spans)] = Cause.ABOVE
    return causes


def _keys(values: list[Key | None], dtype: np.dtype[Any]) -> KeyArray:  # Any: as KeyArray
    """Python keys as an array of the type of the ranges', into which every key of the domain fits.

    Never compare with a bare `bytes`: numpy would make it a string of its own and lose its trailing NULs.
    """
    keys = np.empty(len(values), dtype=dtype)
    keys[:] = values
    return keys


def _mask(comparison: object) -> BoolArray:
    return np.asarray(comparison, dtype=np.bool_)
