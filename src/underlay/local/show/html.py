"""Rows as HTML for notebooks: few rows and columns, and every character of the data escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import pyarrow as pa

from underlay.local.show.cells import ELIDED, is_number, show_value

MOST_ROWS = 20
MOST_COLUMNS = 20


def as_html(rows: pa.Table, *, caption: str = "", has_more: bool = False) -> str:
    """The first rows and the outer columns, under their names and types."""
    count = rows.num_columns
    half = MOST_COLUMNS // 2
    shown: list[int | None] = list(range(count))
    if count > MOST_COLUMNS:
        shown = [*range(half), None, *range(count - half, count)]
    rows, has_more = rows.slice(0, MOST_ROWS), has_more or rows.num_rows > MOST_ROWS
    names = ["<th></th>" if at is None else _head(rows.schema.field(at)) for at in shown]
    columns = [_column(None if at is None else rows.column(at), rows.num_rows) for at in shown]
    lines = [f"<tr>{''.join(names)}</tr>", *(f"<tr>{''.join(line)}</tr>" for line in zip(*columns, strict=True))]
    if has_more:
        lines.append(f'<tr><td colspan="{max(len(shown), 1)}">{ELIDED}</td></tr>')
    if count > MOST_COLUMNS:
        caption = f"{caption} ({MOST_COLUMNS} of {count} columns shown)".strip()
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}{''.join(lines)}</table>"


def as_text(text: str) -> str:
    """Text as it is."""
    return f"<pre>{escape(text)}</pre>"


def _head(field: pa.Field[pa.DataType]) -> str:
    return f"<th>{escape(field.name)}<br><small>{escape(str(field.type))}</small></th>"


def _column(column: pa.ChunkedArray[Any] | None, count: int) -> Sequence[str]:
    if column is None:
        return [f"<td>{ELIDED}</td>"] * count
    style = ' style="text-align: right"' if is_number(column.type) else ""
    return [f"<td{style}>{escape(show_value(value.as_py(), column.type))}</td>" for value in column]
