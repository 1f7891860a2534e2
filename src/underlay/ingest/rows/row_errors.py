"""Rows that are none of the table's: a value that it requires is null, or one does not fit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.errors import SchemaMismatch
from underlay.ingest.rows.bad_values import find_bad
from underlay.schema.cast.conform import conform
from underlay.schema.table_schema import TableSchema


def null_rows(rows: pa.Table, schema: TableSchema) -> dict[int, str]:
    """Why these rows are none of the table's, by their place: a required column is null."""
    reasons: dict[int, str] = {}
    for field in schema.fields:
        if not field.is_required or field.name not in rows.schema.names:
            continue
        column = rows.column(field.name)
        if column.null_count:
            nulls: NDArray[np.bool_] = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
            for row in np.flatnonzero(nulls).tolist():
                reasons.setdefault(row, f"column {field.name}: null in a required column")
    return reasons


def drop_rows(rows: pa.Table, places: dict[int, str]) -> pa.Table:
    """The other rows."""
    if not places:
        return rows
    keep = np.ones(rows.num_rows, np.bool_)
    keep[list(places)] = False
    return rows.filter(pa.array(keep))


def fit(rows: pa.Table, schema: TableSchema) -> tuple[pa.Table, dict[int, str]]:
    """The rows that conform to the schema, and why the others do not, by their place.

    The types of the columns are known to widen to the table's.
    """
    nulls = null_rows(rows, schema)
    filled = drop_rows(rows, nulls)
    try:
        return conform(filled, schema), nulls
    except SchemaMismatch:
        bad = find_bad(filled.num_rows, lambda part: conform(filled[part], schema))
    misfits = {at: _reason(filled.slice(at, 1), schema) for at in bad.tolist()}
    places = [at for at in range(rows.num_rows) if at not in nulls] if nulls else range(rows.num_rows)
    reasons = nulls | {places[at]: reason for at, reason in misfits.items()}
    return conform(drop_rows(filled, misfits), schema), dict(sorted(reasons.items()))


def _reason(row: pa.Table, schema: TableSchema) -> str:
    try:
        conform(row, schema)
    except SchemaMismatch as error:
        found = "" if error.found is None else f": {error.found}"
        return f"column {error.place}: {error.problem.removesuffix(' in row 0')}{found}"
    return "it does not conform"
