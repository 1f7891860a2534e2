"""Finds columns that must equal a value of the source for rows to match; they limit which rows are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from underlay.change.update.keys import KeySet
from underlay.schema.cast.conform import conform
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Scalar, TypeKind
from underlay.spark.change.expressions import attribute_id, references
from underlay.spark.change.merge_join import JoinedMerge
from underlay.spark.jvm.gateway import JavaObject, call, call_text, java_plan
from underlay.spark.jvm.plan_nodes import items_of
from underlay.spark.types.spark_types import quoted

_SAME_VALUES = frozenset(
    {
        TypeKind.INT8,
        TypeKind.INT16,
        TypeKind.INT32,
        TypeKind.INT64,
        TypeKind.FLOAT32,
        TypeKind.FLOAT64,
        TypeKind.STRING,
        TypeKind.BINARY,
        TypeKind.DATE,
        TypeKind.DECIMAL,
        TypeKind.TIMESTAMP,
    }
)
"""Types whose values are the same in Spark and in the table."""
_FIXED = frozenset({"LocalRelation", "Range", "LogicalRDD", "OneRowRelation", "InMemoryRelation"})
"""Leaves of a plan that return the same rows at every execution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeKey:
    """A column of the table that equals `value`, an expression of the source, in every matching pair."""

    column: str
    value: JavaObject


def keys_of(bound: JoinedMerge, schema: TableSchema) -> list[MergeKey]:
    """The equalities among the parts of a merge's condition."""
    target, source = bound.target_ids(), bound.source_ids()
    found: dict[str, MergeKey] = {}
    for part in _conjuncts(bound.condition):
        if _kind(part) != "EqualTo":
            continue
        sides = [call(part, "left"), call(part, "right")]
        for own, other in (sides, sides[::-1]):
            name = target.get(attribute_id(own)) if _kind(own) == "AttributeReference" else None
            is_of_source = references([other]) <= source and call(other, "deterministic")
            if name is not None and is_of_source and _is_alike(schema, name):
                found.setdefault(name, MergeKey(column=name, value=other))
    return list(found.values())


def key_set(keys: list[MergeKey], values: pa.Table, schema: TableSchema) -> KeySet:
    """The values of keys, given in the keys' order, in the table's types."""
    fields = tuple(replace(schema.column(key.column), is_required=False) for key in keys)
    names = [key.column for key in keys]
    rows = conform(values.rename_columns(names), replace(schema, fields=fields))
    leaves = [leaf for name in names for leaf in schema.leaves if leaf.path == (name,)]
    return KeySet(rows, leaves)


def within_bounds(target: DataFrame, keys: list[MergeKey], values: DataFrame) -> DataFrame:
    """The rows of the table between the least and the greatest value of each key. One job."""
    ends = [end for name in values.columns for end in (f.min(name), f.max(name))]
    (row,) = values.agg(*ends).collect()
    kept: Column = f.lit(True)
    for at, key in enumerate(keys):
        low, high = row[2 * at], row[2 * at + 1]
        if low is None:
            return target.where(f.lit(False))
        if isinstance(low, float):
            continue  # NaN is greater than all others
        column = f.col(quoted(key.column))
        kept = kept & (column >= f.lit(low)) & (column <= f.lit(high))
    return target.where(kept)


def is_repeatable(frame: DataFrame) -> bool:
    """Whether a frame returns the same rows when it is computed again."""
    plan = call(java_plan(frame), "analyzed")
    if not call(plan, "deterministic"):
        return False
    leaves = [(_kind(leaf), leaf) for leaf in items_of(call(plan, "collectLeaves"))]
    return all(kind in _FIXED or (kind == "LogicalRelation" and _is_of_files(leaf)) for kind, leaf in leaves)


def _is_of_files(leaf: JavaObject) -> bool:
    return _kind(call(leaf, "relation")) == "HadoopFsRelation"


def _conjuncts(expression: JavaObject) -> Iterator[JavaObject]:
    if _kind(expression) == "And":
        yield from _conjuncts(call(expression, "left"))
        yield from _conjuncts(call(expression, "right"))
    else:
        yield expression


def _kind(found: JavaObject) -> str:
    return call_text(call(found, "getClass"), "getSimpleName")


def _is_alike(schema: TableSchema, name: str) -> bool:
    kind = schema.column(name).type
    return isinstance(kind, Scalar) and kind.kind in _SAME_VALUES and kind.unit in (None, "us")
