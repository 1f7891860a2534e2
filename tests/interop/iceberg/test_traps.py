"""The traps of statistics (docs/traps.md) through exports: no engine loses a row that its own full scan of the same
files has.

The rows, files and conditions are those of `tests/contract/pruning`; in the gate a part of the traps, another one the
next day.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.dataset as ds
import pytest
from pyiceberg.expressions.parser import parse
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException, expression_to_pyarrow
from pyiceberg.table import StaticTable

import underlay
from tests.contract.pruning import test_traps, test_traps_of_shape, traps
from tests.contract.worlds import World
from tests.gate import some
from tests.interop.engines import connect
from underlay.errors import NotExportable
from underlay.interop.exported.places import ExportPlaces
from underlay.store import open_store

pytestmark = pytest.mark.filterwarnings("ignore::polars.exceptions.PerformanceWarning")
MODULES = (test_traps, test_traps_of_shape)
TRAPS = {
    name: value
    for module in MODULES
    for name, value in vars(module).items()
    if name.startswith("test_t") and callable(value)
}
globals().update({name: TRAPS[name] for name in some(sorted(TRAPS), 23)})
ASKED = ("by_sql", "by_lake_sql", "by_scan")


@pytest.fixture(autouse=True)
def ask_exports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the tests ask a table, its export is asked too."""
    numbers = iter(range(10_000))

    def fresh() -> World:
        return World(open_store(tmp_path / f"lake {next(numbers)}"))

    for module in (traps, *MODULES):
        if hasattr(module, "fresh"):
            monkeypatch.setattr(module, "fresh", fresh)
        for name in ASKED:
            if hasattr(module, name):
                original = getattr(module, name)

                def ask(table: underlay.Table, wheres: Sequence[str], original: object = original) -> object:
                    compare(table, wheres)
                    return original(table, wheres)  # type: ignore[operator]

                monkeypatch.setattr(module, name, ask)


def compare(table: underlay.Table, wheres: Sequence[str]) -> None:
    """A condition finds in the export each row that the same engine finds by it in the files themselves, and in all
    rows of the export. Rows that an engine loses by the footers of the files are not lost by the export."""
    try:
        url = table.export().metadata_url or ""
    except NotExportable:
        return
    places = ExportPlaces(table.snapshot().store.url, None)
    keys = table.snapshot().keys
    files = [places.of_file(keys, file.location).removeprefix("file://") for file in table.snapshot().files()]
    in_duckdb(url, files, wheres)
    in_polars(url, files, wheres)
    in_pyiceberg(url, files, wheres)


def check(where: str, whole: Iterable[int], by_file: Iterable[int] | None, found: Iterable[int]) -> None:
    """`by_file` is None if the files cannot be asked as they are."""
    wanted = set(whole) if by_file is None else set(whole) & set(by_file)
    if not wanted <= set(found) or not set(found) <= set(whole):
        raise Differs(f"{where}: {sorted(found)} and not {sorted(wanted)}")


def in_duckdb(url: str, files: list[str], wheres: Sequence[str]) -> None:
    con = connect("avro", "iceberg")
    con.execute(f"create table everything as select * from iceberg_scan('{url}')")

    def ask(source: str, where: str) -> list[int] | None:
        try:
            return [n for (n,) in con.execute(f"select n from {source} where {where}").fetchall()]
        except duckdb.Error:
            return None  # a condition or a file that this engine does not have

    for where in wheres:
        whole = ask("everything", where)
        if whole is not None:
            check(where, whole, ask(f"read_parquet({files})", where), ask(f"iceberg_scan('{url}')", where) or ())


def in_polars(url: str, files: list[str], wheres: Sequence[str]) -> None:
    frame = pl.scan_iceberg(url, reader_override="native")
    everything = frame.collect().lazy()

    def ask(source: pl.LazyFrame, where: str) -> list[int] | None:
        try:
            return source.sql(f"select n from self where {where}").collect()["n"].to_list()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return None

    for where in wheres:
        whole = ask(everything, where)
        if whole is not None:
            check(where, whole, ask(pl.scan_parquet(files), where) if files else None, ask(frame, where) or ())


def in_pyiceberg(url: str, files: list[str], wheres: Sequence[str]) -> None:
    table = StaticTable.from_metadata(url)
    try:
        everything = table.scan().to_arrow()
    except UnsupportedPyArrowTypeException:
        return  # zones other than UTC, which exports note
    for where in wheres:
        with suppress(Exception):  # not a condition that pyiceberg reads, binds or has a kernel for
            condition = parse(where)
            mask = expression_to_pyarrow(bind(table.schema(), condition, case_sensitive=True))
            whole = everything.filter(mask)["n"].to_pylist()
            by_file = ds.dataset(files).to_table(filter=mask)["n"].to_pylist()
            found = table.scan(row_filter=condition).to_arrow()["n"].to_pylist()
            check(where, whole, by_file, found)


class Differs(BaseException):
    """Rows were lost; not an error that anything suppresses."""
