"""The formats in which rows are written, and how a file's name chooses one."""

from __future__ import annotations

import os
from enum import StrEnum

from underlay.errors import InvalidRequest


class RowsAs(StrEnum):
    """How rows are written."""

    TABLE = "table"
    VERTICAL = "vertical"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"
    NDJSON = "ndjson"
    PARQUET = "parquet"
    ARROW = "arrow"


FOR_PEOPLE = (RowsAs.TABLE, RowsAs.VERTICAL)
"""Formats that show only the first rows unless a limit is given."""
BINARY = (RowsAs.PARQUET, RowsAs.ARROW)
_ENDINGS = {
    ".csv": RowsAs.CSV,
    ".json": RowsAs.JSON,
    ".ndjson": RowsAs.NDJSON,
    ".jsonl": RowsAs.NDJSON,
    ".parquet": RowsAs.PARQUET,
    ".pq": RowsAs.PARQUET,
    ".arrow": RowsAs.ARROW,
    ".arrows": RowsAs.ARROW,
    ".feather": RowsAs.ARROW,
    ".ipc": RowsAs.ARROW,
    ".md": RowsAs.MARKDOWN,
    ".txt": RowsAs.TABLE,
}


def choose_format(format: RowsAs | None, json: bool, output: str | None = None) -> RowsAs:
    """The format of `--format` or `--json`, else of the file's name, else a table. Raises InvalidRequest."""
    if json and format not in (None, RowsAs.NDJSON, RowsAs.JSON):
        raise InvalidRequest("--json and --format disagree", found=f"--format {format}", hint="Leave one of them out.")
    if format is not None:
        return format
    if json:
        return RowsAs.NDJSON
    return RowsAs.TABLE if output in (None, "-") else format_of_name(output or "")


def format_of_name(name: str) -> RowsAs:
    """The format for the extension of a file's name. Raises InvalidRequest."""
    ending = os.path.splitext(name)[1].lower()
    if ending not in _ENDINGS:
        raise InvalidRequest(
            "the format cannot be told from the name",
            place=name,
            expected=f"a name that ends in {', '.join(_ENDINGS)}",
            hint="Name the format with --format.",
        )
    return _ENDINGS[ending]
