"""Rows brought near those that they lie beside in files, so that files cover small ranges."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from underlay.index.root import Definition
from underlay.schema.record import from_record
from underlay.schema.transform import BUCKET


def clustered(frame: DataFrame, definition: Definition) -> DataFrame:
    """The rows ranged and sorted by the table's partitions and order; as they are for a table without.

    A bucket is no range of its column: rows are not brought together by it.
    """
    leaves = from_record(definition.schema).leaf_by_id
    order: dict[int, Column] = {}
    for part in definition.partition_by:
        if part.transform != BUCKET:
            order[part.field] = _column(frame, leaves[part.field].path).asc_nulls_first()
    for field in definition.sort_by:
        column = _column(frame, leaves[field.field].path)
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


def _column(frame: DataFrame, path: tuple[str, ...]) -> Column:
    return frame[".".join("`" + name.replace("`", "``") + "`" for name in path)]
