"""The catalog of a DuckLake, read by its own tables: no extension is needed.

A row of the catalog is valid from the snapshot `begin_snapshot` on, until `end_snapshot`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from underlay.errors import InvalidRequest, Malformed, NotFound, TableNotFound, Unavailable

SQLITE = "sqlite:"
_NOW = "end_snapshot IS NULL"

Row = tuple[Any, ...]


class DuckLakeTable(NamedTuple):
    """A table as the newest snapshot has it. Rows are those of the catalog's tables."""

    snapshot: int
    uuid: str
    data_path: str
    folder: str
    """Of the table, below `data_path` or absolute."""
    encrypted: bool
    columns: Sequence[Row]
    """Id, name, type, default, may be null, parent; in order."""
    files: Sequence[Row]
    """Id, path, is it relative, format, size, encryption key, mapping."""
    deletes: Sequence[Row]
    """Id of the file, path, is it relative, format, count, encryption key."""
    names: Sequence[Row]
    """Mapping, name in files, column, is it in the path."""
    inlined: Sequence[str]
    """Tables of the catalog that hold rows of this table."""


def split_address(address: str) -> tuple[str, str, str]:
    """The catalog, and the schema and name of a table: `lake.ducklake#main.trips`, `sqlite:lake.sqlite#trips`."""
    path, _, name = address.rpartition("#")
    schema, _, table = name.rpartition(".")
    if not path or not table:
        raise InvalidRequest(
            "not the address of a table of DuckLake",
            found=f"ducklake:{address}",
            expected="ducklake:lake.ducklake#schema.table",
        )
    return path, schema or "main", table


def read_table(path: str, schema: str, table: str) -> DuckLakeTable:
    """A table of the catalog in a file. Raises NotFound, TableNotFound, Unavailable, Malformed."""
    file = Path(path.removeprefix(SQLITE))
    if not file.is_file():
        raise NotFound("no such catalog", place=path, hint="A catalog of DuckLake is a file of DuckDB, or sqlite:FILE.")
    try:
        if path.startswith(SQLITE):
            with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
                return _read(connection, path, schema, table)
        with duckdb.connect(str(file), read_only=True) as opened:
            return _read(opened, path, schema, table)
    except duckdb.IOException as error:
        raise Unavailable(f"the catalog cannot be opened: {error}", place=path, hint="Close it elsewhere.") from None
    except (duckdb.Error, sqlite3.Error) as error:
        raise Malformed(f"not a catalog of DuckLake: {error}", place=path) from error


def _read(connection: Any, path: str, schema: str, table: str) -> DuckLakeTable:  # noqa: ANN401  # of two libraries
    def ask(sql: str, *values: object) -> list[Row]:
        return [tuple(row) for row in connection.execute(sql, list(values)).fetchall()]

    ((snapshot,),) = ask("SELECT max(snapshot_id) FROM ducklake_snapshot")
    facts = {str(key): str(value) for key, value in ask("SELECT key, value FROM ducklake_metadata WHERE scope IS NULL")}
    found = ask(
        "SELECT t.table_id, t.table_uuid, t.path, t.path_is_relative, s.path, s.path_is_relative "
        "FROM ducklake_table t JOIN ducklake_schema s ON s.schema_id = t.schema_id "
        f"WHERE t.{_NOW} AND s.{_NOW} AND s.schema_name = ? AND t.table_name = ?",
        schema,
        table,
    )
    if not found:
        raise TableNotFound(f"the catalog has no table {schema}.{table}", place=path)
    ident, uuid, own, is_own_relative, above, is_above_relative = found[0]
    data_path = facts.get("data_path", "")
    base = f"{data_path}{above}" if is_above_relative else str(above)
    inlined = ask("SELECT table_name FROM ducklake_inlined_data_tables WHERE table_id = ?", ident)
    return DuckLakeTable(
        snapshot=int(snapshot),
        uuid=str(uuid),
        data_path=data_path,
        folder=f"{base}{own}" if is_own_relative else str(own),
        encrypted=facts.get("encrypted", "false").lower() == "true",
        columns=ask(
            "SELECT column_id, column_name, column_type, initial_default, nulls_allowed, parent_column "
            f"FROM ducklake_column WHERE table_id = ? AND {_NOW} ORDER BY column_order",
            ident,
        ),
        files=ask(
            "SELECT data_file_id, path, path_is_relative, file_format, file_size_bytes, encryption_key, mapping_id "
            f"FROM ducklake_data_file WHERE table_id = ? AND {_NOW} ORDER BY data_file_id",
            ident,
        ),
        deletes=ask(
            "SELECT data_file_id, path, path_is_relative, format, delete_count, encryption_key "
            f"FROM ducklake_delete_file WHERE table_id = ? AND {_NOW}",
            ident,
        ),
        names=ask(
            "SELECT n.mapping_id, n.source_name, n.target_field_id, n.is_partition FROM ducklake_name_mapping n "
            "JOIN ducklake_column_mapping m ON m.mapping_id = n.mapping_id WHERE m.table_id = ?",
            ident,
        ),
        inlined=[str(name) for (name,) in inlined if ask(f'SELECT 1 FROM "{name}" WHERE {_NOW} LIMIT 1')],
    )
