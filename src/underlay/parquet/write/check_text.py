"""Checks that text in a Parquet file is valid UTF-8, each dictionary value once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from underlay.errors import SchemaMismatch
from underlay.parquet.write.arrow_errors import reading

_HINT = "Correct it, or make the column binary."


def check_text(path: Path, columns: Mapping[str, str]) -> None:
    """Raises SchemaMismatch when a column holds bytes that are not text. `columns` maps dotted paths in the file's
    schema to names for messages.

    One chunk is held in memory at a time. Raises Malformed, NotFound, Unavailable.
    """
    if not columns:
        return
    with reading(path):
        with pq.ParquetFile(path) as file:
            by_dictionary = _all_in_dictionaries(file.metadata) & set(columns)
        with pq.ParquetFile(path, read_dictionary=sorted(by_dictionary)) as file:
            for block in range(file.num_row_groups):
                for column, called in columns.items():
                    _check(file.read_row_group(block, columns=[column], use_threads=False), called)


def _check(values: pa.Table, column: str) -> None:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise SchemaMismatch("text is not valid UTF-8", place=column, hint=_HINT) from error


def _all_in_dictionaries(metadata: pq.FileMetaData) -> set[str]:
    """The columns whose pages are all dictionary-encoded."""
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    plain = {
        group.column(at).path_in_schema
        for group in groups
        for at in range(group.num_columns)
        if "PLAIN" in group.column(at).encodings
    }
    return {metadata.schema.column(at).path for at in range(metadata.num_columns)} - plain
