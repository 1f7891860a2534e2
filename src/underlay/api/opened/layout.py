"""Reads a table's key, order and partitions as a user writes them."""

from __future__ import annotations

from underlay.index.partition_specs import bind_record
from underlay.index.root import Definition
from underlay.prune.predicates.operand import format_column
from underlay.schema.partitioning.transform import write_transform
from underlay.schema.table_schema import TableSchema


def layout_texts(definition: Definition, schema: TableSchema) -> dict[str, list[str]]:
    """The texts of `key`, `sort_by` and `partition_by`."""

    def path(field: int) -> str:
        return format_column(schema.leaf_by_id[field].path)

    return {
        "key": [path(field) for field in definition.key],
        "sort_by": [
            f"{path(one.field)}{' desc' if one.descending else ''}{' nulls last' if one.nulls_last else ''}"
            for one in definition.sort_by
        ],
        "partition_by": [write_transform(schema, bind_record(schema, one)) for one in definition.partition_by],
    }
