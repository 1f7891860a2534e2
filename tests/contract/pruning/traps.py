"""The same rows as files of several writers, asked through scans and SQL, against DuckDB on the rows themselves."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

import underlay
from tests.contract.worlds import World
from tests.gate import part
from tests.index.patching import opened
from tests.parquet.footers import written
from underlay.parquet.footer.footer import Footer
from underlay.parquet.footer.tail import read_tail, seal
from underlay.store import open_store

THIRDS = 3
"""With fewer conditions a kind of file would be asked none."""


def numbered(values: pa.Array | pa.Table) -> pa.Table:
    """Column `c`, or the given columns, with the number of each row as `n`."""
    data = values if isinstance(values, pa.Table) else pa.table({"c": values})
    return data.append_column("n", pa.array(range(data.num_rows), pa.int64()))


def by_duckdb(data: pa.Table) -> bytes:
    """The file that DuckDB writes of these rows."""
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        path = Path(folder) / "x.parquet"
        connection.register("data", data)
        connection.sql(f"copy (select * from data) to '{path}'")
        return path.read_bytes()


def patched(data: bytes, *patches: Callable[[Footer], Footer]) -> bytes:
    """A file whose footer was changed."""
    footer = opened(data)
    for patch in patches:
        footer = patch(footer)
    tail = read_tail(data, len(data))
    return data[: tail.footer_offset] + seal(footer.tree.write({}))


def own(data: pa.Table, *, block_rows: int = 2, schema: object = None, **options: object) -> underlay.Table:
    """A table that Underlay wrote."""
    table = fresh().create(schema or data.schema, block_rows=block_rows, **options)
    table.append(data)
    return table


def registered(schema: object, *files: bytes) -> underlay.Table:
    """A table of files that others wrote."""
    world = fresh()
    table = world.create(schema)
    table.register(*(world.put_parquet(file) for file in files), ignore_surplus=True)
    return table


def fresh() -> World:
    return World(open_store(f"memory://{os.urandom(8).hex()}"))


def tables(data: pa.Table, *, duckdb_too: bool = True) -> Iterable[underlay.Table]:
    """The rows in blocks of two and in one block, as Underlay, pyarrow and DuckDB write them."""
    yield own(data)
    yield own(data, block_rows=100)
    yield registered(data.schema, written(data))
    yield registered(data.schema, written(data, row_group_size=2, use_dictionary=False))
    if duckdb_too:
        yield registered(data.schema, by_duckdb(data))


def full(data: pa.Table, wheres: Sequence[str]) -> list[list[int]]:
    """What DuckDB finds in the rows when nothing is pushed down or proven."""
    with duckdb.connect() as connection:
        connection.sql("set disabled_optimizers = 'filter_pushdown,statistics_propagation'")
        connection.register("given", data)
        connection.sql("create table data as select * from given")
        return _sorted(connection.sql(_query("data", wheres)).fetchall(), len(wheres))


def by_sql(table: underlay.Table, wheres: Sequence[str]) -> list[list[int]]:
    """What DuckDB finds in the table's dataset, with everything pushed down."""
    with duckdb.connect() as connection:
        connection.register("t", table.dataset())
        return _sorted(connection.sql(_query("t", wheres)).fetchall(), len(wheres))


def by_lake_sql(table: underlay.Table, wheres: Sequence[str]) -> list[list[int]]:
    """What SQL on the lake finds."""
    found = underlay.connect(table._opened.lake.store).sql(_query(table.name, wheres)).to_arrow()
    return _sorted(zip(*(column.to_pylist() for column in found.columns), strict=True), len(wheres))


def _query(table: str, wheres: Sequence[str]) -> str:
    """All conditions in one query, each on a scan of its own."""
    return " union all ".join(f"select {at} as q, n from {table} where {where}" for at, where in enumerate(wheres))


def _sorted(rows: Iterable[tuple[int, int]], count: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(count)]
    for at, number in rows:
        found[at].append(number)
    return [sorted(numbers) for numbers in found]


def by_scan(table: underlay.Table, wheres: Sequence[str]) -> list[list[int]]:
    """What a scan finds."""
    found = [sorted(table.scan(["n"], where).to_arrow()["n"].to_pylist()) for where in wheres]
    for where, rows in zip(wheres, found, strict=True):
        assert table.plan(where=where).count() in (None, len(rows)), where
        assert table.count(where) == len(rows), where
    return found


def assert_safe(data: pa.Table, *wheres: str, given: Iterable[underlay.Table] | None = None, only_sql: bool = False):
    """Each condition finds the same rows in every table, pruned, as in all rows. In the gate each of our kinds of files
    is asked a third of them."""
    expected = dict(zip(wheres, full(data, wheres), strict=True))
    for number, table in enumerate(tables(data) if given is None else given):
        asked = part(wheres, number) if given is None and len(wheres) >= THIRDS else wheres
        right = {where: expected[where] for where in asked}
        if number == 0:
            assert dict(zip(wheres, by_lake_sql(table, wheres), strict=True)) == expected
        if not only_sql:
            assert dict(zip(asked, by_scan(table, asked), strict=True)) == right
        assert dict(zip(asked, by_sql(table, asked), strict=True)) == right
