"""Engines of others, each asked about an exported table as its users ask it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from importlib import import_module
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
from pyiceberg.table import StaticTable

EXTENSIONS = ("httpfs", "avro", "iceberg", "delta")
Ask = Callable[[str, str], list[tuple[object, ...]]]
"""The rows of a query on `t`, the table with this metadata."""


def extension(name: str) -> Path:
    """An extension of DuckDB, which is a wheel here: nothing is downloaded."""
    folder = Path(import_module(f"duckdb_extension_{name}").__file__ or "").parent
    return next(folder.rglob("*.duckdb_extension"))


def connect(*names: str) -> duckdb.DuckDBPyConnection:
    """A connection with these extensions."""
    con = duckdb.connect(":memory:", config={"threads": 1, "autoload_known_extensions": False})
    for name in names:
        con.execute(f"load '{extension(name)}'")
    return con


@cache
def _iceberg() -> duckdb.DuckDBPyConnection:
    return connect("avro", "iceberg")


@cache
def _delta() -> duckdb.DuckDBPyConnection:
    return connect("delta")


def ask_duckdb(url: str, query: str) -> list[tuple[object, ...]]:
    return _iceberg().cursor().execute(query.replace("from t", f"from iceberg_scan('{url}') t")).fetchall()


def ask_pyiceberg(url: str, query: str) -> list[tuple[object, ...]]:
    """pyiceberg prunes and filters by the condition; what is left is asked the whole query again."""
    found = re.search(r" where (.*?)( group by .*| order by .*)?$", query)
    condition = found[1] if found is not None and is_for_pyiceberg(found[1]) else None
    table = StaticTable.from_metadata(url)
    rows = (table.scan(row_filter=condition) if condition else table.scan()).to_arrow()
    return in_memory(rows, query)


def is_for_pyiceberg(condition: str) -> bool:
    """Whether pyiceberg's parser reads the condition, and means by it what SQL does: NaN is no value to it."""
    return not re.search(r"pickup|fare|\blike\b|\(|::|not in|array|\bw\b", condition)


def ask_polars(url: str, query: str) -> list[tuple[object, ...]]:
    """Polars prunes and filters by the condition; DuckDB computes what is asked of these rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = pl.scan_iceberg(url)
        found = re.search(r" where (.*?)( group by .*| order by .*)?$", query)
        if found is not None and is_for_polars(found[1]):
            frame = frame.sql(f"select * from self where {found[1]}")
        return in_memory(frame.collect().to_arrow(), query)


def is_for_polars(condition: str) -> bool:
    """Whether Polars' SQL reads the condition."""
    return not re.search(r"\(|::|pos|\bu\b|uid|bin|array|\bw\b|\bd\b", condition)


def in_memory(rows: pa.Table, query: str) -> list[tuple[object, ...]]:
    """The query on rows, which are copied: Arrow's rules for NaN would apply where DuckDB pushes filters down."""
    con = connect()
    con.register("given", rows)
    con.execute("create table t as select * from given")
    return con.execute(query).fetchall()


def plain(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Rows to compare: sums are integers in one engine and decimals in another."""
    return [tuple(int(one) if isinstance(one, Decimal) and one == int(one) else one for one in row) for row in rows]


def ask_delta(path: str, query: str) -> list[tuple[object, ...]]:
    """deltalake, on DataFusion, reads the rows; DuckDB computes what is asked of them."""
    from deltalake import DeltaTable, QueryBuilder

    rows = QueryBuilder().register("t", DeltaTable(path)).execute("select * from t").read_all()
    return in_memory(pa.table(rows), query)


def ask_delta_duckdb(path: str, query: str) -> list[tuple[object, ...]]:
    """DuckDB with Delta's own kernel."""
    return _delta().cursor().execute(query.replace("from t", f"from delta_scan('{path}') t")).fetchall()


def ask_delta_polars(path: str, query: str) -> list[tuple[object, ...]]:
    """Polars, which prunes and filters by the condition."""
    frame = pl.scan_delta(path)
    found = re.search(r" where (.*?)( group by .*| order by .*)?$", query)
    if found is not None and is_for_polars(found[1]):
        frame = frame.sql(f"select * from self where {found[1]}")
    return in_memory(frame.collect().to_arrow(), query)


DELTA_ENGINES: dict[str, Ask] = {"deltalake": ask_delta, "duckdb": ask_delta_duckdb, "polars": ask_delta_polars}
ENGINES: dict[str, Ask] = {"duckdb": ask_duckdb, "pyiceberg": ask_pyiceberg, "polars": ask_polars}
