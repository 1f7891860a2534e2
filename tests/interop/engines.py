"""Engines of others, each asked about an exported table as its users ask it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial
from importlib import import_module
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
from pyiceberg.table import StaticTable

EXTENSIONS = ("httpfs", "avro", "iceberg", "delta")
Kept = dict[str, duckdb.DuckDBPyConnection]
Ask = Callable[..., list[tuple[object, ...]]]
"""The rows of a query on `t`, the table at a URL."""


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


def ask_duckdb(url: str, query: str, kept: Kept | None = None) -> list[tuple[object, ...]]:
    return _iceberg().cursor().execute(query.replace("from t", f"from iceberg_scan('{url}') t")).fetchall()


def condition_of(query: str, is_for: Callable[[str], bool]) -> str | None:
    """The condition of a query, if the engine reads it."""
    found = re.search(r" where (.*?)( group by .*| order by .*)?$", query)
    return found[1] if found is not None and is_for(found[1]) else None


def answer(
    read: Callable[[str | None], pa.Table], condition: str | None, query: str, kept: Kept | None
) -> list[tuple[object, ...]]:
    """The engine prunes and filters by the condition; DuckDB asks what it finds the whole query. `kept` has all rows of
    a table that does not change."""
    if condition is not None or kept is None:
        return in_memory(read(condition), query)
    if "all" not in kept:
        kept["all"] = with_rows(read(None))
    return kept["all"].execute(query).fetchall()


def ask_pyiceberg(url: str, query: str, kept: Kept | None = None) -> list[tuple[object, ...]]:
    table = StaticTable.from_metadata(url)

    def read(condition: str | None) -> pa.Table:
        return (table.scan(row_filter=condition) if condition else table.scan()).to_arrow()

    return answer(read, condition_of(query, is_for_pyiceberg), query, kept)


def is_for_pyiceberg(condition: str) -> bool:
    """Whether pyiceberg's parser reads the condition, and means by it what SQL does: NaN is no value to it."""
    return not re.search(r"pickup|fare|\blike\b|\(|::|not in|array|\bw\b", condition)


def ask_polars(url: str, query: str, kept: Kept | None = None) -> list[tuple[object, ...]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = pl.scan_iceberg(url)
        return answer(partial(_collected, frame), condition_of(query, is_for_polars), query, kept)


def _collected(frame: pl.LazyFrame, condition: str | None) -> pa.Table:
    if condition is not None:
        frame = frame.sql(f"select * from self where {condition}")
    return frame.collect().to_arrow()


def is_for_polars(condition: str) -> bool:
    """Whether Polars' SQL reads the condition."""
    return not re.search(r"\(|::|pos|\bu\b|uid|bin|array|\bw\b|\bd\b", condition)


def in_memory(rows: pa.Table, query: str) -> list[tuple[object, ...]]:
    """The query on rows in memory."""
    return with_rows(rows).execute(query).fetchall()


def with_rows(rows: pa.Table) -> duckdb.DuckDBPyConnection:
    """A connection with the rows as `t`. They are copied: Arrow's rules for NaN would apply where DuckDB pushes filters
    down."""
    con = connect()
    con.register("given", rows)
    con.execute("create table t as select * from given")
    return con


def plain(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Rows to compare: sums are integers in one engine and decimals in another."""
    return [tuple(int(one) if isinstance(one, Decimal) and one == int(one) else one for one in row) for row in rows]


def ask_delta(path: str, query: str, kept: Kept | None = None) -> list[tuple[object, ...]]:
    """deltalake, on DataFusion."""
    from deltalake import DeltaTable, QueryBuilder

    def read(condition: str | None) -> pa.Table:
        where = "" if condition is None else f" where {condition}"
        return pa.table(QueryBuilder().register("t", DeltaTable(path)).execute(f"select * from t{where}").read_all())

    return answer(read, condition_of(query, is_for_polars), query, kept)


def ask_delta_duckdb(path: str, query: str, kept: Kept | None = None) -> list[tuple[object, ...]]:
    """DuckDB with Delta's own kernel."""
    return _delta().cursor().execute(query.replace("from t", f"from delta_scan('{path}') t")).fetchall()


def ask_delta_polars(path: str, query: str, kept: Kept | None = None) -> list[tuple[object, ...]]:
    return answer(partial(_collected, pl.scan_delta(path)), condition_of(query, is_for_polars), query, kept)


DELTA_ENGINES: dict[str, Ask] = {"deltalake": ask_delta, "duckdb": ask_delta_duckdb, "polars": ask_delta_polars}
ENGINES: dict[str, Ask] = {"duckdb": ask_duckdb, "pyiceberg": ask_pyiceberg, "polars": ask_polars}
