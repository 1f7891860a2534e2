"""Reads the bytes of a source as typed rows and rejected rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BufferedIOBase

import pyarrow as pa

from underlay.errors import SourceEmpty, SourceUnreadable
from underlay.ingest.csv.read import read_csv
from underlay.ingest.json.read import read_json
from underlay.ingest.rows.columnar import read_arrow, read_parquet
from underlay.ingest.rows.path_columns import PathColumns
from underlay.ingest.rows.reading import Rejected, RowRules, TakenRows
from underlay.ingest.source.decompressed import Plain
from underlay.ingest.source.file_format import FileFormat, kind_of
from underlay.ingest.source.pinned import content_of, open_pinned
from underlay.ingest.source.source import Source
from underlay.ingest.work.work_unit import WorkUnit

REJECTED_ROWS = 200_000
REJECTED_BYTES = 64 << 20
"""At most this much of a source's rejected rows is kept. A source with more probably has the wrong format or options,
and fails."""


def read_source(file: BufferedIOBase, kind: FileFormat, reading: RowRules, *, name: str) -> Iterator[TakenRows]:
    """The rows of a source in order, some at a time, and the rejected records. `file` is at its beginning; Parquet
    needs a seekable file, other formats one that can be rewound once.

    A source without rows yields one empty `TakenRows`, or none. Raises SourceUnreadable for a source that is truncated,
    damaged or not of this `kind`, SchemaMismatch for columns that are not accepted, Unsupported for a column that this
    kind of source cannot hold; errors of reading `file`, such as Replaced, pass through. Memory is bounded by
    `block_bytes` and `record_bytes`; of Parquet by the pages of a row group, of Arrow by a record batch.
    """
    match kind:
        case FileFormat.CSV | FileFormat.TSV:
            return read_csv(Plain(file, name), kind, reading)
        case FileFormat.JSON:
            return read_json(Plain(file, name), reading)
        case FileFormat.PARQUET:
            return read_parquet(file, reading, name)
        case FileFormat.ARROW:
            plain = Plain(file, name)
            return read_arrow(plain.arrow_file(), reading, name, plain.read_bytes)


class SourceRows:
    """Reads a source. `row_count` and `rejected` count what was read so far."""

    def __init__(self, found: Source, work: WorkUnit, reading: RowRules, advance: Callable[[int], None] | None) -> None:
        self.row_count = 0
        self.rejected: list[Rejected] = []
        self.has_too_many_rejected = False
        self.content: str | None = None
        """Size and hash of the bytes, once all of them are read."""
        self._found = found
        self._work = work
        self._reading = reading
        self._advance = advance
        self._told_bytes = 0
        self._raw_bytes = 0

    def tables(self) -> Iterator[pa.Table]:
        """The rows, some at a time. A source of zero bytes has none. Raises what `read_source` raises."""
        uri = self._found.uri
        kind = self._work.kind or kind_of(uri)
        given = PathColumns.of(uri, self._reading) if self._work.hive else None
        is_positional = kind in (FileFormat.CSV, FileFormat.TSV) and self._work.dialect.is_positional
        reading = self._reading if given is None else given.rules(self._reading, is_positional=is_positional)
        with open_pinned(self._found, self._work.store_options) as file:
            try:
                for taken in read_source(file, kind, reading, name=uri):
                    self._keep(taken)
                    yield taken.rows if given is None else given.fill(taken.rows)
            except SourceEmpty:
                pass
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowKeyError) as error:
                raise SourceUnreadable("cannot be read", place=uri, found=str(error).strip()) from error
            self.content = content_of(file)

    def tell_rest(self) -> None:
        """Report the bytes that were not read as done."""
        self._tell(self._found.size_bytes)

    def _keep(self, taken: TakenRows) -> None:
        self.row_count += taken.rows.num_rows
        self.rejected += taken.rejected
        self._raw_bytes += sum(len(one.raw) for one in taken.rejected)
        if len(self.rejected) > REJECTED_ROWS or self._raw_bytes > REJECTED_BYTES:
            self.has_too_many_rejected = True
            first = self.rejected[0]
            raise SourceUnreadable(
                f"too many rows do not fit the table: {len(self.rejected)} so far, with {self.row_count} that do",
                place=f"{self._found.uri}, line {first.line}",
                found=first.reason,
                hint="Check the delimiter, the header and the columns.",
            )
        self._tell(taken.read_bytes)

    def _tell(self, read_bytes: int) -> None:
        if self._advance is not None and read_bytes > self._told_bytes:
            self._advance(read_bytes - self._told_bytes)
            self._told_bytes = read_bytes
