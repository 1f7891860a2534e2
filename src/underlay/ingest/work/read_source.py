"""From a source's bytes to typed rows and rejected rows."""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedIOBase

from underlay.ingest.csv.read import read_csv
from underlay.ingest.json.read import read_json
from underlay.ingest.rows.arrow_ipc import read_arrow
from underlay.ingest.rows.parquet import read_parquet
from underlay.ingest.rows.reading import RowRules, TakenRows
from underlay.ingest.source.decompressed import Plain
from underlay.ingest.source.file_format import FileFormat


def read_source(file: BufferedIOBase, kind: FileFormat, reading: RowRules, *, name: str) -> Iterator[TakenRows]:
    """The rows of a source in its order, some at a time, and what is rejected. `file` is at its beginning; Parquet
    needs it seekable, others can be rewound to the beginning once.

    A source without rows gives one empty `TakenRows`, or none. Raises SourceUnreadable for one that is cut short,
    damaged or not what `kind` says, SchemaMismatch for columns that are not let through, Unsupported for a column that
    this kind of source cannot hold; what reading `file` raises passes, such as Replaced. Memory is bounded by
    `block_bytes` and `record_bytes`; of Parquet, by a row group's pages, of Arrow by a record
    batch.
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
