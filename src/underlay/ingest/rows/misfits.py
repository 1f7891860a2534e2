"""Finds values and rows that do not fit the table, and why."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from underlay.errors import SchemaMismatch
from underlay.ingest.rows.reading import RowRules
from underlay.schema.cast.conform import conform, unfit_rows
from underlay.schema.cast.find_bad import find_bad as find_places
from underlay.schema.cast.plain import takeable
from underlay.schema.table_schema import TableSchema

UNFIT = (pa.ArrowInvalid, ValueError, SchemaMismatch, OverflowError)
"""The errors of a conversion when a value does not fit the type."""


def find_bad(count: int, convert: Callable[[slice], object]) -> NDArray[np.int64]:
    """The positions of those of `count` values that `convert` refuses, ascending: O(bad · log(count / bad)) calls."""
    return find_places(count, convert, UNFIT)


def null_rows(rows: pa.Table, schema: TableSchema) -> dict[int, str]:
    """The rows with a null in a required column, by position, with the reason."""
    reasons: dict[int, str] = {}
    given = set(rows.schema.names)
    for field in schema.fields:
        if not field.is_required or field.name not in given:
            continue
        column = rows.column(field.name)
        if column.null_count:
            nulls: NDArray[np.bool_] = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
            for row in np.flatnonzero(nulls).tolist():
                reasons.setdefault(row, f"column {field.name}: null in a required column")
    return reasons


def drop_rows(rows: pa.Table, places: dict[int, str]) -> pa.Table:
    """The rows without these."""
    if not places:
        return rows
    keep = np.ones(rows.num_rows, np.bool_)
    keep[list(places)] = False
    columns = [
        pa.chunked_array([takeable(chunk) for chunk in column.chunks]) if column.num_chunks else column
        for column in rows.columns
    ]
    return pa.Table.from_arrays(columns, names=rows.column_names).filter(pa.array(keep))


def fit(rows: pa.Table, reading: RowRules, *, ignore_surplus: bool = False) -> tuple[pa.Table, dict[int, str]]:
    """The rows that conform to the schema and to the checks, and why the others do not, by position.

    The types of the columns are known to be castable to the table's.
    """
    fitting, reasons = _conforming(rows, reading.schema, ignore_surplus=ignore_surplus)
    failing = reading.checks.failures(fitting) if reading.checks is not None else {}
    if not failing:
        return fitting, reasons
    keep = np.ones(fitting.num_rows, np.bool_)
    keep[list(failing)] = False
    return fitting.filter(pa.array(keep)), with_reasons(reasons, failing, rows.num_rows)


def with_reasons(reasons: dict[int, str], others: dict[int, str], count: int) -> dict[int, str]:
    """Why rows do not fit, by position. Positions in `others` count only rows that have no reason yet."""
    places = [at for at in range(count) if at not in reasons] if reasons else range(count)
    return dict(sorted((reasons | {places[at]: reason for at, reason in others.items()}).items()))


def _conforming(rows: pa.Table, schema: TableSchema, *, ignore_surplus: bool) -> tuple[pa.Table, dict[int, str]]:
    nulls = null_rows(rows, schema)
    filled = drop_rows(rows, nulls)
    try:
        return conform(filled, schema, ignore_surplus=ignore_surplus), nulls
    except SchemaMismatch:
        misfits = unfit_rows(filled, schema, ignore_surplus=ignore_surplus)
    fitting = conform(drop_rows(filled, misfits), schema, ignore_surplus=ignore_surplus)
    return fitting, with_reasons(nulls, misfits, rows.num_rows)
