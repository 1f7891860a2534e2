"""Writes rows in each format, a batch at a time, with their header and trailer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import IOBase
from typing import IO, Any, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from underlay.server.formats.formats import ResultFormat
from underlay.server.formats.text import Texts, texts_of
from underlay.server.formats.types import columns_of, has_only_text_in_parquet

_EXACT_IN_BROWSERS = 2**53 - 1
_MOST_ROWS = 4096
"""At most this many rows are turned into text at once, which bounds the memory for text that a client has not read
yet."""
Facts = Mapping[str, object]


class Encoder(Protocol):
    """One format. Call `begin`, then `write` for each batch, then `end` or `fail`."""

    can_fail: bool
    """Whether the format can express an error after the first rows."""

    def begin(self, schema: pa.Schema, facts: Facts) -> None:
        """Write the header."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Rows."""

    def end(self, facts: Facts) -> None:
        """Write the trailer: how many rows there are, whether they are all."""

    def fail(self, problem: Facts) -> None:
        """Write the error that ended the rows."""


def make_encoder(format: ResultFormat, sink: IO[bytes], *, shape: str, integers_as_text: bool) -> Encoder:
    """An encoder that writes to the sink. `shape` is arrays or objects, for rows in JSON."""
    match format:
        case ResultFormat.JSON:
            return _Json(sink, as_objects=shape == "objects", integers_as_text=integers_as_text)
        case ResultFormat.NDJSON:
            return _Lines(sink, as_objects=shape == "objects", integers_as_text=integers_as_text)
        case ResultFormat.CSV:
            return _Csv(sink)
        case ResultFormat.ARROW:
            return _Arrow(sink)
        case ResultFormat.PARQUET:
            return _Parquet(sink)


def json_rows(batch: pa.RecordBatch, *, as_objects: bool, integers_as_text: bool) -> list[str]:
    """Each row as a JSON array or object."""
    columns = [texts_of(column, integers_as_text=integers_as_text).as_json() for column in batch.columns]
    if not columns:
        return ["{}" if as_objects else "[]"] * batch.num_rows
    if not as_objects:
        return [f"[{','.join(row)}]" for row in zip(*columns, strict=True)]
    names = [json.dumps(name, ensure_ascii=False) for name in batch.schema.names]
    named = [[f"{name}:{text}" for text in column] for name, column in zip(names, columns, strict=True)]
    return [f"{{{','.join(row)}}}" for row in zip(*named, strict=True)]


class _Rows:
    """What JSON and NDJSON share."""

    can_fail = True

    def __init__(self, sink: IO[bytes], *, as_objects: bool, integers_as_text: bool) -> None:
        self._sink = sink
        self._as_objects = as_objects
        self._integers_as_text = integers_as_text
        self._beyond: dict[str, None] = {}

    def _texts(self, batch: pa.RecordBatch) -> list[str]:
        for field, column in zip(batch.schema, batch.columns, strict=True):
            if field.name not in self._beyond and is_beyond_browsers(column):
                self._beyond[field.name] = None
        return json_rows(batch, as_objects=self._as_objects, integers_as_text=self._integers_as_text)

    def _tail(self, facts: Facts) -> Facts:
        return {**facts, "beyond_2_53": list(self._beyond)} if self._beyond else facts

    def _put(self, text: str) -> None:
        self._sink.write(text.encode(errors="backslashreplace"))


class _Json(_Rows):
    """One object: columns, rows, and at the end the totals."""

    _has_rows = False

    def begin(self, schema: pa.Schema, facts: Facts) -> None:
        head = json_text({"columns": columns_of(schema), **facts})
        self._put(f'{head[:-1]},"rows":[')

    def write(self, batch: pa.RecordBatch) -> None:
        for part in _parts(batch):
            self._put((",\n" if self._has_rows else "\n") + ",\n".join(self._texts(part)))
            self._has_rows = True

    def end(self, facts: Facts) -> None:
        self._put(f"],{json_text(self._tail(facts))[1:]}\n")

    def fail(self, problem: Facts) -> None:
        self._put(f"],{json_text({'error': problem})[1:]}\n")


class _Lines(_Rows):
    """A line of columns, a line for each row, and a last line that says it is the last."""

    def begin(self, schema: pa.Schema, facts: Facts) -> None:
        self._put(json_text({"columns": columns_of(schema), **facts}) + "\n")

    def write(self, batch: pa.RecordBatch) -> None:
        for part in _parts(batch):
            self._put("\n".join(self._texts(part)) + "\n")

    def end(self, facts: Facts) -> None:
        self._put(json_text({"end": self._tail(facts)}) + "\n")

    def fail(self, problem: Facts) -> None:
        self._put(json_text({"error": problem}) + "\n")


