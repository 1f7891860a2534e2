"""CSV and JSON lines as Arrow rows, by the types of a table, and what is wrong with a line that does not fit.

A null is an empty field that is not quoted, or a JSON null.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from underlay.errors import Malformed, SchemaMismatch, Unsupported, from_os_error
from underlay.ingest.rows.text_values import is_csv_type, is_json_type
from underlay.ingest.source.file_format import FileFormat, open_file

_BLOCK_BYTES = 8 << 20
_LINES_AT_ONCE = 1_000
_CSV_ERROR = re.compile(r"In CSV column #(\d+): (?:Row #(\d+): )?(.*)", re.DOTALL)
_JSON_CHANGE = re.compile(r"Column\(/(.*)\) changed from (\w+) to (\w+)")

Types = dict[str, pa.DataType]
"""The types of a table's columns."""


def text_reader(file: Any, kind: FileFormat, types: Types | None, nulls: tuple[str, ...]) -> Any:  # noqa: ANN401  # two readers
    """A reader of batches; types that it does not know, or that are not given, are text or guessed."""
    if kind is FileFormat.JSON:
        return pyarrow.json.open_json(
            file,
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            parse_options=_json_options(types),
        )
    read_types = None if types is None else {name: _read_type(kind_, is_csv_type) for name, kind_ in types.items()}
    return pyarrow.csv.open_csv(
        file,
        # Without threads Arrow says in which row a value does not convert.
        read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
        parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter_of(kind), newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=read_types,
            null_values=["", *nulls],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _json_options(types: Types | None) -> pyarrow.json.ParseOptions:
    if types is None:
        return pyarrow.json.ParseOptions()
    fields = [(name, _read_type(kind, is_json_type)) for name, kind in types.items()]
    return pyarrow.json.ParseOptions(explicit_schema=pa.schema(fields))


def _read_type(kind: pa.DataType, is_read: Callable[[pa.DataType], bool]) -> pa.DataType:
    """What Arrow reads a column as: its type, a wider one, or text."""
    if pa.types.is_float16(kind):
        return pa.float32()
    return kind if is_read(kind) else pa.string()


@contextmanager
def explained(name: str, kind: FileFormat | None, types: Types | None) -> Iterator[None]:
    """What Arrow says about a file, as an error of ours that names the file and, where it is known, the row."""
    try:
        yield
    except pa.ArrowNotImplementedError as error:
        raise Unsupported(str(error), place=name, hint="Use Parquet or Arrow.") from None
    except pa.ArrowInvalid as error:
        if kind is FileFormat.JSON and types is not None:
            raise _json_error(name, types, str(error)) from None
        raise _csv_error(name, kind, str(error)) from None
    except OSError as error:
        raise from_os_error(error, name) from None


def _csv_error(name: str, kind: FileFormat | None, text: str) -> SchemaMismatch | Malformed:
    found = _CSV_ERROR.fullmatch(text)
    if found is None:
        return Malformed(text.rstrip("."), place=name)
    row = f"row {found[2]} (the header is row 1), " if found[2] else ""
    expected, separator, problem = found[3].removeprefix("CSV conversion error to ").partition(": ")
    return SchemaMismatch(
        problem.partition(". If these")[0] if separator else found[3],
        place=f"{name}, {row}column {_csv_column(name, kind, int(found[1]))}",
        expected=expected if separator else None,
    )


def _csv_column(name: str, kind: FileFormat | None, index: int) -> str:
    with open_file(name) as (file, _):
        lines = io.TextIOWrapper(io.BufferedReader(cast("io.RawIOBase", file)), newline="")
        header = next(csv.reader(lines, delimiter=delimiter_of(kind)))
    return header[index]


def delimiter_of(kind: FileFormat | None) -> str:
    """What stands between the fields of a line."""
    return "\t" if kind is FileFormat.TSV else ","


def _json_error(name: str, types: Types, text: str) -> SchemaMismatch | Malformed:
    """The line that is wrong, which Arrow does not say: the lines are parsed again, some at a time and then alone."""
    options = _json_options(types)
    with open_file(name) as (file, _):
        begin, held = 1, []
        for line in io.BufferedReader(cast("io.RawIOBase", file)):
            held.append(line)
            if len(held) == _LINES_AT_ONCE:
                if _json_problem(b"".join(held), options):
                    break
                begin, held = begin + len(held), []
    for number, line in enumerate(held, start=begin):
        problem = _json_problem(line, options)
        if problem:
            return SchemaMismatch(problem, place=f"{name}, line {number}")
    return Malformed(text, place=name)


def _json_problem(lines: bytes, options: pyarrow.json.ParseOptions) -> str | None:
    if not lines.strip():
        return None
    try:
        pyarrow.json.read_json(io.BytesIO(lines), parse_options=options)
    except pa.ArrowInvalid as error:
        changed = _JSON_CHANGE.search(str(error))
        if changed:
            return f"column {changed[1]} holds a {changed[3]} (expected a {changed[2]})"
        return str(error).removeprefix("JSON parse error: ").removesuffix(" in row 0")
    return None
