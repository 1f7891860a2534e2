"""Converts a block of CSV to a table's columns as a whole: it either fits or is refused.

Arrow's reader converts the values strictly: numbers in range, dates and times in ISO form, with a zone exactly where
the column has one. But it reads a number too large for a float as infinite, and accepts a decimal that has too many
digits at the column's scale; this module refuses both.
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
        """A column's type in the table."""
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
        """The same columns as the texts in the source, without quotes. Leaves out records with a wrong number of
        fields, and calls `on_bad_row` for each.
        """
        return self._read(data, {name: pa.string() for name, _ in self.taken()}, on_bad_row)

    def complete(self, table: pa.Table) -> pa.Table:
        """The rows with all columns of the table: adds the source's name, and defaults or nulls for missing columns."""
        schema = self.reading.schema
        given = set(table.schema.names)
        columns = [
            self._column(table if field.name in given else None, table.num_rows, field) for field in schema.fields
        ]
        return pa.Table.from_arrays(columns, schema=to_arrow(schema))

    def _column(self, table: pa.Table | None, row_count: int, field: Field) -> AnyChunks:
        """A column of `table`; `table` is None when the source lacks the column."""
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
                # Line breaks in values matter to Arrow only between blocks, and there is only one.
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
