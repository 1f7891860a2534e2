"""Rows as text that fits the terminal: columns in the middle are left out, and numbers are never cut."""

from __future__ import annotations

from collections.abc import Sequence
from shutil import get_terminal_size

import pyarrow as pa

from underlay.local.show.cells import ELIDED, fitting, is_number, show_value

_GAP = "  "
_DEFAULT_WIDTH = 120


def draw(table: pa.Table, *, has_more: bool, width: int | None = None) -> str:
    """The rows under the names of their columns. `width` is the terminal's, unless it is given."""
    most = width or get_terminal_size((_DEFAULT_WIDTH, 24)).columns
    cells = [
        [show_value(name, pa.string()), *(show_value(value.as_py(), column.type) for value in column)]
        for name, column in zip(table.schema.names, table.columns, strict=True)
    ]
    widths = [max(map(len, column)) for column in cells]
    shown = fitting([one + len(_GAP) for one in widths], most + len(_GAP))
    if len(shown) < len(cells):
        shown = fitting([one + len(_GAP) for one in widths], most - len(ELIDED))
    placed: list[list[str]] = []
    before = -1
    for at in shown:
        if at != before + 1:
            placed.append([ELIDED] * (table.num_rows + 2))
        placed.append(_column(cells[at], widths[at], is_right=is_number(table.schema.field(at).type)))
        before = at
    if before + 1 != len(cells):
        placed.append([ELIDED] * (table.num_rows + 2))
    lines = [_GAP.join(line).rstrip() for line in zip(*placed, strict=True)] if placed else []
    if has_more:
        lines.append(ELIDED)
    if len(shown) < len(cells):
        lines.append(f"({len(shown)} of {len(cells)} columns)")
    return "\n".join(lines)


def _column(cells: Sequence[str], width: int, *, is_right: bool) -> list[str]:
    aligned = [cell.rjust(width) if is_right else cell.ljust(width) for cell in cells]
    return [aligned[0], "-" * width, *aligned[1:]]
