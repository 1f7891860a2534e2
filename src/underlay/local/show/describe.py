"""The answers to DESCRIBE and SHOW TABLES: DuckDB's, completed with what only the lake knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from underlay.index.catalog import split_name
from underlay.local.text.words import Word
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


def shown_tables(tokens: Sequence[Word], tables: Iterable[str]) -> pa.Table | None:
    """The answer to SHOW [ALL] TABLES [FROM dataset], from names alone; None for other statements."""
    words = [token.text.lower() for token in tokens if token.text != ";"]
    if words[:2] == ["show", "all"]:
        words.pop(1)
    if words[:2] != ["show", "tables"] or len(words) not in (2, 4) or words[2:3] not in ([], ["from"]):
        return None
    wanted = words[3] if len(words) == 4 else None
    pairs = [split_name(name) for name in tables]
    kept = [pair for pair in pairs if wanted is None or pair[0].lower() == wanted]
    names = [pa.array([pair[at] for pair in kept], pa.string()) for at in (0, 1)]
    return pa.table(names, names=["dataset", "table"])
