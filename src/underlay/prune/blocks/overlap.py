"""Whether the ranges of many blocks can meet a selection of keys, all blocks at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from underlay.prune.blocks.cause import KEPT, Cause
from underlay.prune.blocks.column_bounds import KeyRanges
from underlay.prune.domains.domain import BoolArray, KeyArray
from underlay.prune.domains.selection import Key, Selection, Span

Causes = NDArray[np.uint8]

_FEW_SPANS = 4
"""Up to this number of spans they are tried one by one; above it a binary search is faster."""


def miss(ranges: KeyRanges, selection: Selection, may_hold_nan: BoolArray) -> Causes:
    """For each block the cause why its range and the selection have nothing in common, or 0."""
    spans = selection.spans
    if not spans:
        cause = Cause.NO_NAN if selection.nan else Cause.NEVER
        causes = np.full(len(ranges.minimum), cause, dtype=np.uint8)
    elif len(spans) == 1:
        causes = _miss_span(ranges, spans[0])
    else:
        is_missed = _misses_each(ranges, spans) if len(spans) <= _FEW_SPANS else _misses_gap(ranges, spans)
        causes = _place(ranges, spans, is_missed)
    if selection.nan and ranges.domain.holds_nan:
        causes[may_hold_nan] = KEPT
    return causes


def _miss_span(ranges: KeyRanges, span: Span) -> Causes:
    causes = paint(_is_above(ranges, span), Cause.ABOVE)
    if span.low is not None:
        np.putmask(causes, _is_below(ranges, span), Cause.BELOW)
    return causes


def _is_above(ranges: KeyRanges, span: Span) -> BoolArray:
    """Where the minimum is above the span."""
    if span.high is None:
        return np.zeros(len(ranges.minimum), dtype=np.bool_)
    high = _keys([span.high], ranges.minimum.dtype)
    above = ranges.minimum >= high if span.high_open else ranges.minimum > high
    return _mask(above) & ranges.has_minimum


def _is_below(ranges: KeyRanges, span: Span) -> BoolArray:
    """Where the maximum is below the span."""
    if span.low is None:
        return np.zeros(len(ranges.maximum), dtype=np.bool_)
    low = _keys([span.low], ranges.maximum.dtype)
    below = ranges.maximum <= low if span.low_open else ranges.maximum < low
    return _mask(below) & ranges.has_maximum


def _misses_each(ranges: KeyRanges, spans: tuple[Span, ...]) -> BoolArray:
    is_missed = _is_above(ranges, spans[0]) | _is_below(ranges, spans[0])
    for span in spans[1:]:
        is_missed &= _is_above(ranges, span) | _is_below(ranges, span)
    return is_missed


def _misses_gap(ranges: KeyRanges, spans: tuple[Span, ...]) -> BoolArray:
    """For disjoint spans: missed when as many have ended before the minimum as begin at or before the maximum."""
    lows = [span.low for span in spans if span.low is not None]
    highs = [span.high for span in spans if span.high is not None]
    begun, ended = np.full(len(ranges.minimum), len(spans), dtype=np.intp), np.zeros(len(ranges.minimum), dtype=np.intp)
    has_low, has_high = ranges.has_minimum, ranges.has_maximum
    found = np.searchsorted(
        _keys(lows, ranges.maximum.dtype), ranges.maximum[has_high], side="left" if spans[-1].low_open else "right"
    )
    begun[has_high] = found + (len(spans) - len(lows))
    ended[has_low] = np.searchsorted(
        _keys(highs, ranges.minimum.dtype), ranges.minimum[has_low], side="right" if spans[0].high_open else "left"
    )
    return begun <= ended


def _place(ranges: KeyRanges, spans: tuple[Span, ...], is_missed: BoolArray) -> Causes:
    """Missed blocks by where they lie: before all spans, after them, or between two."""
    causes = paint(is_missed, Cause.GAP)
    np.putmask(causes, is_missed & _is_above(ranges, spans[-1]), Cause.ABOVE)
    np.putmask(causes, is_missed & _is_below(ranges, spans[0]), Cause.BELOW)
    return causes


def paint(mask: BoolArray, cause: Cause) -> Causes:
    """The cause where the mask is true, 0 elsewhere."""
    return mask.view(np.uint8) * np.uint8(cause)


def _keys(values: list[Key], dtype: np.dtype[Any]) -> KeyArray:  # Any: as KeyArray
    """Python keys as an array of the type of the ranges', into which every key of the domain fits.

    Never compare with a bare `bytes`: numpy would make it a string of its own and lose its trailing NULs.
    """
    keys = np.empty(len(values), dtype=dtype)
    keys[:] = values
    return keys


def _mask(comparison: object) -> BoolArray:
    return np.asarray(comparison, dtype=np.bool_)
