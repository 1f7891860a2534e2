"""Rows on stdout: a table or a list of values for people, CSV, JSON lines, or an Arrow stream."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from io import IOBase
from typing import Any, cast

import pyarrow as pa
import pyarrow.csv

from underlay.cli.common.output import UNKNOWN, binary_output, cell_width, print_rows, printable, say, show_count
from underlay.cli.pm.read import as_csv_column, csv_type, json_type
from underlay.errors import InvalidRequest
from underlay.schema.arrow_aliases import AnyArray

ROWS_SHOWN = 50
"""Rows shown to people by default."""
_ROWS_AT_ONCE = 4_096
"""Rows that become Python objects at a time."""
_COUNT_SECONDS = 2.0
"""How long to count the rows that are not shown."""
_CELL_CHARS = 200
_NO_FRACTION = re.compile(r"\.0+(?![0-9])")


def write_rows(schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, format: str, limit: int | None) -> None:
    """Rows on stdout, at most `limit`. A table shows the first rows and says on stderr how many more there are."""
    with closing(_generator(batches)) as rows:
        if format in ("table", "vertical"):
            _write_for_people(schema, rows, limit, is_vertical=format == "vertical")
            return
        limited = rows if limit is None else first_rows(rows, limit)
        if format == "csv":
            _write_csv(schema, limited)
        elif format == "arrow":
            _write_arrow(schema, limited)
        else:
            _write_json(schema, limited)


def first_rows(batches: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """The first rows, and no batch after the one that completes them."""
    left = limit
    for batch in batches if limit else ():
        yield batch.slice(0, left)
        left -= min(batch.num_rows, left)
        if not left:
            return


def _generator(batches: Iterable[pa.RecordBatch]) -> Generator[pa.RecordBatch, None, None]:
    yield from batches


def _write_for_people(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], limit: int | None, *, is_vertical: bool
) -> None:
    shown = ROWS_SHOWN if limit is None else limit
    head: list[pa.RecordBatch] = []
    count = 0
    for batch in batches if shown else ():
        head.append(batch.slice(0, shown - count))
        count += batch.num_rows
        if count >= shown:
            break
    cells = [[_cell(value, field.type) for field, value in zip(schema, row, strict=True)] for row in _python_rows(head)]
    if is_vertical:
        _print_vertical(schema.names, cells)
    else:
        _print_table(schema.names, cells)
    if limit is not None or count < shown:
        say(f"({show_count(len(cells), 'row')})")
        return
    total, is_exact = _count(count, batches)
    if is_exact and total == shown:
        say(f"({show_count(total, 'row')})")
    else:
        more = f"{total:,}" if is_exact else f"more than {total:,}"
        say(f"(the first {shown} of {more} rows; --limit N shows more, --format csv, json or arrow all)")


def _print_table(names: list[str], cells: list[list[str | None]]) -> None:
    short = [[_short(text) if text is not None else None for text in row] for row in cells]
    hidden = print_rows(names, short)
    if hidden:
        say(f"({hidden} of {len(names)} columns are not shown; --columns A,B or --format vertical shows them)")


def _print_vertical(names: list[str], cells: list[list[str | None]]) -> None:
    """One line per value, under a line with the row's number."""
    shown = [printable(name) for name in names]
    width = max(map(cell_width, shown), default=0)
    for number, row in enumerate(cells, start=1):
        print(f"row {number}")
        for name, text in zip(shown, row, strict=True):
            value = UNKNOWN if text is None else printable(text)
            print(f"  {name}{' ' * (width - cell_width(name))}  {value}".rstrip())


def _short(text: str) -> str:
    return text if len(text) <= _CELL_CHARS else f"{text[:_CELL_CHARS]}…"


def _count(known: int, batches: Iterator[pa.RecordBatch]) -> tuple[int, bool]:
    """The number of rows, and whether all of them were counted: someone is waiting."""
    end = time.monotonic() + _COUNT_SECONDS
    for batch in batches:
        known += batch.num_rows
        if time.monotonic() > end:
            return known, False
    return known, True


def _python_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Rows by position, since names may occur twice; points in time are text in them."""
    for batch in batches:
        for begin in range(0, batch.num_rows, _ROWS_AT_ONCE):
            part = batch.slice(begin, _ROWS_AT_ONCE)
            yield from zip(*map(_python_values, part.columns), strict=True) if part.columns else ((),) * part.num_rows


def _python_values(column: AnyArray) -> list[Any]:
    texts: AnyArray = column.cast(json_type(column.type))
    values: list[Any] = texts.to_pylist()
    return values


def _write_json(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    twice = next((name for name, count in Counter(schema.names).items() if count > 1), None)
    if twice is not None:
        raise InvalidRequest("JSON needs unique names", found=f"two columns named {twice}", hint="Rename them with AS.")
    for row in _python_rows(batches):
        values = {field.name: _json_value(value, field.type) for field, value in zip(schema, row, strict=True)}
        print(json.dumps(values, separators=(",", ":")))


def _write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    as_text = pa.schema([(field.name, csv_type(field.type)) for field in schema])
    with pyarrow.csv.CSVWriter(sys.stdout.buffer, as_text) as writer:
        for batch in batches:
            for begin in range(0, batch.num_rows, _ROWS_AT_ONCE):
                part = batch.slice(begin, _ROWS_AT_ONCE)
                columns = [
                    as_csv_column(column, field.type) for column, field in zip(part.columns, as_text, strict=True)
                ]
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=as_text))


def _write_arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    with pa.ipc.new_stream(cast("IOBase", binary_output()), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _cell(value: object, kind: pa.DataType) -> str | None:
    if value is None:
        return None
    found = _json_value(value, kind)
    text = json.dumps(found, ensure_ascii=False) if isinstance(found, list | dict) else str(found)
    if pa.types.is_timestamp(kind):
        text = _NO_FRACTION.sub("", text.replace("T", " ", 1))
    return text


def _json_value(value: Any, kind: Any) -> object:  # noqa: ANN401  # a value of any type and its type
    if value is None:
        return None
    if isinstance(kind, pa.DictionaryType):
        return _json_value(value, kind.value_type)
    if isinstance(kind, pa.StructType):
        return {field.name: _json_value(value[field.name], field.type) for field in kind}
    if isinstance(kind, pa.MapType):
        pairs = [(_json_value(key, kind.key_type), _json_value(item, kind.item_type)) for key, item in value]
        return dict(pairs) if pa.types.is_string(kind.key_type) else [list(pair) for pair in pairs]
    if isinstance(value, list):
        return [_json_value(item, kind.value_type) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if isinstance(value, pa.MonthDayNano):
        return f"P{value.months}M{value.days}DT{value.nanoseconds / 1e9:g}S"
    text = str(value)
    is_instant = pa.types.is_timestamp(kind) and not text.startswith("<")  # "<value out of range: …>"
    return text.replace(" ", "T", 1) if is_instant else text
