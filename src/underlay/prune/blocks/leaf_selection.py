"""What a leaf asks of one column's type: the keys that may satisfy it, and the keys that may not.

Both are supersets over every engine and every reading of a literal, so a block that meets none of `hits` has no
matching row, and one that meets none of `misses` has no other. Where Spark SQL and DuckDB differ from Arrow on NaN,
NaN is in both; a literal that is NaN selects no block in full.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from underlay.errors import BadPredicate
from underlay.prune.domains.domain import Domain
from underlay.prune.domains.integers import Whole
from underlay.prune.domains.selection import (
    EVERYTHING,
    NEVER,
    Selection,
    intersect,
    outside,
    outside_prefix,
    prefix_span,
    whole_span,
)
from underlay.prune.predicates.like import Rest, shape_of
from underlay.prune.predicates.normalise import NEGATED
from underlay.prune.predicates.number import as_doubles
from underlay.prune.predicates.operand import Operand, format_column, is_nan_literal
from underlay.prune.predicates.predicate import (
    Between,
    ColumnTest,
    Compare,
    In,
    IsDistinct,
    IsNan,
    IsNotDistinct,
    IsNotNan,
    IsNotNull,
    IsNull,
    Like,
    Not,
    NotIn,
    Op,
    StartsWith,
)

Leaf = ColumnTest | Not
"""A test of one column, or NOT above one where `normalise` leaves it."""

_NAN = float("nan")


@dataclass(frozen=True, slots=True)
class LeafSelection:
    """`hits` and `misses` among values, the latter computed on demand, and whether a null row may be among either."""

    hits: Selection
    find_misses: Callable[[], Selection]
    null_hits: bool = False
    null_misses: bool = True

    @property
    def misses(self) -> Selection:
        """The keys that may not satisfy the leaf."""
        return self.find_misses()


def _everything() -> Selection:
    return EVERYTHING


NEVER_TRUE = LeafSelection(NEVER, _everything)
"""A comparison with NULL: no row matches, whatever its column holds."""

_NULLS = LeafSelection(NEVER, _everything, null_hits=True, null_misses=False)
_VALUES = LeafSelection(EVERYTHING, lambda: NEVER)
_UNKNOWN = LeafSelection(EVERYTHING, _everything)


def choose(leaf: Leaf, domain: Domain) -> LeafSelection:
    """The choice of a leaf. Raises BadPredicate for a literal of another kind, with the column as its place."""
    try:
        return _negated(leaf.part, domain) if isinstance(leaf, Not) else _choose(leaf, domain)
    except BadPredicate as error:
        error.at(format_column(tested(leaf).column))
        raise


def tested(leaf: Leaf) -> ColumnTest:
    """The test of a leaf without the NOT above it."""
    part = leaf.part if isinstance(leaf, Not) else leaf
    if not isinstance(part, ColumnTest):
        raise TypeError(f"{leaf} is not a leaf: normalise the predicate first")
    return part


def _choose(test: ColumnTest, domain: Domain) -> LeafSelection:
    match test:
        case Compare(_, op, value):
            return NEVER_TRUE if value is None else _comparison(op, value, domain)
        case In(_, values):
            return _membership(values, domain)
        case NotIn(_, values):
            return NEVER_TRUE if None in values else _swapped(_membership(values, domain))
        case Between(_, low, high):
            return NEVER_TRUE if low is None or high is None else _range(low, high, domain)
        case IsNull() | IsNotDistinct(_, None):
            return _NULLS
        case IsNotNull() | IsDistinct(_, None):
            return _VALUES
        case IsNotDistinct(_, value):
            return _comparison(Op.EQ, value, domain)
        case IsDistinct(_, value):
            unequal = _comparison(Op.NE, value, domain)
            return LeafSelection(unequal.hits, unequal.find_misses, null_hits=True, null_misses=False)
        case IsNan():
            return LeafSelection(domain.select(Op.EQ, _NAN), _everything)
        case IsNotNan():
            nan = domain.select(Op.EQ, _NAN)
            return LeafSelection(EVERYTHING, lambda: nan, null_hits=True)
        case StartsWith(_, prefix):
            return _prefix(domain.prefix_key(prefix))
        case Like():
            return _pattern(test, domain)


def _negated(test: object, domain: Domain) -> LeafSelection:
    """NOT above an ordering comparison, BETWEEN or a pattern."""
    match test:
        case Compare(_, _, None):
            return NEVER_TRUE
        case Compare(_, op, value):
            opposite = _comparison(NEGATED[op], value, domain)
            return _UNKNOWN if is_nan_literal(value) else LeafSelection(_with_nan(opposite.hits), opposite.find_misses)
        case Between() | StartsWith() | Like():
            return _swapped(_choose(test, domain))
    raise TypeError(f"NOT above {test}: normalise the predicate first")


def _comparison(op: Op, value: Operand, domain: Domain) -> LeafSelection:
    if is_nan_literal(value):
        return LeafSelection(_select(op, value, domain), _everything)
    return LeafSelection(_select(op, value, domain), lambda: _with_nan(_select(NEGATED[op], value, domain)))


def _select(op: Op, value: Operand, domain: Domain) -> Selection:
    if op is not Op.NE:
        return domain.select(op, value)
    return _outside((value,), domain)


def _membership(values: tuple[Operand, ...], domain: Domain) -> LeafSelection:
    given: tuple[Operand, ...] = tuple(value for value in values if value is not None)
    if not given:
        return NEVER_TRUE
    if not domain.is_ordered:
        return _UNKNOWN
    if isinstance(domain, Whole):
        given = as_doubles(given)
    return LeafSelection(domain.select_any(given), lambda: _outside(given, domain))


def _outside(values: tuple[Operand, ...], domain: Domain) -> Selection:
    """What differs from all the values: all but those that have one reading, and NaN."""
    if not domain.is_ordered:
        return EVERYTHING
    points = {key for value in values if (key := domain.exact_key(value)) is not None}
    spans = outside(points)
    if isinstance(domain, Whole):
        whole = (whole_span(span, domain.first, domain.last) for span in spans)
        spans = tuple(span for span in whole if span is not None)
    return Selection(spans, nan=True)


def _range(low: Operand, high: Operand, domain: Domain) -> LeafSelection:
    if not domain.is_ordered:
        return _UNKNOWN
    if isinstance(domain, Whole):
        low, high = as_doubles((low, high))
    above, below = _comparison(Op.GE, low, domain), _comparison(Op.LE, high, domain)
    hits = intersect(above.hits, below.hits)
    return LeafSelection(hits, lambda: Selection((*above.misses.spans, *below.misses.spans), nan=True))


def _prefix(prefix: bytes | None) -> LeafSelection:
    if prefix is None:
        return _UNKNOWN
    return LeafSelection(Selection((prefix_span(prefix),)), lambda: Selection(outside_prefix(prefix)))


def _pattern(like: Like, domain: Domain) -> LeafSelection:
    shape = shape_of(like)
    begins = _prefix(domain.prefix_key(shape.prefix))
    match shape.rest:
        case Rest.NOTHING:
            return _comparison(Op.EQ, shape.prefix, domain)
        case Rest.ANYTHING:
            return begins
        case Rest.PATTERN:
            return LeafSelection(begins.hits, _everything)


def _swapped(choice: LeafSelection) -> LeafSelection:
    """The choice of the negation; a null satisfies neither."""
    return LeafSelection(_with_nan(choice.misses), lambda: _with_nan(choice.hits))


def _with_nan(selection: Selection) -> Selection:
    return Selection(selection.spans, nan=True)
