"""Which of a column's values a predicate selects, in the order of the column's own type.

A literal is not always one point: engines disagree whether `f32 = 0.1` compares floats or doubles, or whether
text is rounded before it is compared. So a literal is read as a closed interval that holds every reading, and
a comparison selects whatever *some* reading selects. That is a superset of the matching rows in every engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from underlay.prune.predicates.predicate import Op

Key = int | Fraction | float | bytes
"""A point in a type's order. One type's keys are all numbers or all bytes."""


@dataclass(frozen=True, slots=True)
class Span:
    """The keys from `low` to `high`, both included unless open; None means unlimited on that side."""

    low: Key | None = None
    high: Key | None = None
    low_open: bool = False
    high_open: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """Spans in ascending order, and whether NaN is selected too.

    Two spans may be of any kind. More than two are disjoint, and their inner ends are all closed or all open.
    """

    spans: tuple[Span, ...]
    nan: bool = False

    @property
    def is_never(self) -> bool:
        """Whether no value of the type is selected."""
        return not self.spans and not self.nan


NEVER = Selection(())
EVERYTHING = Selection((Span(),), nan=True)


def span_of(op: Op, low: Key, high: Key) -> Span:
    """What `column op literal` selects when the literal may be read as anything from `low` to `high`.

    `<>` selects every key; `outside` is for those whose literals have one reading.
    """
    match op:
        case Op.EQ:
            return Span(low, high)
        case Op.NE:
            return Span()
        case Op.LT:
            return Span(None, high, high_open=True)
        case Op.LE:
            return Span(None, high)
        case Op.GT:
            return Span(low, None, low_open=True)
        case Op.GE:
            return Span(low, None)


def select_nan(op: Op) -> Selection:
    """What `column op NaN` selects where NaN equals itself and is greater than every number, or in Arrow."""
    match op:
        case Op.EQ | Op.GE:
            return Selection((), nan=True)
        case Op.NE:
            return EVERYTHING
        case Op.LT:
            return Selection((Span(),))
        case Op.LE:
            return Selection((Span(),), nan=True)
        case Op.GT:
            return NEVER


def whole_span(span: Span, first: int | None, last: int | None) -> Span | None:
    """The integers of a span of numbers within `first .. last`, as a closed span; None if there are none."""
    low = _least_integer(span) if span.low is not None else None
    high = _greatest_integer(span) if span.high is not None else None
    low = first if low is None else low if first is None else max(low, first)
    high = last if high is None else high if last is None else min(high, last)
    if low is not None and high is not None and low > high:
        return None
    return Span(low, high)


def intersect(left: Selection, right: Selection) -> Selection:
    """What both halves of BETWEEN select: `left` has no upper limits and `right` no lower ones."""
    nan = left.nan and right.nan
    if not left.spans or not right.spans:
        return Selection((), nan)
    (lower,), (upper,) = left.spans, right.spans
    span = Span(lower.low, upper.high, lower.low_open, upper.high_open)
    return Selection((), nan) if _is_empty(span) else Selection((span,), nan)


def unite(selections: Iterable[Selection]) -> Selection:
    """What any of several equalities selects; spans that touch are joined."""
    chosen = tuple(selections)
    closed = [_ends(span) for selection in chosen for span in selection.spans]
    joined: list[tuple[Key, Key]] = []
    for low, high in sorted(closed):
        if joined and low <= joined[-1][1]:  # type: ignore[operator]  # keys of one type are mutually comparable
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return Selection(tuple(Span(low, high) for low, high in joined), any(c.nan for c in chosen))


def outside(points: Iterable[Key]) -> tuple[Span, ...]:
    """The open spans between and beside the points, less those that no byte string can lie in."""
    ends: list[Key | None] = [None, *sorted(set(points)), None]
    spans = (Span(low, high, low is not None, high is not None) for low, high in pairwise(ends))
    return tuple(span for span in spans if not _is_between_neighbours(span))


def outside_prefix(prefix: bytes) -> tuple[Span, ...]:
    """The byte strings before and after those that begin with `prefix`."""
    if not prefix:
        return ()
    following = successor(prefix)
    below = Span(None, prefix, high_open=True)
    return (below,) if following is None else (below, Span(following, None))


def prefix_span(prefix: bytes) -> Span:
    """The byte strings that begin with `prefix`."""
    following = successor(prefix)
    return Span(prefix, following, high_open=following is not None)


def successor(prefix: bytes) -> bytes | None:
    """The least byte string above all that begin with `prefix`; None when nothing is."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None


def _is_between_neighbours(span: Span) -> bool:
    """Nothing is below the empty string, and nothing between a byte string and itself with a NUL after it."""
    if not isinstance(span.high, bytes):
        return False
    return not span.high or (isinstance(span.low, bytes) and span.high == span.low + b"\0")


def _ends(span: Span) -> tuple[Key, Key]:
    if span.low is None or span.high is None:
        raise TypeError(f"an equality selected {span}")
    return span.low, span.high


def _is_empty(span: Span) -> bool:
    if span.low is None or span.high is None:
        return False
    if span.low == span.high:
        return span.low_open or span.high_open
    return span.low > span.high  # type: ignore[operator]  # keys of one type are mutually comparable


def _least_integer(span: Span) -> int:
    low = _number(span.low)
    return math.floor(low) + 1 if span.low_open else math.ceil(low)


def _greatest_integer(span: Span) -> int:
    high = _number(span.high)
    return math.ceil(high) - 1 if span.high_open else math.floor(high)


def _number(key: Key | None) -> int | Fraction:
    if not isinstance(key, int | Fraction):
        raise TypeError(f"a whole-number column was bound to {key!r}")
    return key
