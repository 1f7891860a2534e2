"""Sources in memory, read to their ends."""

from __future__ import annotations

import io
from dataclasses import replace

import pyarrow as pa

from underlay.ingest.rows.reading import Rejected, RowRules
from underlay.ingest.source.file_format import FileFormat
from underlay.ingest.work.read_source import read_source
from underlay.schema.convert.arrow import from_arrow


def reading(*fields: pa.Field | tuple[str, pa.DataType], **options: object) -> RowRules:
    return replace(RowRules(schema=from_arrow(pa.schema(list(fields)))), **options)


def take(
    data: bytes, how: RowRules, kind: FileFormat = FileFormat.CSV, name: str = "trips"
) -> tuple[list[dict[str, object]], list[Rejected]]:
    rows: list[dict[str, object]] = []
    rejected: list[Rejected] = []
    for taken in read_source(io.BytesIO(data), kind, how, name=name):
        rows += taken.rows.to_pylist()
        rejected += taken.rejected
    return rows, rejected
