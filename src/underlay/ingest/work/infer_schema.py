"""Schema inference: the columns of a new table, from the beginnings of its first sources.

Integers, floats, booleans, dates, times and timestamps are recognised by how they are written; a column without a value
becomes text. Parquet and Arrow declare their columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BufferedIOBase, BytesIO
from typing import cast

import msgspec
import pyarrow as pa
import pyarrow.csv

from underlay.errors import SchemaMismatch, SourceUnreadable, from_os_error
from underlay.ingest.csv.blocks import Blocks
from underlay.ingest.csv.header import read_header
from underlay.ingest.csv.records import Marks, find_records, last_end
from underlay.ingest.csv.salvage import bytes_of
from underlay.ingest.json.records import json_batches
from underlay.ingest.rows.columnar import arrow_schema, open_parquet
from underlay.ingest.rows.misfits import find_bad
from underlay.ingest.rows.reading import RECORD_BYTES, Dialect
from underlay.ingest.rows.schema_drift import drift, with_table_names
from underlay.ingest.rows.written import reader_type, written_converter
from underlay.ingest.source.decompressed import Plain
from underlay.ingest.source.file_format import FileFormat
from underlay.ingest.source.utf8_text import Utf8Text
from underlay.schema.arrow_aliases import AnyArray, AnyField, AnyType
from underlay.schema.convert.arrow import from_arrow, scalar_of, to_arrow_type

SAMPLE_BYTES = 1 << 20

Sample = tuple[str, FileFormat, BufferedIOBase]
"""A source's name, its format, and its bytes from the beginning."""


def combine(found: Sequence[tuple[str, FileFormat, pa.Schema]]) -> pa.Schema:
    """The columns of all sources, each with the narrowest type that holds all values seen.

    For a CSV column whose values have different kinds, that is text. Raises SchemaMismatch, naming two sources, when
    there is no such type.
    """
    if not found:
        raise SchemaMismatch(
            "there is no source to infer the columns from", hint="Name one, or give the columns (--schema)."
        )
    found = _alike(found)
    texts = _only_text(found)
    first, together = found[0][0], pa.schema([])
    for name, _, own in found:
        together = common(together, _as_text(own, texts), first, name)
    schema = without_nulls(together)
    for name, kind, own in found:
        if kind in (FileFormat.PARQUET, FileFormat.ARROW):
            _check_declared(schema, own, name)
    return schema


def _alike(found: Sequence[tuple[str, FileFormat, pa.Schema]]) -> list[tuple[str, FileFormat, pa.Schema]]:
    """The sources with one name for columns that differ only in case, and one Arrow type for equivalent types of
    Parquet and Arrow.
    """
    names: dict[str, None] = {}
    every = []
    for name, kind, own in found:
        own = with_table_names(own, list(names))
        if kind in (FileFormat.PARQUET, FileFormat.ARROW):
            own = pa.schema([field.with_type(_plainest(field.type)) for field in own])
        names |= dict.fromkeys(own.names)
        every.append((name, kind, own))
    return every


def _plainest(type_: AnyType) -> AnyType:
    scalar = scalar_of(type_)
    return type_ if scalar is None else to_arrow_type(scalar)


def _only_text(found: Sequence[tuple[str, FileFormat, pa.Schema]]) -> set[str]:
    """The columns that occur only in CSV, and whose values have no common type but text."""
    types: dict[str, list[AnyField]] = {}
    for _, _, own in found:
        for field in own:
            types.setdefault(field.name, []).append(field)
    others = {name for _, kind, own in found if kind not in (FileFormat.CSV, FileFormat.TSV) for name in own.names}
    return {name for name, fields in types.items() if name not in others and not _go_together(fields)}


