"""Rows that were conformed to one version of a table's columns, for a newer one."""

from __future__ import annotations

import pyarrow as pa

from underlay.schema.cast.conform import conform
from underlay.schema.table_schema import TableSchema


def follow_schema(rows: pa.Table, before: TableSchema, after: TableSchema) -> pa.Table:
    """The same rows with the newer columns, by field id: renamed ones keep their values, dropped ones are left out, new
    ones are null or have their default. Raises SchemaMismatch when a row does not fit."""
    if before is after or before == after:
        return rows
    old = {field.id: field.name for field in before.fields}
    names = {field.name: old[field.id] for field in after.fields if field.id in old}
    return conform(pa.table({name: rows.column(source) for name, source in names.items()}), after)
