"""`underlay create`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from underlay.api.lake import Lake
from underlay.cli.common.lake_choice import split_pairs
from underlay.cli.common.output import print_json, say
from underlay.cli.common.schema_file import read_columns
from underlay.cli.rows.data_file import FileReading, infer_columns
from underlay.cli.tables.description import as_json
from underlay.errors import InvalidRequest
from underlay.ingest.source.find import STDIN, source_options
from underlay.schema.convert.arrow import from_arrow
from underlay.schema.convert.ddl import format_ddl, parse_ddl
from underlay.schema.table_schema import TableSchema


def create_table(
    lake: Lake,
    name: str,
    *,
    schema: str | None,
    schema_file: Path | None,
    data: str | None,
    reading: FileReading,
    key: Sequence[str],
    sort_by: Sequence[str],
    partition_by: Sequence[str],
    comment: str | None,
    properties: Sequence[str],
    json: bool,
) -> None:
    """Create a table, with columns from text, from a file with such text, or from a data file."""
    if sum(choice is not None for choice in (schema, schema_file, data)) != 1:
        raise InvalidRequest("the columns come from one of --schema, --schema-file and --from")
    if data is None and reading != FileReading():
        raise InvalidRequest("options of a file go with --from", hint="Name the file, or leave them out.")
    columns = _columns(lake, schema, schema_file, data, reading)
    table = lake.create_table(
        name,
        columns,
        key=key,
        sort_by=sort_by,
        partition_by=partition_by,
        comment=comment,
        properties=split_pairs(properties, "--property"),
    )
    if json:
        print_json(as_json(table))
        return
    say(f"{name}: a new table without rows")
    if data is not None:
        say(f"columns as in {data}:\n  " + format_ddl(columns).replace("\n", "\n  "))
        say(f"Next: underlay append {name} {data if data != STDIN else 'FILE'}")


def _columns(
    lake: Lake, schema: str | None, schema_file: Path | None, data: str | None, reading: FileReading
) -> TableSchema:
    if data is not None:
        return from_arrow(infer_columns(data, reading, source_options([data], {}, lake.url, lake.options)))
    return read_columns(schema, schema_file) or parse_ddl("")
