"""Creates tables from a schema, or from rows, which the first version then has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from underlay.api.opened.condition import read_condition
from underlay.api.opened.context import LakeContext
from underlay.change.define.define import define
from underlay.change.define.edit_definition import add_check
from underlay.change.rows.append import append
from underlay.errors import InvalidRequest, TableExists
from underlay.index.root import Definition
from underlay.schema.convert.arrow import to_arrow_type
from underlay.schema.record import from_record
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import Field
from underlay.table import time_travel as travel
from underlay.table.catalog import lifecycle
from underlay.table.open_table import OpenTable
from underlay.table.versions.revision import Revision


def create_table(
    context: LakeContext,
    name: str,
    schema: object,
    *,
    data: object,
    exist_ok: bool,
    key: Sequence[str],
    sort_by: Sequence[str],
    partition_by: Sequence[str],
    comment: str | None,
    properties: Mapping[str, str | int] | None,
    replaces: int | None = None,
    checks: Mapping[str, str] | None = None,
) -> OpenTable:
    """Create a table, with the rows of `data` if given: the catalog names the table only once the rows are in it.

    So when rows are refused or the process dies, there is no table, and what was written is unreferenced. With
    `exist_ok` a table that exists already, even one created meanwhile, is returned if it has the same definition.
    Raises TableExists, also when the definition differs, and what an append raises.

    `checks` are conditions on rows by name, with which rows of `data` are checked too. Raises BadPredicate.

    `replaces` is a version of the existing table: a new revision takes its place. Raises CommitConflict when the table
    has other rows by now. The old revision's versions stay until they are swept.
    """
    if data is not None and exist_ok:
        raise InvalidRequest(
            "data and exist_ok cannot be combined: rows would be added again, or not at all",
            hint="Create the table with exist_ok and without data, then append(data, token=…).",
        )
    if data is not None:
        data, columns = _with_schema(data)
        schema = columns if schema is None else schema
    elif schema is None:
        raise InvalidRequest("a table needs a schema, or data that has one")
    definition = define(
        schema, key=key, sort_by=sort_by, partition_by=partition_by, comment=comment, properties=properties
    )
    for check, condition in (checks or {}).items():
        read_condition(condition, from_record(definition.schema))
        definition = add_check(definition, check, condition)
    context.catalog.initialise()

    def fill(revision: Revision) -> None:
        if data is not None:
            append(OpenTable(context.catalog, name, revision=revision), data)

    if replaces is not None:
        old = context.open_table(name).head().revision
        revision = lifecycle.prepare_successor(context.catalog, name, definition)
        fill(revision)
        lifecycle.activate(context.catalog, name, old, travel.at_version(old, replaces), revision)
        return context.open_new_table(name, revision)
    try:
        revision = lifecycle.create(context.catalog, name, definition, fill)
    except TableExists:
        if not exist_ok:
            raise
        known = context.open_table(name)
        _check_same(name, known.head().root.definition, definition)
        return known
    # From here on nothing may fail: the table exists.
    return context.open_new_table(name, revision)


def _with_schema(data: object) -> tuple[object, object]:
    """The rows, in a form that can still be read, and their columns."""
    if isinstance(data, list | tuple) and data and all(isinstance(batch, pa.RecordBatch) for batch in data):
        data = pa.Table.from_batches(data)
    if hasattr(data, "schema") and isinstance(data.schema, pa.Schema):
        return data, data.schema
    if hasattr(data, "__arrow_c_stream__"):
        data = pa.RecordBatchReader.from_stream(data)
    elif hasattr(data, "fetch_record_batch"):  # a DuckDB relation
        data = data.fetch_record_batch()
    if not isinstance(data, pa.RecordBatchReader):
        raise InvalidRequest(
            "not rows that Arrow can read",
            found=type(data).__name__,
            hint="Give a pyarrow table or reader, a pandas or Polars frame, or a DuckDB relation.",
        )
    return data, data.schema


def _check_same(name: str, known: Definition, wanted: Definition) -> None:
    differences = list(_differences(known, wanted))
    if differences:
        raise TableExists(
            f"the table {name} exists and differs: {'; '.join(differences)}",
            hint="Open it with lake.table(), or create another.",
        )


def _differences(known: Definition, wanted: Definition) -> Iterator[str]:
    """The differences in words. Column comments do not count; the table's comment only if one was given."""
    old, new = from_record(known.schema), from_record(wanted.schema)
    yield from _column_differences(old, new)
    for what, found, expected in (
        ("key", [_name(old, one) for one in known.key], [_name(new, one) for one in wanted.key]),
        ("sort_by", _sorted(known, old), _sorted(wanted, new)),
        ("partition_by", _partitioned(known, old), _partitioned(wanted, new)),
        ("properties", known.properties, wanted.properties),
        ("comment", known.comment, wanted.comment if wanted.comment is not None else known.comment),
    ):
        if found != expected:
            yield f"{what} is {found}, not {expected}"


def _column_differences(old: TableSchema, new: TableSchema) -> Iterator[str]:
    found = {field.name: _shape(field) for field in old.fields}
    expected = {field.name: _shape(field) for field in new.fields}
    for name in expected:
        if name not in found:
            yield f"it has no column {name}"
        elif found[name] != expected[name]:
            yield f"{name} is {found[name]}, not {expected[name]}"
    yield from (f"it has a column {name} too" for name in found if name not in expected)
    if list(found) != list(expected) and set(found) == set(expected):
        yield f"its columns are in the order {', '.join(found)}"


def _shape(field: Field) -> str:
    default = "" if field.default is None else f" default {field.default}"
    return f"{to_arrow_type(field.type)}{' not null' if field.is_required else ''}{default}"


def _name(schema: TableSchema, leaf: int) -> str:
    return ".".join(schema.leaf_by_id[leaf].path)


def _sorted(definition: Definition, schema: TableSchema) -> list[str]:
    return [
        f"{_name(schema, one.field)}{' desc' if one.descending else ''}{' nulls last' if one.nulls_last else ''}"
        for one in definition.sort_by
    ]


def _partitioned(definition: Definition, schema: TableSchema) -> list[str]:
    return [
        f"{one.transform}({_name(schema, one.field)}{f', {one.width}' if one.width else ''})"
        for one in definition.partition_by
    ]
