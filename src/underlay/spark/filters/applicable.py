"""Decides which of Spark's conditions the ranged reader may apply to rows itself, with the same result as Spark."""

from __future__ import annotations

from underlay.errors import BadPredicate, UnknownColumn
from underlay.plan.plan import make_plan
from underlay.prune import TRUE, Predicate, columns_of, has_opaque, matches
from underlay.prune.predicates.predicate import And, Not, Opaque, Or
from underlay.schema.convert.arrow import to_arrow
from underlay.schema.table_schema import TableSchema
from underlay.spark.filters.catalyst import and_parts
from underlay.spark.types.to_spark import is_given_as_it_is
from underlay.values.no_rows import no_rows


def can_apply(predicate: Predicate, schema: TableSchema) -> bool:
    """Whether a condition on this table's columns means the same to us as to Spark, and can be applied to rows."""
    try:
        columns = [schema.column(path[0]) for path in columns_of(predicate)]
        make_plan((), schema, predicate)
        matches(predicate, no_rows(to_arrow(schema)))
    except (UnknownColumn, BadPredicate):
        return False
    return all(map(is_given_as_it_is, columns))


def applied_part(predicate: Predicate, schema: TableSchema) -> Predicate:
    """The part of a conjunction that can be applied: true for every row for which the whole is true."""
    weaker = (without_opaque(part) for part in and_parts(predicate))
    parts = tuple(part for part in weaker if part != TRUE and can_apply(part, schema))
    return And(parts) if parts else TRUE


def without_opaque(predicate: Predicate) -> Predicate:
    """The predicate with TRUE for untranslated parts: it keeps all of its rows, and maybe more."""
    match predicate:
        case And(parts):
            known = tuple(part for part in map(without_opaque, parts) if part != TRUE)
            return And(known) if known else TRUE
        case Or(parts):
            weaker = tuple(map(without_opaque, parts))
            return TRUE if TRUE in weaker else Or(weaker)
        case Not() if has_opaque(predicate):
            return TRUE
        case Opaque():
            return TRUE
    return predicate
