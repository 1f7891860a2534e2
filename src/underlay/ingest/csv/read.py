"""Reads CSV as rows: block by block, and record by record only where a block does not fit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from underlay.ingest.csv.blocks import Blocks, CsvBlock
from underlay.ingest.csv.columns import CsvColumns, csv_columns
from underlay.ingest.csv.header import read_header
from underlay.ingest.csv.records import CsvRecords, content_ends, find_records
from underlay.ingest.csv.salvage import Mended, bytes_of, mend, too_long
from underlay.ingest.rows.misfits import UNFIT, drop_rows, null_rows, with_reasons
from underlay.ingest.rows.reading import RAW_BYTES, Rejected, RowRules, TakenRows
from underlay.ingest.source.decompressed import Plain
from underlay.ingest.source.file_format import FileFormat
from underlay.ingest.source.utf8_text import Utf8Text


def read_csv(plain: Plain, kind: FileFormat, reading: RowRules) -> Iterator[TakenRows]:
    """The rows of a CSV source. Raises SourceUnreadable, SchemaMismatch, Unsupported."""
    text = Utf8Text(plain, reading.dialect.encoding)
    blocks = Blocks(text, block_bytes=reading.block_bytes, record_bytes=reading.record_bytes)
    header = read_header(blocks, reading.dialect, kind, plain.name, reading.record_bytes)
    columns = csv_columns(reading, header, plain.name)
    for block in blocks.cut(header.marks):
        rows, rejected = _read_block(columns, block)
        yield TakenRows(rows=columns.complete(rows), rejected=rejected, read_bytes=plain.read_bytes())


def _read_block(columns: CsvColumns, block: CsvBlock) -> tuple[pa.Table, tuple[Rejected, ...]]:
    if block.rejected is not None:
        return pa.schema(list(columns.taken())).empty_table(), (block.rejected,)
    comment, most = columns.marks.comment, columns.reading.record_bytes
    has_comments = comment is not None and comment.encode() in block.data
    may_be_long = len(block.data) > most
    records = find_records(block.data, columns.marks) if has_comments or may_be_long else None
    is_long = may_be_long and records is not None and len(too_long(block.data, records, most)) > 0
    data = bytes_of(block.data, records) if has_comments and records is not None else block.data
    rows = None if is_long else _read_at_once(columns, data)
    if rows is not None and not _unfit(columns, rows):
        return rows, ()
    records = find_records(block.data, columns.marks) if records is None else records
    if rows is not None:
        mended = Mended(columns=rows, kept=np.arange(rows.num_rows), reasons={})
    else:
        mended = mend(columns, block.data, records)
    return _without_unfit(columns, block, records, mended)


def _read_at_once(columns: CsvColumns, data: bytes) -> pa.Table | None:
    try:
        if not data.isascii():
            str(memoryview(data), "utf-8")
        return columns.convert(data)
    except UNFIT:
        return None


def _without_unfit(
    columns: CsvColumns, block: CsvBlock, records: CsvRecords, mended: Mended
) -> tuple[pa.Table, tuple[Rejected, ...]]:
    unfit = _unfit(columns, mended.columns)
    reasons = mended.reasons | {int(mended.kept[row]): reason for row, reason in unfit.items()}
    return drop_rows(mended.columns, unfit), _rejected(block, records, reasons)


def _unfit(columns: CsvColumns, rows: pa.Table) -> dict[int, str]:
    """Why rows do not fit, by position: a null in a required column, or a failed check."""
    nulls, checks = null_rows(rows, columns.reading.schema), columns.reading.checks
    if checks is None:
        return nulls
    return with_reasons(nulls, checks.failures(columns.complete(drop_rows(rows, nulls))), rows.num_rows)


def _rejected(block: CsvBlock, records: CsvRecords, reasons: dict[int, str]) -> tuple[Rejected, ...]:
    places = np.array(sorted(reasons), np.int64)
    begins = records.begins[places]
    ends = np.minimum(content_ends(block.data, begins, records.ends[places]), begins + RAW_BYTES)
    return tuple(
        Rejected(line=block.line + line, offset=block.offset + begin, reason=reasons[place], raw=block.data[begin:end])
        for place, line, begin, end in zip(
            places.tolist(), records.lines[places].tolist(), begins.tolist(), ends.tolist(), strict=True
        )
    )