class _Csv:
    """RFC 4180 with a header; null is an empty field, an empty string is two quotes."""

    can_fail = False

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = sink

    def begin(self, schema: pa.Schema, facts: Facts) -> None:
        self._put([",".join(_field(name) for name in schema.names)])

    def write(self, batch: pa.RecordBatch) -> None:
        for part in _parts(batch):
            columns = [_fields(texts_of(column)) for column in part.columns]
            self._put([",".join(row) for row in zip(*columns, strict=True)] if columns else [""] * part.num_rows)

    def end(self, facts: Facts) -> None:
        """CSV has no trailer."""

    def fail(self, problem: Facts) -> None:
        """The connection is closed in the middle."""

    def _put(self, lines: list[str]) -> None:
        self._sink.write("".join(f"{line}\r\n" for line in lines).encode(errors="backslashreplace"))


class _Arrow:
    """An Arrow stream without dictionaries: readers in browsers do not support them, and a dictionary's values may
    change.
    """

    can_fail = False

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = as_arrow_file(sink)
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def begin(self, schema: pa.Schema, facts: Facts) -> None:
        self._writer = pa.ipc.new_stream(self._sink, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        if self._writer is not None:
            self._writer.write_batch(batch)

    def end(self, facts: Facts) -> None:
        if self._writer is not None:
            self._writer.close()

    def fail(self, problem: Facts) -> None:
        """The connection is closed in the middle."""


class _Parquet:
    """A Parquet file. Types that Parquet lacks become text, as in JSON."""

    can_fail = False

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = as_arrow_file(sink)
        self._writer: pq.ParquetWriter | None = None
        self._schema: pa.Schema = pa.schema([])

    def begin(self, schema: pa.Schema, facts: Facts) -> None:
        self._schema = pa.schema(
            [field.with_type(pa.string()) if has_only_text_in_parquet(field.type) else field for field in schema]
        )
        self._writer = pq.ParquetWriter(self._sink, self._schema, compression="zstd")

    def write(self, batch: pa.RecordBatch) -> None:
        columns: list[pa.Array[Any]] = []  # Any: of every type
        for field, column in zip(self._schema, batch.columns, strict=True):
            is_text = field.type != column.type
            columns.append(pa.array(_plain(texts_of(column)), pa.string()) if is_text else column)
        if self._writer is not None:
            self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def end(self, facts: Facts) -> None:
        if self._writer is not None:
            self._writer.close()

    def fail(self, problem: Facts) -> None:
        """The connection is closed in the middle."""


def as_arrow_file(sink: IO[bytes]) -> pa.PythonFile:
    """The sink as a Python file for Arrow, which needs only the methods that every sink has."""
    return pa.PythonFile(cast("IOBase", sink), mode="w")


def json_text(value: object) -> str:
    """The server's own facts as JSON; none of them is a float that JSON cannot express."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def is_beyond_browsers(column: Any) -> bool:  # noqa: ANN401  # of every type
    """Whether a column holds an integer that a double cannot represent."""
    is_integer = pa.types.is_integer(column.type) or (
        isinstance(column.type, pa.Decimal128Type | pa.Decimal256Type) and column.type.scale <= 0
    )
    if not is_integer or not len(column):
        return False
    bounds: Any = pc.min_max(column)  # Any: a struct
    ends = (bounds["min"].as_py(), bounds["max"].as_py())
    return any(value is not None and abs(value) > _EXACT_IN_BROWSERS for value in ends)


def _parts(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    return [batch.slice(at, _MOST_ROWS) for at in range(0, batch.num_rows, _MOST_ROWS)]


def _plain(texts: Texts) -> list[str | None]:
    """The texts without the quotes that JSON needs around special floats."""
    return texts.values


def _fields(texts: Texts) -> list[str]:
    if texts.is_json:
        return ["" if text is None else _field(_unquoted(text)) for text in texts.values]
    return ["" if text is None else _field(text) for text in texts.values]


def _unquoted(text: str) -> str:
    """A float such as NaN without its quotes."""
    return text[1:-1] if text[:1] == '"' and text[-1:] == '"' and len(text) > 1 else text


def _field(text: str) -> str:
    needs_quotes = not text or any(sign in text for sign in ',"\r\n') or text[0].isspace() or text[-1].isspace()
    return '"{}"'.format(text.replace('"', '""')) if needs_quotes else text
