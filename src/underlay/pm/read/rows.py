"""Decodes a Parquet file's rows through its sidecar, which alone supplies byte ranges, codecs and levels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from underlay.errors import (
    Damaged,
    Inconsistent,
    InvalidRequest,
    UnderlayError,
    UnknownColumn,
    Unsupported,
    from_os_error,
    name_hint,
)
from underlay.parquet.footer.tail import MAGIC, seal
from underlay.pm.format.sidecar import Sidecar
from underlay.pm.prune.prune import chunk_ranges
from underlay.pm.read.file_schema import FileSchema
from underlay.pm.read.synthesise import to_footer

_BATCH_ROWS = 65_536


def read_rows(
    sidecar: Sidecar,
    parquet: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    row_groups: Sequence[int] | None = None,
    schema: FileSchema | pa.Schema | None = None,
) -> pa.Table:
    """All chosen rows as one table (see `read_batches`)."""
    reader = read_batches(sidecar, parquet, columns=columns, row_groups=row_groups, schema=schema)
    return reader.read_all()


def read_batches(
    sidecar: Sidecar,
    parquet: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    row_groups: Sequence[int] | None = None,
    schema: FileSchema | pa.Schema | None = None,
) -> pa.RecordBatchReader:
    """The chosen rows, some ten thousand at a time. The file's own footer and the bytes behind it are not read.

    Raises Inconsistent when the file is shorter than the sidecar's version of it, and Damaged when a page does not
    decode.
    """
    wanted = list(range(sidecar.row_group_count)) if row_groups is None else list(row_groups)
    chunk_ranges(sidecar, wanted)
    _check_row_counts(sidecar, wanted)
    file = open_through_sidecar(sidecar, parquet, schema)
    arrow_schema = file.schema_arrow
    if columns is not None:
        for name in columns:
            if arrow_schema.get_field_index(name) < 0:
                file.close()
                raise UnknownColumn(
                    f"there is no column {name}, or more than one", hint=name_hint(name, arrow_schema.names)
                )
        arrow_schema = pa.schema([arrow_schema.field(name) for name in columns])
    return pa.RecordBatchReader.from_batches(arrow_schema, _batches(file, wanted, columns, os.fspath(parquet)))


def _check_row_counts(sidecar: Sidecar, row_groups: list[int]) -> None:
    """A column without repetition has a value, or a null, for every row: with a wrong count, decoding would never
    end."""
    for index, column in enumerate(sidecar.columns):
        if column.max_rep_level:
            continue
        counts = sidecar.column_chunks(index)["num_values"]
        for row_group in row_groups:
            if counts[row_group] != sidecar.num_rows[row_group]:
                raise Inconsistent(
                    "the number of values is not the number of rows",
                    place=f"row group {row_group}, column {column.name}",
                    expected=int(sidecar.num_rows[row_group]),
                    found=int(counts[row_group]),
                )


def _batches(
    file: pq.ParquetFile, row_groups: list[int], columns: Sequence[str] | None, place: str
) -> Iterator[pa.RecordBatch]:
    with file:
        for row_group in row_groups:
            try:
                yield from row_group_batches(file, row_group, columns)
            except (pa.ArrowException, OSError) as error:
                raise decoding_error(error, row_group).at(place) from error
            except Damaged as error:
                raise error.at(place) from None


def decoding_error(error: Exception, row_group: int) -> UnderlayError:
    """One of our errors for what Arrow raised about a row group: Arrow cannot read it, or its bytes are damaged."""
    place = f"row group {row_group}"
    if isinstance(error, pa.ArrowNotImplementedError):
        return Unsupported(f"Arrow cannot read it: {error}", place=place)
    return Damaged(f"does not decode: {error}", place=place)


def row_group_batches(
    file: pq.ParquetFile, row_group: int, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of one row group, some ten thousand at a time. Raises Damaged when there are fewer than it says."""
    names = None if columns is None else list(columns)
    missing = file.metadata.row_group(row_group).num_rows
    for batch in file.iter_batches(_BATCH_ROWS, row_groups=[row_group], columns=names):
        missing -= batch.num_rows
        yield batch if names is None else batch.select(names)
    if missing and (names is None or names):
        raise Damaged(f"has {missing} rows fewer than the sidecar says", place=f"row group {row_group}")


def open_through_sidecar(
    sidecar: Sidecar, parquet: str | os.PathLike[str], schema: FileSchema | pa.Schema | None = None
) -> pq.ParquetFile:
    """The Parquet file, with a footer made from the sidecar in place of its own."""
    path = os.fspath(parquet)
    try:
        source = pa.OSFile(path, "rb")
    except OSError as error:
        raise from_os_error(error, path) from error
    available = source.size()
    if available < sidecar.parquet_size:
        source.close()
        raise Inconsistent(
            "the Parquet file is shorter than the version that the sidecar describes",
            place=path,
            expected=f"{sidecar.parquet_size} bytes",
            found=available,
        )
    try:
        metadata = pq.read_metadata(pa.BufferReader(MAGIC + seal(to_footer(sidecar, schema))))
        return pq.ParquetFile(source, metadata=metadata)
    except UnderlayError:
        source.close()
        raise
    except (pa.ArrowException, OSError) as error:
        source.close()
        raise InvalidRequest(f"Arrow refuses the columns: {error}", place=path) from error
