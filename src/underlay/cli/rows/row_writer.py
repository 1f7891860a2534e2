"""Writes rows batch by batch in formats for programs. Memory holds one batch, for Parquet one row group."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import BinaryIO, cast

import pyarrow as pa

from underlay.cli.common.formats import RowsAs
from underlay.cli.common.output import UNKNOWN, printable
from underlay.cli.common.row_text import as_csv_column, csv_type, json_value, python_rows
from underlay.errors import InvalidRequest, Unsupported

_CSV_ROWS = 4_096
_GROUP_ROWS = 1 << 20
_GROUP_BYTES = 128 << 20

Batches = Iterable[pa.RecordBatch]


def write_batches(
    schema: pa.Schema, batches: Batches, format: RowsAs, file: BinaryIO, *, is_seekable: bool = False
) -> None:
    """Write all rows to a file or pipe. Raises InvalidRequest and Unsupported for columns that the format cannot hold.

    Arrow is written as a stream to a pipe, and in the file format, with an index at the end, to a file.
    """
    if format is RowsAs.ARROW:
        _write_arrow(schema, batches, file, is_seekable=is_seekable)
    elif format is RowsAs.PARQUET:
        _write_parquet(schema, batches, file)
    elif format is RowsAs.CSV:
        _write_csv(schema, batches, file)
    else:
        _write_texts(_TEXTS[format](schema, batches), file)


def _write_texts(texts: Iterable[str], file: BinaryIO) -> None:
    for text in texts:
        file.write(text.encode("utf-8", "surrogatepass"))


def _ndjson(schema: pa.Schema, batches: Batches) -> Iterator[str]:
    return (f"{text}\n" for text in _json_texts(schema, batches))


def _json_array(schema: pa.Schema, batches: Batches) -> Iterator[str]:
    separator = "["
    for text in _json_texts(schema, batches):
        yield f"{separator}{text}"
        separator = ",\n"
    yield "[]\n" if separator == "[" else "]\n"


def _json_texts(schema: pa.Schema, batches: Batches) -> Iterator[str]:
    twice = next((name for name, count in Counter(schema.names).items() if count > 1), None)
    if twice is not None:
        raise InvalidRequest("JSON needs unique names", found=f"two columns named {twice}", hint="Rename them with AS.")
    for row in python_rows(batches):
        values = {field.name: json_value(value, field.type) for field, value in zip(schema, row, strict=True)}
        yield json.dumps(values, separators=(",", ":"))


def _markdown(schema: pa.Schema, batches: Batches) -> Iterator[str]:
    """A table in GitHub's Markdown, not padded, as widths are known only after the last row."""
    yield _markdown_line(schema.names)
    yield _markdown_rule(schema)
    for row in python_rows(batches):
        yield _markdown_line(
            UNKNOWN if value is None else cell_text(value, field.type) for value, field in zip(row, schema, strict=True)
        )


def _markdown_rule(schema: pa.Schema) -> str:
    return "|" + "|".join(" ---: " if is_number(field.type) else " --- " for field in schema) + "|\n"


def _markdown_line(cells: Iterable[str]) -> str:
    escaped = (printable(cell.replace("\n", "<br>")).replace("\\", "\\\\").replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |\n"


def is_number(kind: pa.DataType) -> bool:
    """Whether values are aligned to the right."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def cell_text(value: object, kind: pa.DataType) -> str:
    """A value that is not null, for people."""
    found = json_value(value, kind)
    text = json.dumps(found, ensure_ascii=False) if isinstance(found, list | dict) else str(found)
    if pa.types.is_boolean(kind):
        return text.lower()
    if not pa.types.is_timestamp(kind):
        return text
    text = text.replace("T", " ", 1)
    head, dot, fraction = text.partition(".")
    digits = fraction[: len(fraction) - len(fraction.lstrip("0123456789"))]
    return head + fraction[len(digits) :] if dot and not digits.strip("0") else text


def _write_csv(schema: pa.Schema, batches: Batches, file: BinaryIO) -> None:
    from pyarrow.csv import CSVWriter

    as_text = pa.schema([(field.name, csv_type(field.type)) for field in schema])
    with CSVWriter(file, as_text) as writer:
        for batch in batches:
            for begin in range(0, batch.num_rows, _CSV_ROWS):
                part = batch.slice(begin, _CSV_ROWS)
                columns = [
                    as_csv_column(column, field.type) for column, field in zip(part.columns, as_text, strict=True)
                ]
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=as_text))


def _write_arrow(schema: pa.Schema, batches: Batches, file: BinaryIO, *, is_seekable: bool) -> None:
    begin = pa.ipc.new_file if is_seekable else pa.ipc.new_stream
    with begin(cast("io.IOBase", file), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_parquet(schema: pa.Schema, batches: Batches, file: BinaryIO) -> None:
    from pyarrow.parquet import ParquetWriter

    try:
        writer = ParquetWriter(cast("BinaryIO", _Counted(file)), schema, compression="zstd")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise Unsupported(f"Parquet cannot hold these columns: {error}", hint="Cast them to text in SQL.") from error
    with writer:
        for group in _groups(batches):
            writer.write_table(pa.Table.from_batches(group, schema), row_group_size=_GROUP_ROWS)


def _groups(batches: Batches) -> Iterator[list[pa.RecordBatch]]:
    """Groups of batches that make up a row group."""
    group: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        group.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group


class _Counted(io.RawIOBase):
    """A pipe that counts the bytes written, as a Parquet writer needs to know its position."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: object, /) -> int:
        view = memoryview(data)  # type: ignore[arg-type]  # Arrow hands over buffers
        self._file.write(view)
        self._at += view.nbytes
        return view.nbytes


_TEXTS: Mapping[RowsAs, Callable[[pa.Schema, Batches], Iterator[str]]] = {
    RowsAs.MARKDOWN: _markdown,
    RowsAs.JSON: _json_array,
    RowsAs.NDJSON: _ndjson,
}
