"""Which rows match a predicate: the filter that scans apply after pruning.

Three-valued logic as in Spark SQL and DuckDB; see `compare` for what a comparison means. Arrow's own filters are not
used on floats, since they find NaN equal to and above nothing.
"""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from underlay.errors import BadPredicate
from underlay.prune.domains.arrow_values import AnyArray, read_column
from underlay.prune.domains.byte_strings import Text
from underlay.prune.predicates.like import Rest, regex_of, shape_of
from underlay.prune.predicates.number import as_doubles
from underlay.prune.predicates.operand import format_column
from underlay.prune.predicates.predicate import (
    And,
    Between,
    ColumnTest,
    Compare,
    Constant,
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
    Opaque,
    Or,
    Predicate,
    StartsWith,
)
from underlay.prune.rows.compare import Mask, StoredColumn
from underlay.values.no_rows import empty_batch


def matches(predicate: Predicate, table: pa.Table | pa.RecordBatch) -> Mask:
    """True for every row that matches, false for every other; there is no null.

    Raises BadPredicate for a literal that its column is not compared with, for a pattern that engines read
    differently, and for an Opaque part, which only its engine can apply; UnknownColumn.
    """
    if isinstance(table, pa.RecordBatch):
        return _without_nulls(_evaluate(predicate, table))
    batches = table.to_batches() or [empty_batch(table.schema)]
    return pa.concat_arrays([matches(predicate, batch) for batch in batches])


def _evaluate(predicate: Predicate, batch: pa.RecordBatch) -> Mask:
    match predicate:
        case And(parts):
            masks = [_evaluate(part, batch) for part in parts]
            return reduce(pc.and_kleene, masks) if masks else _repeat(True, batch)
        case Or(parts):
            masks = [_evaluate(part, batch) for part in parts]
            return reduce(pc.or_kleene, masks) if masks else _repeat(False, batch)
        case Not(part):
            return pc.invert(_evaluate(part, batch))
        case Constant(value):
            return _repeat(value, batch)
        case Opaque(text):
            raise BadPredicate(f"{text} cannot be applied to rows here", hint="Only its own engine can apply it.")
        case In(_, ()):
            return _repeat(False, batch)
        case NotIn(_, ()):
            return _repeat(True, batch)
        case _:
            return _test(predicate, batch)


def _test(test: ColumnTest, batch: pa.RecordBatch) -> Mask:
    array = read_column(batch, test.column)
    match test:
        case IsNull() | IsNotDistinct(_, None):
            return array.is_null()
        case IsNotNull() | IsDistinct(_, None):
            return array.is_valid()
    if pa.types.is_null(array.type):
        return _repeat(_of_null(test), batch)
    try:
        return _compare(test, array)
    except BadPredicate as error:
        error.at(format_column(test.column))
        raise


def _compare(test: ColumnTest, array: AnyArray) -> Mask:
    column = StoredColumn.of(array)
    match test:
        case Compare(_, op, value):
            return column.compare(op, value)
        case IsNotDistinct(_, value):
            return _without_nulls(column.compare(Op.EQ, value))
        case IsDistinct(_, value):
            return pc.invert(_without_nulls(column.compare(Op.EQ, value)))
        case In(_, values):
            return column.is_in(values)
        case NotIn(_, values):
            return pc.invert(column.is_in(values))
        case Between(_, low, high):
            low, high = as_doubles((low, high))
            return pc.and_kleene(column.compare(Op.GE, low), column.compare(Op.LE, high))
        case IsNan():
            return column.is_nan()
        case IsNotNan():
            return pc.invert(column.is_nan())
        case StartsWith(_, prefix):
            return column.starts_with(prefix)
        case Like():
            return _like(test, column)
        case IsNull():
            return array.is_null()
        case IsNotNull():
            return array.is_valid()


def _of_null(test: ColumnTest) -> bool | None:
    """The answer for a null: only the null-safe comparisons have one."""
    return isinstance(test, IsDistinct) if isinstance(test, IsDistinct | IsNotDistinct) else None


def _like(like: Like, column: StoredColumn) -> Mask:
    if not isinstance(column.domain, Text):
        raise column.domain.mismatch(like.pattern, "LIKE is for text.")
    pattern, shape = regex_of(like), shape_of(like)
    match shape.rest:
        case Rest.NOTHING:
            return column.compare(Op.EQ, shape.prefix)
        case Rest.ANYTHING:
            return column.starts_with(shape.prefix)
        case Rest.PATTERN:
            text = column.values.cast(pa.large_string())
            found: Mask = pc.call_function("match_substring_regex", [text], pc.MatchSubstringOptions(pattern))
            return found


def _without_nulls(mask: Mask) -> Mask:
    filled: Mask = pc.call_function("coalesce", [mask, pa.scalar(False)])
    return filled


def _repeat(value: bool | None, batch: pa.RecordBatch) -> Mask:
    return pa.repeat(pa.scalar(value, pa.bool_()), batch.num_rows)
