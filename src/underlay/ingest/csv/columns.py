"""Blocks of CSV as columns of a table, all of a block at once: it fits, or it is refused as a whole.

Arrow's reader makes the values, strictly: numbers in range, dates and times in ISO form with a zone exactly where the
column has one. It takes a number that is too great for a float as infinite, and a decimal that has too many digits once
it has the column's scale; both are refused here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Literal, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from underlay.errors import SchemaMismatch, Unsupported
from underlay.ingest.csv.header import CsvHeader
from underlay.ingest.csv.records import Marks
from underlay.ingest.rows.reading import Dialect, RowRules
from underlay.ingest.rows.schema_drift import check_names, table_names
from underlay.ingest.rows.text_values import is_text_type
from underlay.ingest.rows.written import reader_type, written_converter
from underlay.schema.arrow_aliases import AnyArray, AnyChunks
from underlay.schema.cast.adapt import adapt_column
from underlay.schema.convert.arrow import to_arrow, to_arrow_type
from underlay.schema.types import Field, Type

OnBadRow = Callable[[pyarrow.csv.InvalidRow], Literal["skip", "error"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvColumns:
    """The columns of one source in their order, and which of them the table takes."""

    reading: RowRules
    marks: Marks
    names: tuple[str, ...]
    source: str

    def taken(self) -> tuple[tuple[str, pa.DataType], ...]:
        """The columns that the table takes, with their types."""
        fields = {field.name: field for field in self.reading.schema.fields}
        fields.pop(self.reading.source_column or "", None)
        return tuple((name, to_arrow_type(fields[name].type)) for name in self.names if name in fields)

    def type_of(self, name: str) -> Type:
        """A column's type as the table says it."""
        return self.reading.schema.column(name).type

    def convert(self, data: bytes, *, may_be_infinite: bool = False) -> pa.Table:
        """The columns that the table takes. Raises ArrowInvalid or SchemaMismatch when a record does not fit."""
        types = dict(self.taken())
        dialect = self.reading.dialect
        found = self._read(data, {name: reader_type(type_, dialect) for name, type_ in types.items()})
        columns = [_typed(found.column(name), type_, dialect) for name, type_ in types.items()]
        for name, column in zip(types, columns, strict=True):
            if not may_be_infinite and holds_infinite(column):
                raise SchemaMismatch("a number may be out of range", place=name)
            if pa.types.is_decimal(column.type):
                column.validate(full=True)
        return pa.Table.from_arrays(columns, names=list(types))

    def texts(self, data: bytes, on_bad_row: OnBadRow) -> pa.Table:
        """The same columns as they are written, without quotes. Records of other lengths are told and left out."""
        return self._read(data, {name: pa.string() for name, _ in self.taken()}, on_bad_row)

    def complete(self, table: pa.Table) -> pa.Table:
        """The rows with all columns of the table: the source's name, defaults and nulls where the source has none."""
        schema = self.reading.schema
        given = set(table.schema.names)
        columns = [
            self._column(table if field.name in given else None, table.num_rows, field) for field in schema.fields
        ]
        return pa.Table.from_arrays(columns, schema=to_arrow(schema))

    def _column(self, table: pa.Table | None, row_count: int, field: Field) -> AnyChunks:
        """A column out of `table`, None where the source does not have it."""
        if field.name == self.reading.source_column:
            return pa.chunked_array([pa.repeat(self.source, row_count)], pa.string())
        if table is not None:
            return table.column(field.name)
        return adapt_column(None, None, field, row_count)

    def _read(
        self,
        data: bytes,
        types: dict[str, pa.DataType],
        on_bad_row: OnBadRow | None = None,
    ) -> pa.Table:
        quote = self.marks.quote
        return pyarrow.csv.read_csv(
            cast("BytesIO", pa.BufferReader(data)),
            # One block and no threads: a task has one core, and rows are numbered.
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False, column_names=list(self.names), block_size=max(len(data), 1)
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=self.marks.delimiter,
                quote_char=quote if quote is not None else False,
                # Line breaks in values matter to Arrow only where it cuts blocks, and there is one.
                newlines_in_values=False,
                invalid_row_handler=on_bad_row,
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                check_utf8=False,
                column_types=types,
                include_columns=list(types),
                null_values=["", *self.reading.dialect.nulls],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


def csv_columns(reading: RowRules, header: CsvHeader, source: str) -> CsvColumns:
    """The columns of a source; without names, the table's in their order. Raises SchemaMismatch, Unsupported."""
    own = [field.name for field in reading.schema.fields if field.name != reading.source_column]
    found = tuple(table_names(header.names, own) if header.names else own)
    check_names(reading, [name for name in found if name != reading.source_column], f"{source}, line {header.line}")
    columns = CsvColumns(reading=reading, marks=header.marks, names=found, source=source)
    for name, type_ in columns.taken():
        if not is_text_type(type_):
            raise Unsupported("CSV has no nested columns", place=f"{source}: {name}", hint="Use JSON lines or Parquet.")
    return columns


def holds_infinite(column: AnyArray) -> bool:
    """Whether a column of floats holds an infinite value."""
    if not pa.types.is_floating(column.type):
        return False
    return bool(pc.call_function("any", [pc.call_function("is_inf", [column])]).as_py())


def _typed(column: AnyChunks, type_: pa.DataType, dialect: Dialect) -> AnyChunks:
    if column.type == type_:
        return column
    if pa.types.is_float16(type_) and pa.types.is_floating(column.type):
        return column.cast(type_)
    return written_converter(type_, dialect)(column)
