"""`make demo`: sidecars for a small generated data set, which row groups filters skip, and that no row is lost.

Then a table: commits, a repeated one, what a plan leaves out, SQL, and older versions.

The data is seeded, so that every run makes the same files. Everything printed is measured in this run.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from underlay.cli.demo_table import show_table, table_commands
from underlay.cli.output import show_bytes, show_count
from underlay.errors import Inconsistent, InvalidRequest, Unavailable, UnderlayError, exit_code
from underlay.pm.build import from_parquet
from underlay.pm.file import create_sidecar, read_sidecar
from underlay.pm.prune import chunk_ranges, prune
from underlay.pm.read import read_rows
from underlay.pm.statistics import fixed_bounds
from underlay.pm.verify import verify
from underlay.prune.where import parse_where

DAYS = 6
ROWS_PER_DAY = 48_000
ROWS_PER_GROUP = 2_000
COLUMNS = ("ts", "order_id", "symbol", "venue", "price", "size")
SYMBOLS = ["AAPL", "AMZN", "GOOG", "META", "MSFT", "NVDA", "ORCL", "TSLA"]
VENUES = ["ARCA", "BATS", "IEX", "NSDQ"]
_SEED = 20_240_101
_FIRST_DAY = datetime(2024, 1, 1, tzinfo=UTC)
_MARK = ".underlay-demo"
_SHOWN_REASONS = 3
_REPEATS = 20


class Filter(NamedTuple):
    """A question, as SQL for Underlay and as an expression for Arrow, which answers it by reading everything."""

    where: str
    expression: pc.Expression


class Found(NamedTuple):
    """What a filter left of all files, and the rows that were read through the sidecars."""

    rows: pa.Table
    kept: int
    row_groups: int
    read_bytes: int
    total_bytes: int
    reasons: list[str]


def make_trades(folder: Path) -> list[Path]:
    """One Parquet file a day, sorted by time, with a bloom filter on `order_id`."""
    random = np.random.default_rng(_SEED)
    paths = []
    for day in range(DAYS):
        begin = int((_FIRST_DAY + timedelta(days=day)).timestamp() * 1_000_000)
        table = pa.table(
            {
                "ts": pa.array(np.sort(random.integers(begin, begin + 86_400_000_000, ROWS_PER_DAY))).cast(
                    pa.timestamp("us", "UTC")
                ),
                "order_id": pa.array(random.integers(0, 2**62, ROWS_PER_DAY)),
                "symbol": pa.array(random.choice(SYMBOLS, ROWS_PER_DAY)),
                "venue": pa.array(random.choice(VENUES, ROWS_PER_DAY)),
                "price": pa.array(np.round(100 + day + np.cumsum(random.normal(0, 0.02, ROWS_PER_DAY)), 2)),
                "size": pa.array(random.integers(1, 500, ROWS_PER_DAY)),
            }
        )
        path = folder / f"trades-{_FIRST_DAY + timedelta(days=day):%Y-%m-%d}.parquet"
        options = {"order_id": {"ndv": ROWS_PER_GROUP, "fpp": 0.001}}
        pq.write_table(table, path, row_group_size=ROWS_PER_GROUP, bloom_filter_options=options)
        paths.append(path)
    return paths


def make_folder(folder: Path) -> None:
    """An empty folder; an earlier demo's is replaced, anything else is left alone."""
    if folder.exists() and not (folder / _MARK).is_file():
        raise InvalidRequest(
            "this is there already and no earlier demo made it", place=str(folder), hint="Name another directory."
        )
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        (folder / _MARK).touch()
    except OSError as error:
        raise Unavailable(f"the directory cannot be made: {error.strerror or error}", place=str(folder)) from error


def sidecar_of(path: Path) -> Path:
    """Where a data file's sidecar is."""
    return path.with_suffix(".pm")


def find(paths: list[Path], question: Filter) -> Found:
    """The matching rows, read through the sidecars from the row groups that may hold one."""
    where = parse_where(question.where)
    tables, reasons = [], []
    kept = row_groups = read_bytes = total_bytes = 0
    for path in paths:
        sidecar = read_sidecar(sidecar_of(path))
        verdict = prune(sidecar, where)
        left = np.flatnonzero(verdict.kept).tolist()
        tables.append(read_rows(sidecar, path, row_groups=left).filter(question.expression))
        reasons += [f"{path.name} row group {i}: {verdict.reason(i)}" for i in np.flatnonzero(~verdict.kept).tolist()]
        kept += len(left)
        row_groups += sidecar.row_group_count
        read_bytes += sum(r.size_bytes for r in chunk_ranges(sidecar, left))
        total_bytes += sum(r.size_bytes for r in chunk_ranges(sidecar, range(sidecar.row_group_count)))
    return Found(pa.concat_tables(tables), kept, row_groups, read_bytes, total_bytes, reasons)


