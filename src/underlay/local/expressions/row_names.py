"""How errors name a row of the table: by the values of its key, or of the columns that it was found by."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from underlay.prune.predicates.operand import format_column
from underlay.schema.cast.conform import RowName
from underlay.table.versions.snapshot import Snapshot

_SHOWN_COLUMNS = 4
_SHOWN_CHARS = 40


def key_columns(snapshot: Snapshot) -> tuple[str, ...]:
    """The columns of the table's key, or the structs that contain them."""
    leaves = snapshot.schema.leaf_by_id
    return tuple(leaves[field].path[0] for field in snapshot.root.definition.key)


def name_row(rows: pa.Table, columns: Sequence[str]) -> RowName:
    """A row's name, made of these columns, or of the first ones."""
    names = [name for name in columns if name in rows.schema.names] or rows.schema.names[:1]

    def name(row: int) -> str:
        return "the row with " + ", ".join(f"{format_column((one,))} = {_shown(rows, one, row)}" for one in shown)

    shown = names[:_SHOWN_COLUMNS]
    return name


def _shown(rows: pa.Table, column: str, row: int) -> str:
    """One value, cut short. Arrow formats values that Python cannot represent."""
    value = rows.column(column)[row]
    try:
        text = repr(value.as_py())
    except (ValueError, OverflowError):
        text = str(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
