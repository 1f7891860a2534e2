"""Tables of thousands of columns: no step costs more than in proportion to them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import underlay
from tests.growth import growth
from underlay.cache.settings import memory_cache
from underlay.ingest.csv.columns import csv_columns
from underlay.ingest.csv.header import CsvHeader
from underlay.ingest.csv.records import Marks
from underlay.ingest.rows.reading import RowRules
from underlay.ingest.rows.schema_drift import check_names, with_table_names
from underlay.local.dataset.scanner import make_projection
from underlay.parquet.write.nan_statistics import find_nan
from underlay.schema.convert.arrow import from_arrow, to_arrow
from underlay.store.local import LocalStore
from underlay.store.testing.counting import CountingStore
from underlay.store.testing.wrapper import StoreMethod

WIDTHS = (400, 2800)
TIMES = WIDTHS[1] / WIDTHS[0]
MOST = 3 * TIMES
"""In proportion it is TIMES, in squares TIMES ** 2."""
NAME = "wide.floats"
_ROUNDS = count()
"""Names of columns are new in each round: what was worked out for a schema is kept."""


def floats(width: int, rows: int = 3) -> pa.Table:
    first = next(_ROUNDS)
    return pa.table({f"c{number}_{first}": np.arange(rows, dtype=np.float64) + number for number in range(width)})


def mixed(width: int, rows: int = 3) -> pa.Table:
    kinds = (
        pa.array([0.5] * rows),
        pa.array(range(rows)),
        pa.array(["text"] * rows),
        pa.array([{"a": 1, "b": [2.5]}] * rows),
    )
    first = next(_ROUNDS)
    return pa.table({f"c{number}_{first}": kinds[number % len(kinds)] for number in range(width)})


def test_an_append_costs_in_proportion_to_the_columns(tmp_path: Path):
    lake = underlay.connect(tmp_path / "lake")
    numbers = count()

    def prepare(width: int) -> Callable[[], object]:
        rows = mixed(width)
        table = lake.create_table(f"wide.t{next(numbers)}", rows.schema)
        return lambda: table.append(rows)

    assert growth(prepare, *WIDTHS, most=MOST) < MOST


def test_explaining_a_plan_asks_for_the_places_of_all_columns_at_once(tmp_path: Path):
    store = CountingStore(LocalStore(tmp_path / "lake"))
    width = 1000
    rows = floats(width)
    underlay.connect(store).create_table(NAME, rows.schema).append(rows)
    memory_cache().start_afresh()
    plan = underlay.connect(store).table(NAME).plan(where=f"{rows.column_names[7]} > 0")
    store.reset()
    assert f"of {width:,} columns" in plan.explain()
    assert [served.request.op for served in store.log] == [StoreMethod.GET_RANGES]


def test_a_wide_table_is_read_back(tmp_path: Path):
    rows = mixed(1500)
    lake = underlay.connect(tmp_path / "lake")
    table = lake.create_table(NAME, rows.schema)
    table.append(rows)
    assert table.scan().to_arrow().equals(rows)
    assert lake.sql(f"select * from {NAME}").to_arrow().num_columns == 1500


def _columns(width: int) -> Callable[[], object]:
    schema = from_arrow(floats(width).schema)
    return lambda: [schema.column(name) for name in schema.names]


def _projection(width: int) -> Callable[[], object]:
    schema = floats(width).schema
    return lambda: make_projection(schema.names, schema)


def _nans(width: int) -> Callable[[], object]:
    rows = floats(width)
    return lambda: find_nan(rows)


def _source_names(width: int) -> Callable[[], object]:
    reading = RowRules(schema=from_arrow(floats(width).schema))
    return lambda: check_names(reading, list(reading.schema.names), "here")


def _csv_columns(width: int) -> Callable[[], object]:
    rows = floats(width)
    reading = RowRules(schema=from_arrow(rows.schema))
    header = CsvHeader(marks=Marks(delimiter=",", quote='"'), names=reading.schema.names, line=1)
    columns = csv_columns(reading, header, "here")
    return lambda: columns.complete(rows)


def _own_names(width: int) -> Callable[[], object]:
    schema = from_arrow(floats(width).schema)
    found = to_arrow(schema)
    return lambda: with_table_names(found, schema.names)


@pytest.mark.parametrize("prepare", [_columns, _projection, _nans, _source_names, _own_names, _csv_columns])
def test_a_step_costs_in_proportion_to_the_columns(prepare: Callable[[int], Callable[[], object]]):
    assert growth(prepare, *WIDTHS, most=MOST) < MOST
