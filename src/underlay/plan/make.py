"""The plan of a query: which blocks of a snapshot it needs, proven from metadata alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from underlay.index.root import PartitionFieldRecord, SegmentRef
from underlay.plan.choice import choose
from underlay.plan.leaf_bounds import nothing_known, resolve
from underlay.plan.part import Part
from underlay.plan.plan import Plan
from underlay.prune import TRUE, Predicate, columns_of, evaluate
from underlay.schema.table_schema import TableSchema


def make_plan(
    parts: Sequence[Part],
    schema: TableSchema,
    predicate: Predicate = TRUE,
    columns: Iterable[int] = (),
    *,
    partition_by: Sequence[PartitionFieldRecord] = (),
    skipped: Sequence[SegmentRef] = (),
) -> Plan:
    """The plan over all parts. `columns` are the leaves to read, those of the predicate included.

    `skipped` are segments that `surviving` left out, for the totals only. No I/O but what the parts' segments fetch:
    `Segment.prefetch` with the predicate's leaves beforehand makes it none. Raises UnknownColumn and BadPredicate.
    """
    named = resolve(schema, columns_of(predicate))
    if not parts and not skipped:  # a literal that does not fit its column is refused without blocks too
        evaluate(predicate, {path: nothing_known(leaf, 0) for path, leaf in named.items()}, block_count=0)
    return Plan(
        choices=tuple(choose(part, schema, partition_by, predicate, named) for part in parts),
        schema=schema,
        predicate=predicate,
        columns=tuple(dict.fromkeys(columns)),
        skipped=tuple(skipped),
    )