def questions(paths: list[Path]) -> list[Filter]:
    """Three filters: a time range, the lowest prices, and one order, which only a bloom filter can place."""
    begin, end = _FIRST_DAY + timedelta(days=2, hours=9), _FIRST_DAY + timedelta(days=2, hours=10)
    lowest = min(pc.min(pq.read_table(path, columns=["price"])["price"]).as_py() for path in paths)
    price = round(lowest + 0.5, 2)
    order = pq.read_table(paths[-1], columns=["order_id"])["order_id"][ROWS_PER_DAY // 2].as_py()
    during = (pc.field("ts") >= pa.scalar(begin)) & (pc.field("ts") < pa.scalar(end))
    return [
        Filter(
            f"ts >= '{begin:%Y-%m-%d %H:%M}' and ts < '{end:%Y-%m-%d %H:%M}' and symbol = 'NVDA'",
            during & (pc.field("symbol") == "NVDA"),
        ),
        Filter(f"price < {price}", pc.field("price") < price),
        Filter(f"order_id = {order}", pc.field("order_id") == order),
    ]


def answer(paths: list[Path]) -> Iterator[str]:
    """What each filter skips and reads. Raises Inconsistent if a row that a full scan finds is missing."""
    for question in questions(paths):
        found = find(paths, question)
        scanned = pa.concat_tables(pq.read_table(path, schema=found.rows.schema) for path in paths)
        if not found.rows.equals(scanned.filter(question.expression)):
            raise Inconsistent("the pruned answer is not the full scan's", place=question.where)
        yield f'  where "{question.where}"'
        yield (
            f"    reads {found.kept} of {found.row_groups} row groups,"
            f" {show_bytes(found.read_bytes)} of {show_bytes(found.total_bytes)};"
            f" {show_count(found.rows.num_rows, 'row')} found, the same as in a full scan"
        )
        step = max(1, len(found.reasons) // _SHOWN_REASONS)
        for reason in found.reasons[::step][:_SHOWN_REASONS]:
            yield f"    skipped {reason}"
        yield ""


def best_ms(act: Callable[[], object]) -> float:
    """The fastest of several runs, in milliseconds: files are in the page cache."""
    best = float("inf")
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        act()
        best = min(best, time.perf_counter() - begin)
    return best * 1000


def compare_speed(paths: list[Path]) -> str:
    """Reading min and max of `ts` in every row group: from the sidecars, and from the footers with pyarrow."""

    def from_sidecars() -> list[tuple[object, object]]:
        found: list[tuple[object, object]] = []
        for path in paths:
            bounds = fixed_bounds(read_sidecar(sidecar_of(path)), 0, "<i8")
            found += zip(bounds.minimum.tolist(), bounds.maximum.tolist(), strict=True)
        return found

    def from_footers() -> list[tuple[object, object]]:
        found: list[tuple[object, object]] = []
        for path in paths:
            metadata = pq.read_metadata(path)
            for row_group in range(metadata.num_row_groups):
                statistics = metadata.row_group(row_group).column(0).statistics
                assert statistics is not None
                found.append((statistics.min_raw, statistics.max_raw))
        return found

    if from_sidecars() != from_footers():
        raise Inconsistent("the sidecars' bounds of ts are not the footers'", place=str(paths[0].parent))
    ours, theirs = best_ms(from_sidecars), best_ms(from_footers)
    return (
        f"  min and max of ts in all row groups of {len(paths)} files: {ours:.2f} ms from sidecars,"
        f" {theirs:.2f} ms from footers with pyarrow ({theirs / ours:.1f}×)"
    )


def show(folder: Path) -> Iterator[str]:
    """The demonstration, a line at a time."""
    make_folder(folder)
    paths = make_trades(folder)
    data_bytes = sum(path.stat().st_size for path in paths)
    yield f"1. Data: {len(paths)} Parquet files of {ROWS_PER_DAY} trades each in {folder}, {show_bytes(data_bytes)}"
    yield f"   ({', '.join(COLUMNS)}; sorted by ts; {ROWS_PER_GROUP} rows a row group; bloom filters on order_id)"
    yield ""
    begin = time.perf_counter()
    sidecars = [from_parquet(path) for path in paths]
    took_ms = (time.perf_counter() - begin) * 1000
    for path, sidecar in zip(paths, sidecars, strict=True):
        create_sidecar(sidecar_of(path), sidecar)
    size = show_bytes(sum(map(len, sidecars)))
    yield f"2. Sidecars: one .pm beside each file, built from its footer: {size} in {took_ms:.0f} ms"
    for path in paths:
        for problem in verify(sidecar_of(path), path, deep=True):
            raise problem
    yield "   verified: checksums, every byte range and statistic against the footer and the decoded values"
    yield ""
    yield "3. Filters, decided from the sidecars alone:"
    yield ""
    yield from answer(paths)
    yield "4. Speed:"
    yield compare_speed(paths)
    yield ""
    yield from show_table(folder / "lake")
    yield from what_next(paths)


def what_next(paths: list[Path]) -> Iterator[str]:
    """Commands that work on the files that are left."""
    folder, first, second = paths[0].parent, sidecar_of(paths[0]), sidecar_of(paths[1])
    command = Path(sys.executable).with_name("underlay")
    shown = command.relative_to(Path.cwd()) if command.is_relative_to(Path.cwd()) else command
    yield "Try next:"
    yield from (f"  {shown} {words}" for words in table_commands(folder / "lake"))
    yield f"  {shown} pm show {first} --column ts"
    yield f"  {shown} pm prune {folder}/*.pm --where \"ts < '2024-01-01 06:00' and price > 100\""
    yield f"  {shown} pm read {second} --parquet {paths[1]} --row-groups 3 --columns ts,symbol,price"
    yield f"  {shown} pm verify {folder}/*.pm --parquet {folder} --deep"


def main(arguments: list[str]) -> int:
    """Show it in the directory given, `demo-data` by default; an exit code."""
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        print("usage: python -m underlay.cli.demo [DIRECTORY]   (default: demo-data)", file=sys.stderr)
        return exit_code(InvalidRequest(""))
    try:
        for line in show(Path(arguments[0] if arguments else "demo-data")):
            print(line, flush=True)
    except UnderlayError as error:
        print(f"error: {error}", file=sys.stderr)
        return exit_code(error)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