def _go_together(fields: Sequence[AnyField]) -> bool:
    try:
        pa.unify_schemas([pa.schema([field]) for field in fields], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return False
    return True


def _as_text(schema: pa.Schema, names: set[str]) -> pa.Schema:
    return pa.schema([field.with_type(pa.string()) if field.name in names else field for field in schema])


def without_nulls(schema: pa.Schema) -> pa.Schema:
    """The same columns, with text where the type is unknown."""
    return pa.schema([field.with_type(_known(field.type)) for field in schema])


def infer_one(name: str, kind: FileFormat, file: BufferedIOBase, dialect: Dialect) -> pa.Schema:
    """The columns of one source; a column without a value has type null. Raises SourceUnreadable."""
    try:
        match kind:
            case FileFormat.PARQUET:
                return open_parquet(file).schema_arrow.remove_metadata()
            case FileFormat.CSV | FileFormat.TSV:
                return _guess_csv(Plain(file, name), kind, dialect)
            case FileFormat.JSON:
                return _guess_json(Plain(file, name))
            case FileFormat.ARROW:
                return arrow_schema(Plain(file, name).arrow_file(), name)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        hint = "Give the columns of the table (--schema)."
        raise SourceUnreadable(
            "its columns cannot be inferred", place=name, found=str(error).strip(), hint=hint
        ) from None
    except OSError as error:
        raise from_os_error(error, name) from None


def _guess_csv(plain: Plain, kind: FileFormat, dialect: Dialect) -> pa.Schema:
    if dialect.is_positional:
        raise SchemaMismatch(
            "the columns of a CSV file without a header cannot be inferred",
            place=plain.name,
            hint="Name them with --columns a,b,c, give them with --schema, or create the table first.",
        )
    blocks = Blocks(Utf8Text(plain, dialect.encoding), block_bytes=SAMPLE_BYTES, record_bytes=RECORD_BYTES)
    header = read_header(blocks, dialect, kind, plain.name, RECORD_BYTES)
    marks, names = header.marks, list(header.names)
    held = blocks.more()
    data = held[: last_end(held, marks) or len(held)]
    records = find_records(data, marks)
    if not len(records.begins):
        return pa.schema([(name, pa.null()) for name in names])
    data = data if dialect.comment is None else bytes_of(data, records)
    found = _read_sample(data, names, marks, dialect)
    columns = found.schema
    if dialect.has_own_forms:
        texts = _read_sample(data, names, marks, dialect, {name: pa.string() for name in names})
        columns = pa.schema([(field.name, _own_type(texts, field, dialect)) for field in columns])
    return pa.schema([field.with_type(_plain(field.type)) for field in columns])


def _read_sample(
    data: bytes, names: list[str], marks: Marks, dialect: Dialect, types: dict[str, pa.DataType] | None = None
) -> pa.Table:
    return pyarrow.csv.read_csv(
        BytesIO(data),
        read_options=pyarrow.csv.ReadOptions(use_threads=False, column_names=names, block_size=len(data)),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=marks.delimiter,
            quote_char=marks.quote if marks.quote is not None else False,
            newlines_in_values=True,
            invalid_row_handler=lambda _: "skip",
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=types,
            check_utf8=types is None,
            null_values=["", *dialect.nulls],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _own_type(texts: pa.Table, field: AnyField, dialect: Dialect) -> AnyType:
    """The type of a column for types that the dialect writes in its own format."""
    column: AnyArray = texts.column(field.name)
    if pa.types.is_null(field.type):
        return field.type
    types = (pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
    own = [one for one in types if reader_type(one, dialect) != one]
    for type_ in own:
        if _is_written(column, type_, dialect):
            return type_
    is_wrong = reader_type(field.type, dialect) != field.type  # Arrow guessed a type that the dialect writes otherwise
    return pa.string() if is_wrong else field.type


def _is_written(column: AnyArray, type_: pa.DataType, dialect: Dialect) -> bool:
    convert = written_converter(type_, dialect)
    return not len(find_bad(1, lambda _: convert(column)))


def _guess_json(plain: Plain) -> pa.Schema:
    objects: list[dict[str, object]] = []
    first = b""
    for batch in json_batches(plain, block_bytes=SAMPLE_BYTES, record_bytes=RECORD_BYTES):
        objects += [found for text in batch.texts if isinstance(found := decode_line(text), dict)]
        first = first or next(iter(batch.texts), b"")
        if objects or plain.offset > RECORD_BYTES:
            break
    if not objects:
        raise SourceUnreadable("there is no JSON object to infer columns from", place=plain.name, found=first[:40])
    names = list(dict.fromkeys(name for found in objects for name in found))
    return pa.schema([(name, written_type([found.get(name) for found in objects])) for name in names])


def decode_line(line: bytes) -> object:
    """The value of a line of JSON; None when it is invalid."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def written_type(values: list[object]) -> pa.DataType:
    """The type of decoded values: strings that are all dates, or all timestamps, count as such."""
    column: AnyArray = pa.array(cast("list[str]", values))
    if not pa.types.is_string(column.type):
        found: pa.DataType = column.type
        return found
    for type_ in (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        if _converts(column, type_):
            return type_
    return pa.string()


def _converts(column: AnyArray, type_: pa.DataType) -> bool:
    return not len(find_bad(1, lambda _: column.cast(type_)))


def common(one: pa.Schema, other: pa.Schema, first: str, name: str) -> pa.Schema:
    """The columns of both sources, with types that hold both. Raises SchemaMismatch, naming the two."""
    try:
        return pa.unify_schemas([one, other], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise SchemaMismatch(
            "a column has no type that holds the values of both sources",
            place=f"{first} and {name}",
            found=str(error).strip(),
            hint="Give the columns of the table (--schema).",
        ) from None


def _check_declared(schema: pa.Schema, own: pa.Schema, name: str) -> None:
    """Raises SchemaMismatch when the common type can hold no value of a type that Parquet declares."""
    refused = drift(from_arrow(schema), own).refused
    if refused:
        raise SchemaMismatch(
            f"the column {refused[0]} has a different type in another source",
            place=name,
            expected=schema.field(refused[0]).type,
            found=own.field(refused[0]).type,
            hint="Give the columns of the table (--schema).",
        )


def _plain(guessed: AnyType) -> pa.DataType:
    """A guessed type, widened for rows that were not looked at: times get fractions of seconds. Text stays text even if
    a record is not UTF-8, which Arrow takes for bytes: then only that record is rejected, not all others.
    """
    if isinstance(guessed, pa.TimestampType):
        return pa.timestamp("us", guessed.tz)
    if pa.types.is_binary(guessed):
        return pa.string()
    return pa.time64("us") if pa.types.is_time(guessed) else guessed


def _known(type_: AnyType) -> pa.DataType:
    """The type, with text wherever it is unknown."""
    if pa.types.is_null(type_):
        return pa.string()
    if isinstance(type_, pa.StructType):
        return pa.struct([part.with_type(_known(part.type)) for part in type_])
    if isinstance(type_, pa.ListType):
        return pa.list_(_known(type_.value_type))
    found: pa.DataType = type_
    return found
