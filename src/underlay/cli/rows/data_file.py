"""Reads the files of `append` and `create --from` like `ingest`, but a row that does not fit is an error.

CSV and JSON are read by the types of the table. For a table that does not exist yet, the types are inferred from the
beginning of the file.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import BinaryIO

import pyarrow as pa

from underlay.errors import InvalidRequest, NewColumn, SchemaMismatch
from underlay.ingest.rows.columnar import FILE_MAGIC
from underlay.ingest.rows.path_columns import PathColumns, infer_path_columns
from underlay.ingest.rows.reading import RECORD_BYTES, Dialect, NewColumnsPolicy, Rejected, RowRules
from underlay.ingest.source.file_format import MAGIC_BYTES, FileFormat, codec_of, kind_of
from underlay.ingest.source.find import STDIN, find_sources
from underlay.ingest.source.pinned import open_pinned
from underlay.ingest.source.source import Source
from underlay.ingest.work.infer_schema import combine, infer_one
from underlay.ingest.work.read_source import read_source
from underlay.schema.table_schema import TableSchema
from underlay.store.open import Option

_HEAD_BYTES = 1 << 10
_SHOWN_BYTES = 20
_ARROW_STREAM = b"\xff\xff\xff\xff"
_PARQUET = b"PAR1"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReading:
    """How to read files, from the options."""

    kind: FileFormat | None = None
    """None for files whose extension tells the format, and for stdin with a format to detect."""
    dialect: Dialect = field(default_factory=Dialect)
    record_bytes: int = RECORD_BYTES
    hive: bool = True
    """Whether folders such as year=2024 become columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file to read, or stdin when there is no source."""

    name: str
    """As the user wrote it, for messages."""
    source: Source | None
    kind: FileFormat | None
    """None for stdin with a format to detect."""
    options: Mapping[str, Option] = field(repr=False)
    reading: FileReading

    @property
    def size_bytes(self) -> int:
        """0 for stdin."""
        return self.source.size_bytes if self.source is not None else 0


def find_data(names: Sequence[str], reading: FileReading, options: Mapping[str, Option]) -> list[DataFile]:
    """The files that names and patterns match, in the order of the names. Reads none of them.

    Raises NotFound, and InvalidRequest for a folder, or for a name that does not show the format.
    """
    if names.count(STDIN) > 1:
        raise InvalidRequest("stdin can be read only once", found="- and -")
    found: list[DataFile] = []
    for name in names:
        if name == STDIN:
            found.append(DataFile(name="stdin", source=None, kind=reading.kind, options=options, reading=reading))
            continue
        sources = find_sources([name], options)
        for one in sources:
            shown = name if len(sources) == 1 else one.uri
            kind = reading.kind or kind_of(shown)
            found.append(DataFile(name=shown, source=one, kind=kind, options=options, reading=reading))
    return found


@contextmanager
def find_repeatable(name: str, reading: FileReading, options: Mapping[str, Option]) -> Iterator[list[DataFile]]:
    """The files that a name or pattern matches, to be read more than once: stdin is first copied to a file."""
    if name != STDIN:
        yield find_data([name], reading, options)
        return
    _refuse_terminal()
    with tempfile.NamedTemporaryFile(prefix="underlay-stdin-") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.seek(0)
        kind = reading.kind or _detect(file.read(_HEAD_BYTES))
        (source,) = find_sources([file.name], {})
        plain = replace(reading, hive=False)
        yield [DataFile(name="stdin", source=source, kind=kind, options={}, reading=plain)]


def infer_columns(name: str, reading: FileReading, options: Mapping[str, Option]) -> pa.Schema:
    """The columns of the files that a name or pattern matches, and of their paths; for CSV and JSON, inferred from the
    files' beginnings.
    """
    return columns_of(find_data([name], reading, options))


def columns_of(files: Sequence[DataFile]) -> pa.Schema:
    """The same for files that were found."""
    seen = []
    for data in files:
        with _open(data) as (kind, file):
            seen.append((data.name, kind, infer_one(data.name, kind, file, data.reading.dialect)))
    uris = (data.source.uri for data in files if data.source is not None and data.reading.hive)
    return infer_path_columns(uris, combine(seen))


def with_names(data: DataFile, schema: TableSchema) -> DataFile:
    """The file with names for columns that CSV does not name: those of the table, in order, that its path lacks."""
    reading = data.reading
    if data.kind not in (FileFormat.CSV, FileFormat.TSV) or not reading.dialect.is_positional:
        return data
    uri = "" if data.source is None or not reading.hive else data.source.uri
    given = PathColumns.of(uri, RowRules(schema=schema, new_columns="ignore"))
    names = tuple(field.name for field in schema.fields if field.name not in given.values)
    return replace(data, reading=replace(reading, dialect=replace(reading.dialect, columns=names)))


def read_data(
    data: DataFile, schema: TableSchema, *, new_columns: NewColumnsPolicy = "error"
) -> Iterator[tuple[pa.Table, int]]:
    """The rows of a file, with how many of its bytes were read so far. `new_columns` is the policy for columns that the
    schema lacks.

    Raises SchemaMismatch for a row that does not fit, with its line, and what `read_source` raises.
    """
    reading = data.reading
    rules = RowRules(schema=schema, dialect=reading.dialect, record_bytes=reading.record_bytes, new_columns=new_columns)
    # A folder's name may look like this for other reasons: columns that the table lacks are left out.
    uri = "" if data.source is None or not reading.hive else data.source.uri
    given = PathColumns.of(uri, replace(rules, new_columns="ignore"))
    with _open(data) as (kind, file):
        is_positional = kind in (FileFormat.CSV, FileFormat.TSV) and reading.dialect.is_positional
        rules = given.rules(rules, is_positional=is_positional)
        try:
            for taken in read_source(file, kind, rules, name=data.name):
                if taken.rejected:
                    raise _misfit(data, kind, taken.rejected[0])
                yield given.fill(taken.rows), taken.read_bytes
        except NewColumn as error:
            error.hint = error.hint or 'Remove it from the file, or use "underlay ingest" with --new-columns.'
            raise


def _misfit(data: DataFile, kind: FileFormat, rejected: Rejected) -> SchemaMismatch:
    unit = "row" if kind in (FileFormat.PARQUET, FileFormat.ARROW) else "line"
    return SchemaMismatch(rejected.reason, place=f"{data.name}, {unit} {rejected.line}", hint="Nothing was changed.")


@contextmanager
def _open(data: DataFile) -> Iterator[tuple[FileFormat, io.BufferedIOBase]]:
    """The format of a file, and its bytes. Stdin stays open."""
    if data.source is not None and data.kind is not None:
        with open_pinned(data.source, data.options) as file:
            yield data.kind, file
        return
    _refuse_terminal()
    piped = _Piped(sys.stdin.buffer)
    kind = data.kind or _detect(piped.head)
    if kind is FileFormat.PARQUET or piped.head.startswith(FILE_MAGIC):
        with tempfile.TemporaryFile() as file:  # their readers begin at the end of the file
            shutil.copyfileobj(piped, file)
            file.seek(0)
            yield kind, file
        return
    yield kind, piped


def _refuse_terminal() -> None:
    if sys.stdin.isatty():
        raise InvalidRequest('"-" reads stdin, which is a terminal', hint='Pipe data in: "… | underlay append …".')


def _detect(head: bytes) -> FileFormat:
    """Detect the format from the first bytes. Text that is not JSON counts as CSV, whose reader checks the header."""
    if head.startswith(_PARQUET):
        return FileFormat.PARQUET
    if head.startswith((_ARROW_STREAM, FILE_MAGIC)):
        return FileFormat.ARROW
    if head.lstrip().startswith((b"{", b"[")):
        return FileFormat.JSON
    if codec_of("stdin", head[:MAGIC_BYTES]) is None and b"\0" not in head:
        return FileFormat.CSV
    raise InvalidRequest(
        "the format of stdin cannot be detected", found=head[:_SHOWN_BYTES], hint="Name it with --format."
    )


class _Piped(io.BufferedIOBase):
    """A pipe that can be rewound after only its first bytes were read, as the detection of its compression needs."""

    def __init__(self, file: BinaryIO) -> None:
        self.head = file.read(_HEAD_BYTES)
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or max(offset, self._at) > len(self.head):
            raise io.UnsupportedOperation("a pipe cannot be rewound")
        self._at = offset
        return offset

    def read(self, size: int | None = -1, /) -> bytes:
        rest = self.head[self._at :] if self._at < len(self.head) else b""
        if size is None or size < 0:
            data = rest + self._file.read()
        else:
            data = rest[:size]
            data += self._file.read(size - len(data)) if len(data) < size else b""
        self._at += len(data)
        return data
