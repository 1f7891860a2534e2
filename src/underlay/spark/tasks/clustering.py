"""Clusters rows by the table's partitions and order before they are written, so that files cover small ranges."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType, StructType

from underlay.index.root import Definition
from underlay.schema.partitioning.transform import BUCKET
from underlay.schema.record import from_record
from underlay.spark.types.spark_types import quoted


def clustered(frame: DataFrame, definition: Definition) -> DataFrame:
    """The rows, range-partitioned and sorted by the table's partitions and order; unchanged if the table has neither.

    Rows are not clustered by buckets, which are not ranges of their column, nor by a column that the frame lacks, as it
    has one value in all rows, or that Spark could confuse with another.
    """
    leaves = from_record(definition.schema).leaf_by_id
    order: dict[int, Column] = {}
    for part in definition.partition_by:
        column = _column(frame, leaves[part.field].path)
        if part.transform != BUCKET and column is not None:
            order[part.field] = column.asc_nulls_first()
    for field in definition.sort_by:
        column = _column(frame, leaves[field.field].path)
        if column is None:
            continue
        ordered = {
            (False, False): column.asc_nulls_first,
            (False, True): column.asc_nulls_last,
            (True, False): column.desc_nulls_first,
            (True, True): column.desc_nulls_last,
        }[field.descending, field.nulls_last]
        order.setdefault(field.field, ordered())
    if not order:
        return frame
    columns = list(order.values())
    return frame.repartitionByRange(*columns).sortWithinPartitions(*columns)


def _column(frame: DataFrame, path: tuple[str, ...]) -> Column | None:
    """The column, or the field of a struct, at this path; None when it is missing, or when another name differs only in
    case, which Spark may ignore.
    """
    found: Column | None = None
    given: DataType = frame.schema
    for name in path:
        fields = given.fields if isinstance(given, StructType) else []
        alike = [field for field in fields if field.name.lower() == name.lower()]
        if [field.name for field in alike] != [name]:
            return None
        found = frame[quoted(name)] if found is None else found.getField(name)
        given = alike[0].dataType
    return found
