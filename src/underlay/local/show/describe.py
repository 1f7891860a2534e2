"""DESCRIBE of a table: DuckDB's columns and types, with what only the table's definition knows."""

from __future__ import annotations

import pyarrow as pa

from underlay.table.versions.snapshot import Snapshot


def with_definition(described: pa.Table, snapshot: Snapshot) -> pa.Table:
    """DuckDB's answer with nulls, key, default, and in `extra` the comment, of each column."""
    schema = snapshot.schema
    fields = {field.name: field for field in schema.fields}
    key = {schema.leaf_by_id[leaf].path[0] for leaf in snapshot.definition.key if leaf in schema.leaf_by_id}
    rows = [
        row
        | {
            "null": "NO" if fields[row["column_name"]].is_required else "YES",
            "key": "PRI" if row["column_name"] in key else None,
            "default": fields[row["column_name"]].default,
            "extra": fields[row["column_name"]].comment,
        }
        for row in described.to_pylist()
    ]
    return pa.Table.from_pylist(rows, schema=described.schema)
