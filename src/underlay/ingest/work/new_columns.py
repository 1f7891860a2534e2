"""New columns: those of a source that the table lacks, found by a worker and added before the source is read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from underlay.errors import InvalidRequest, SchemaMismatch, SourceUnreadable, Unsupported
from underlay.ingest.csv.blocks import Blocks
from underlay.ingest.csv.records import LINES
from underlay.ingest.exactly_once.replaced import SOURCE_COLUMN
from underlay.ingest.rows.path_columns import new_path_columns
from underlay.ingest.rows.reading import RowRules
from underlay.ingest.source.decompressed import Plain
from underlay.ingest.source.file_format import FileFormat, kind_of
from underlay.ingest.source.pinned import open_pinned
from underlay.ingest.source.source import Source
from underlay.ingest.work.infer_schema import common, decode_line, infer_one, without_nulls, written_type
from underlay.ingest.work.work_unit import WorkUnit
from underlay.prune.predicates.operand import format_column
from underlay.schema.convert.arrow import from_arrow
from underlay.schema.table_schema import TableSchema


def find_new_columns(found: Source, work: WorkUnit, reading: RowRules) -> pa.Schema:
    """The columns of a source that the table does not have, with types; null is the type of those without a value.

    Of CSV the types are guessed from its beginning; of JSON from every line, since a key may come late.
    """
    own = _own_new_columns(found, work, reading)
    by_path = new_path_columns(found.uri, reading.schema) if work.hive else pa.schema([])
    return pa.schema([*own, *(field for field in by_path if field.name not in own.names)])


def _own_new_columns(found: Source, work: WorkUnit, reading: RowRules) -> pa.Schema:
    kind = work.kind or kind_of(found.uri)
    with open_pinned(found, work.store_options) as file:
        if kind is FileFormat.JSON:
            return _from_lines(Plain(file, found.uri), reading)
        every = infer_one(found.uri, kind, file, work.dialect)
    return pa.schema([field for field in every if field.name not in reading.schema.names])


def join_columns(found: Sequence[tuple[str, pa.Schema]], schema: TableSchema) -> tuple[pa.Schema, dict[str, str]]:
    """The columns that sources want to have added, which may be null, each with a type that holds what all have in it.

    Also why the table cannot have those of some sources, by uri: there is no such type or name, or the type is another
    than that of sources before it.
    """
    columns = pa.schema([])
    refused: dict[str, str] = {}
    for uri, own in found:
        wanted = pa.schema([field.with_nullable(True) for field in own if field.name not in schema.names])
        try:
            together = common(columns, wanted, "other sources", "this one")
            _check_new(together, schema)
        except (InvalidRequest, Unsupported) as error:
            refused[uri] = str(error)
        else:
            columns = together
    return without_nulls(columns), refused


def _check_new(columns: pa.Schema, schema: TableSchema) -> None:
    from_arrow(without_nulls(columns))
    if SOURCE_COLUMN in columns.names:
        raise SchemaMismatch(
            f"the column {SOURCE_COLUMN} cannot be added: rows that exist would have no source",
            hint="Create the table with it, rename it in the source, or use --new-columns ignore.",
        )
    taken = {name.casefold(): name for name in schema.names}
    for name in columns.names:
        other = taken.setdefault(name.casefold(), name)
        if other != name:
            raise SchemaMismatch(
                f"the column {format_column((name,))} cannot be added beside {format_column((other,))}",
                hint="Names that differ only in case are the same to Spark and others. Rename it in the source.",
            )


def _from_lines(plain: Plain, reading: RowRules) -> pa.Schema:
    columns = pa.schema([])
    for objects in _objects(plain, reading):
        names = list(dict.fromkeys(name for found in objects for name in found if name not in reading.schema.names))
        own = pa.schema([(name, _type_of([found.get(name) for found in objects], plain.name)) for name in names])
        columns = common(columns, own, plain.name, plain.name)
    return columns


def _objects(plain: Plain, reading: RowRules) -> Iterator[list[dict[str, object]]]:
    blocks = Blocks(plain, block_bytes=reading.block_bytes, record_bytes=reading.record_bytes)
    blocks.begin()
    for block in blocks.cut(LINES):
        decoded = (decode_line(line) for line in block.data.split(b"\n"))
        yield [found for found in decoded if isinstance(found, dict)]


def _type_of(values: list[object], name: str) -> pa.DataType:
    try:
        return written_type(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise SourceUnreadable(
            "the type of a new column cannot be inferred", place=name, found=str(error).strip()
        ) from None
