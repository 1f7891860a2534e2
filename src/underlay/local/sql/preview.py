"""The first rows of an answer as text."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

_MAX_WIDTH = 32


def draw(table: pa.Table, *, has_more: bool) -> str:
    """The rows under the names of their columns; numbers to the right."""
    columns = [[_cell(value.as_py()) for value in column] for column in table.columns]
    names = _names(table)
    widths = [max(map(len, (name, *cells))) for name, cells in zip(names, columns, strict=True)]
    is_number = [_is_number(field.type) for field in table.schema]
    lines = [_line(names, widths, is_number), "  ".join("-" * width for width in widths)]
    lines += [_line(cells, widths, is_number) for cells in zip(*columns, strict=True)]
    if has_more:
        lines.append("…")
    return "\n".join(lines)


def _names(table: pa.Table) -> list[str]:
    return [_cell(name) for name in table.schema.names]


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _line(cells: Sequence[str], widths: Sequence[int], is_number: Sequence[bool]) -> str:
    placed = (
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, is_number, strict=True)
    )
    return "  ".join(placed).rstrip()


def _cell(value: object) -> str:
    text = "NULL" if value is None else str(value).replace("\n", " ")
    return text if len(text) <= _MAX_WIDTH else text[: _MAX_WIDTH - 1] + "…"
