"""Finds new columns, and new fields inside columns, that a source has and the table lacks. They are added before the
source is read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from underlay.errors import InvalidRequest, SchemaMismatch, SourceUnreadable, Unsupported
from underlay.ingest.exactly_once.replaced import SOURCE_COLUMN
from underlay.ingest.json.records import json_batches
from underlay.ingest.rows.path_columns import new_path_columns
from underlay.ingest.rows.reading import RowRules
from underlay.ingest.rows.schema_drift import table_names, with_table_names
from underlay.ingest.source.decompressed import Plain
from underlay.ingest.source.file_format import FileFormat, kind_of
from underlay.ingest.source.pinned import open_pinned
from underlay.ingest.source.source import Source
from underlay.ingest.work.infer_schema import common, decode_line, infer_one, without_nulls, written_type
from underlay.ingest.work.work_unit import WorkUnit
from underlay.schema.convert.new_fields import lacking, with_new_fields
from underlay.schema.table_schema import TableSchema
from underlay.schema.types import ListOf, StructOf, Type


def find_new_columns(found: Source, work: WorkUnit, reading: RowRules) -> pa.Schema:
    """What a source has and the table lacks (see `lacking`), with types; null is the type of a column without a value.

    For CSV the types are guessed from the beginning; for JSON from every line, since a key may first appear late.
    """
    own = _own_new_columns(found, work, reading)
    by_path = new_path_columns(found.uri, reading.schema) if work.hive else pa.schema([])
    given = set(own.names)
    return pa.schema([*own, *(field for field in by_path if field.name not in given)])


def _own_new_columns(found: Source, work: WorkUnit, reading: RowRules) -> pa.Schema:
    kind = work.kind or kind_of(found.uri)
    if kind in (FileFormat.CSV, FileFormat.TSV) and work.dialect.is_positional:
        return pa.schema([])  # its columns are the table's
    with open_pinned(found, work.store_options) as file:
        if kind is FileFormat.JSON:
            return new_columns_of_json(Plain(file, found.uri), reading)
        every = infer_one(found.uri, kind, file, work.dialect)
    return lacking(with_table_names(every, reading.schema.names), reading.schema)


def join_columns(found: Sequence[tuple[str, pa.Schema]], schema: TableSchema) -> tuple[pa.Schema, dict[str, str]]:
    """The columns and fields to add for these sources, nullable, with types that hold all of their values.

    Also, by uri, why the table cannot get those of some sources: no type or name fits, or the type differs from that of
    earlier sources.
    """
    columns = pa.schema([])
    refused: dict[str, str] = {}
    for uri, own in found:
        wanted = pa.schema([field.with_nullable(True) for field in lacking(own, schema)])
        try:
            together = common(columns, wanted, "other sources", "this one")
            _check_new(together, schema)
        except (InvalidRequest, Unsupported) as error:
            refused[uri] = str(error)
        else:
            columns = together
    return without_nulls(columns), refused


def _check_new(columns: pa.Schema, schema: TableSchema) -> None:
    with_new_fields(schema, without_nulls(columns))
    if SOURCE_COLUMN in columns.names:
        raise SchemaMismatch(
            f"the column {SOURCE_COLUMN} cannot be added: rows that exist would have no source",
            hint="Create the table with it, rename it in the source, or use --new-columns ignore.",
        )


def new_columns_of_json(plain: Plain, reading: RowRules) -> pa.Schema:
    """The same for lines of JSON."""
    columns = pa.schema([])
    known = StructOf(reading.schema.fields)
    for objects in _objects(plain, reading):
        named = (dict(zip(table_names(list(one), reading.schema.names), one.values(), strict=True)) for one in objects)
        new = [found for one in named if isinstance(found := _only_new(one, known), dict)]
        names = list(dict.fromkeys(name for found in new for name in found))
        own = pa.schema([(name, _type_of([found.get(name) for found in new], plain.name)) for name in names])
        columns = common(columns, own, plain.name, plain.name)
    return columns


def _only_new(value: object, known: Type) -> object:
    """The part of a decoded value that its type lacks, with the objects and lists around it; None if it lacks
    nothing.
    """
    match known, value:
        case StructOf(fields), dict():
            types = {field.name: field.type for field in fields}
            found = {name: _only_new(part, types[name]) if name in types else part for name, part in value.items()}
            new = {name: part for name, part in found.items() if name not in types or part is not None}
            return new or None
        case ListOf(element), list():
            items = [item for item in (_only_new(item, element.type) for item in value) if item is not None]
            return items or None
    return None


def _objects(plain: Plain, reading: RowRules) -> Iterator[list[dict[str, object]]]:
    for batch in json_batches(plain, block_bytes=reading.block_bytes, record_bytes=reading.record_bytes):
        decoded = map(decode_line, batch.texts)
        yield [found for found in decoded if isinstance(found, dict)]


def _type_of(values: list[object], name: str) -> pa.DataType:
    try:
        return written_type(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise SourceUnreadable(
            "the type of a new column cannot be inferred", place=name, found=str(error).strip()
        ) from None
