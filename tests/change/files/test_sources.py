"""Every verb takes rows from everything that rows can be read from."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from uuid import uuid4

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import underlay as ul
from underlay.errors import InvalidRequest, SchemaMismatch

ROWS = [{"id": 2, "v": "b"}, {"v": "c", "id": 3}]
TABLE = pa.table({"id": [2, 3], "v": ["b", "c"]})


class Stream:
    """Nothing but a stream."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


SOURCES = {
    "dicts": lambda: ROWS,
    "tuple of dicts": lambda: tuple(ROWS),
    "table": lambda: TABLE,
    "batches": lambda: TABLE.to_batches(),
    "reader": lambda: TABLE.to_reader(),
    "dataset": lambda: ds.dataset(TABLE),
    "scanner": lambda: ds.dataset(TABLE).scanner(),
    "polars": lambda: pl.DataFrame(TABLE),
    "lazy": lambda: pl.DataFrame(TABLE).lazy().filter(pl.col("id") > 0),
    "pandas": lambda: pd.DataFrame(ROWS),
    "stream": Stream,
}
VERBS = {
    "append": (lambda table, rows: table.append(rows), [(1, "a"), (2, "b"), (2, "x"), (3, "c")]),
    "upsert": (lambda table, rows: table.upsert(rows), [(1, "a"), (2, "b"), (3, "c")]),
    "delete": (lambda table, rows: table.delete(rows=rows), [(1, "a")]),
    "overwrite": (lambda table, rows: table.overwrite(rows, "id = 2"), [(1, "a"), (2, "b"), (3, "c")]),
    "merge": (
        lambda table, rows: table.merge(rows, "target.id = source.id").when_not_matched_insert_all().execute(),
        [(1, "a"), (2, "x"), (3, "c")],
    ),
}


@pytest.fixture
def table() -> ul.Table:
    lake = ul.connect(f"memory://{uuid4()}", registry="none")
    return lake.create_table("d.t", data=pa.table({"id": [1, 2], "v": ["a", "x"]}), key=["id"])


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_every_source(table, source, verb):
    act, expected = VERBS[verb]
    act(table, SOURCES[source]())
    assert sorted(row for row in zip(*table.to_arrow().to_pydict().values(), strict=True)) == expected


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("source", [5, "rows", [1, 2], [ROWS[0], 5], object(), {"id": 1}, iter(ROWS), [TABLE, ROWS]])
def test_anything_else_is_refused_and_changes_nothing(table, source, verb):
    with pytest.raises(InvalidRequest, match="not rows that Arrow can read"):
        VERBS[verb][0](table, source)
    assert table.version == 1


def test_a_dict_may_lack_keys_and_the_first_need_not_have_all():
    table = ul.connect(f"memory://{uuid4()}", registry="none").create_table(
        "d.t",
        pa.schema([("id", pa.int32()), ("d", pa.decimal128(5, 2)), ("day", pa.date32()), ("l", pa.list_(pa.int8()))]),
    )
    table.append([{"id": 1}, {"id": 2, "d": Decimal("1.5"), "l": [1, None]}, {"day": date(2024, 1, 31), "id": None}])
    assert table.to_arrow().to_pylist() == [
        {"id": 1, "d": None, "day": None, "l": None},
        {"id": 2, "d": Decimal("1.50"), "day": None, "l": [1, None]},
        {"id": None, "d": None, "day": date(2024, 1, 31), "l": None},
    ]


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([{"id": 1}, {"id": "x"}], SchemaMismatch),
        ([{"id": 2**70}], SchemaMismatch),
        ([{1: 2}], InvalidRequest),
        ([{"id": object()}], SchemaMismatch),
        ([{"id": 1.5, "v": "a"}], SchemaMismatch),
    ],
)
def test_values_that_do_not_fit_are_named(table, rows, error):
    with pytest.raises(error):
        table.append(rows)
    assert table.version == 1


def test_no_dicts_are_no_rows_of_any_verb(table):
    assert table.append([]).version == 1
    assert table.upsert([]).version == 1
    assert table.delete(rows=[]).version == 1
    merge = table.merge([], "target.id = source.id").when_matched_delete().when_not_matched_insert_all()
    assert merge.execute().version == 1
    assert table.merge([], "target.id = source.id").when_not_matched_by_source_delete().execute().rows_deleted == 2
    assert table.upsert(pa.table({"id": pa.array([], pa.int64()), "v": pa.array([], pa.string())})).rows_matched == 0
