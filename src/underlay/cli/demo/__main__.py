"""`make demo`: ingests months of taxi trips on Spark, twice, queries them on Spark and in process, and serves the page.

Everything printed is measured in this run, and every answer is compared with the one expected from the trips.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from underlay.api.lake import Lake, connect
from underlay.api.table import Table
from underlay.cli.common.output import show_bytes, show_count
from underlay.cli.demo.page import PORT, can_serve, check_count, has_page, is_free, keep_open, serving
from underlay.cli.demo.trips import COLUMNS, JFK, Delivered, deliver
from underlay.errors import Inconsistent, InvalidRequest, Unavailable, UnderlayError, exit_code
from underlay.ingest.run.summary import Summary
from underlay.spark.start.installed import has_pyspark

NAME = "taxi.trips"
BLOCK_ROWS = 20_000
_MARK = ".underlay-demo"
_CENTS = 100
_WEEK = "tpep_pickup_datetime >= '2024-03-04' and tpep_pickup_datetime < '2024-03-11'"
_REJECTED = f"select source, line, reason from {NAME}_rejected order by source, line limit 5"


Rows = list[tuple[object, ...]]


class DemoEngine(NamedTuple):
    """The engine that ingests, and answers questions besides DuckDB."""

    take: Callable[[Path], Summary]
    ask: Callable[[str], Rows] | None
    words: str


class DemoQuestion(NamedTuple):
    """A question, in SQL that both Spark and DuckDB understand."""

    words: str
    sql: str
    where: str | None = None
    """The query's condition, if it skips blocks."""


QUESTIONS = (
    DemoQuestion(
        "Trips of each month, late ones included",
        f"select month(tpep_pickup_datetime) as month, count(*) as trips, round(avg(total_amount), 2) as average "
        f"from {NAME} group by 1 order by 1",
    ),
    DemoQuestion(
        "One week, from JFK",
        f"select day(tpep_pickup_datetime) as day, count(*) as trips, round(avg(tip_amount), 2) as tip "
        f"from {NAME} where {_WEEK} and PULocationID = {JFK} group by 1 order by 1",
        f"{_WEEK} and PULocationID = {JFK}",
    ),
    DemoQuestion(
        "The longest trips of an hour",
        f"select tpep_pickup_datetime as pickup, trip_distance as miles, total_amount as dollars from {NAME} "
        "where tpep_pickup_datetime >= '2024-05-17 18:00:00' and tpep_pickup_datetime < '2024-05-17 19:00:00' "
        "order by trip_distance desc, tpep_pickup_datetime limit 3",
        "tpep_pickup_datetime >= '2024-05-17 18:00:00' and tpep_pickup_datetime < '2024-05-17 19:00:00'",
    ),
)


def make_folder(folder: Path) -> None:
    """Make an empty folder. Replaces an earlier demo's, and refuses any other."""
    if folder.exists() and not (folder / _MARK).is_file():
        raise InvalidRequest(
            "the directory exists, and is not from an earlier demo", place=str(folder), hint="Name another directory."
        )
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        (folder / _MARK).touch()
    except OSError as error:
        raise Unavailable(f"the directory cannot be created: {error.strerror or error}", place=str(folder)) from error


def show(folder: Path) -> Iterator[str]:
    """The demonstration, a line at a time."""
    make_folder(folder)
    began = time.perf_counter()
    given = deliver(folder / "sources")
    yield f"1. Sources: {len(given.paths)} files of taxi trips in {folder / 'sources'}, made in {_since(began)}:"
    size = show_bytes(sum(path.stat().st_size for path in given.paths))
    yield f"   {size} of Parquet, CSV, gzipped CSV and JSON lines, {given.trips:,} trips. {given.late_trips:,} of them"
    yield f"   come late, {given.bad_lines} lines are not trips, and {given.broken.name} was cut short."
    yield ""
    lake = connect(folder / "lake")
    table = lake.create_table(
        NAME, COLUMNS, sort_by=["tpep_pickup_datetime"], properties={"block_rows": str(BLOCK_ROWS)}
    )
    began = time.perf_counter()
    engine = _start(lake)
    yield f"   ({engine.words}, {_since(began)})"
    yield ""
    yield from _ingest(lake, engine, folder / "sources", given)
    yield from _ask(lake, table, engine)
    yield from _look_back(table)
    yield from _serve_once(folder / "lake", given)
    yield from what_next(folder)


def _start(lake: Lake) -> DemoEngine:
    if not has_pyspark():
        words = "PySpark is not installed: this process does what Spark would"
        return DemoEngine(lambda sources: lake.ingest(NAME, f"{sources}/"), None, words)
    from underlay.spark import ingest, session

    spark = session(lake)
    return DemoEngine(
        lambda sources: ingest(NAME, f"{sources}/", lake=lake, spark=spark),
        lambda sql: [tuple(row) for row in spark.sql(sql).collect()],
        f"Spark {spark.version} was started on this machine",
    )


def _ingest(lake: Lake, engine: DemoEngine, sources: Path, given: Delivered) -> Iterator[str]:
    place = f"{NAME} in the lake {lake.url.removeprefix('file://')}"
    yield f"2. Ingest into {place}:"
    first = engine.take(sources)
    yield from _told(first)
    yield f"   {first.rejected_count} lines that are not trips went to {NAME}_rejected, with their places and reasons:"
    for source, line, reason in lake.sql(_REJECTED).fetchall():
        yield f"     {str(source).rpartition('/')[2]} line {line}: {reason}"
    yield ""
    yield "3. The same again:"
    again = engine.take(sources)
    yield f"   {again.known} of {again.sources} sources are in the table already: nothing was read, {_took(again)}"
    if again.row_count or again.versions:
        raise Inconsistent("rows were ingested twice", place=NAME, found=again.row_count)
    given.broken.write_bytes(given.whole)
    last = engine.take(sources)
    yield f"   {given.broken.name} arrives whole: {last.ingested} source, {last.row_count:,} rows, {_took(last)}"
    _check(lake, given)
    yield f"   The table has {given.trips:,} trips and ${given.total_amount:,.2f}: each good row of each source, once."
    yield ""


def _told(summary: Summary) -> Iterator[str]:
    read = f"{show_count(summary.ingested, 'source')}, {summary.row_count:,} rows, {show_bytes(summary.source_bytes)}"
    rate = summary.row_count / max(summary.seconds, 0.001)
    yield f"   {read} in {_took(summary)} ({rate:,.0f} rows/s), committed as version {max(summary.versions, default=0)}"
    for failure in summary.failures:
        yield f"   not ingested: {failure.uri.rpartition('/')[2]}: {failure.reason}"


def _check(lake: Lake, given: Delivered) -> None:
    """Raises Inconsistent unless the table has the rows of all sources."""
    rows = lake.sql(f"select count(*), sum(total_amount) from {NAME}").fetchall()
    trips, amount = rows[0]
    if trips != given.trips or round(_CENTS * float(amount)) != round(_CENTS * given.total_amount):
        raise Inconsistent("the table does not hold the trips of its sources", expected=given.trips, found=trips)


def _ask(lake: Lake, table: Table, engine: DemoEngine) -> Iterator[str]:
    engines = "Spark, and in process on DuckDB" if engine.ask is not None else "DuckDB, in process"
    yield f"4. Questions, answered by {engines}:"
    for question in QUESTIONS:
        yield ""
        yield f"   {question.words}"
        began = time.perf_counter()
        rows: Rows = [tuple(row) for row in lake.sql(question.sql).fetchall()]
        times = [f"in process {_since(began)}"]
        if engine.ask is not None:
            began = time.perf_counter()
            same = engine.ask(question.sql)
            times.append(f"Spark {_since(began)}")
            if not _are_same(same, rows):
                raise Inconsistent("Spark gives another answer", place=question.sql, expected=rows[:3], found=same[:3])
        yield from (f"     {'   '.join(map(str, row))}" for row in rows)
        if question.where is not None:
            plan = table.plan(where=question.where)
            yield (
                f"     read {plan.kept.blocks} of {plan.total.blocks} blocks, the others were left out by metadata"
                f" alone; {', '.join(times)}"
            )
        else:
            yield f"     {', '.join(times)}"
    yield ""


def _are_same(some: Rows, others: Rows) -> bool:
    """Whether rows are equal up to a cent: engines add floats in different orders, and so round some averages
    differently.
    """
    pairs = [pair for row, other in zip(some, others, strict=False) for pair in zip(row, other, strict=True)]
    is_equal = (
        abs(left - right) < 2 / _CENTS if isinstance(left, float) and isinstance(right, float) else left == right
        for left, right in pairs
    )
    return len(some) == len(others) and all(is_equal)


def _look_back(table: Table) -> Iterator[str]:
    yield "5. Every run and every commit is on record:"
    for version in table.history(5):
        files = show_count(version.file_count, "file")
        yield f"     version {version.version}: {version.operation}, then {version.row_count:,} rows in {files}"
    yield ""


def _serve_once(lake: Path, given: Delivered) -> Iterator[str]:
    yield "6. SQL over HTTP, and a page in the browser:"
    if not can_serve():
        yield '     the libraries of the server are not installed: pip install "underlay[server]"'
        yield ""
        return
    with serving(lake) as (url, _):
        check_count(url, NAME, given.trips)
        page = "sent the page and" if has_page(url) else "has no page (make page builds it), but it"
    yield f"     {url} {page} counted {given.trips:,} trips; it was stopped again."
    yield "     To open the page: make demo SERVE=1; or serve the lake as it is, and open the address that it says:"
    yield f"       {_command()} serve --lake {lake}"
    yield ""


def _keep_serving(lake: Path) -> None:
    """Until the server ends, or Ctrl-C. Says the address of the page."""
    with serving(lake, PORT if is_free(PORT) else 0) as (url, server):
        print(f"\nThe page is at {url}/ and Ctrl-C stops it.", flush=True)
        keep_open(server)


def _command() -> Path:
    command = Path(sys.executable).with_name("underlay")
    return command.relative_to(Path.cwd()) if command.is_relative_to(Path.cwd()) else command


def what_next(folder: Path) -> Iterator[str]:
    """Commands to try on the lake that the demo leaves."""
    shown = _command()
    at = f"--lake {folder / 'lake'}"
    yield "Try next:"
    yield f'  {shown} sql "select PULocationID, count(*) from {NAME} group by 1 order by 2 desc limit 5" {at}'
    yield f'  {shown} plan {NAME} --where "{_WEEK}" {at}'
    yield f"  {shown} ingest {NAME} {folder / 'sources'}/ {at}"
    yield f'  {shown} sql "select reason, count(*) from {NAME}_rejected group by 1" {at}'
    yield f"  {shown} history {NAME} {at}"
    yield f"  {shown} jobs {NAME} {at}"
    yield "Real trips: docs/guide/taxi.md says where they are and how to ingest them."


def _since(began: float) -> str:
    return f"{time.perf_counter() - began:.1f} s"


def _took(summary: Summary) -> str:
    return f"{summary.seconds:.2f} s" if summary.seconds < 1 else f"{summary.seconds:.1f} s"


def main(arguments: list[str]) -> int:
    """Run the demo in the given directory, `demo-data` by default; with --serve the page stays open. Returns an exit
    code.
    """
    stays = "--serve" in arguments
    folders = [argument for argument in arguments if argument != "--serve"]
    if len(folders) > 1 or any(argument.startswith("-") for argument in folders):
        print("usage: python -m underlay.cli.demo [--serve] [DIRECTORY]   (default: demo-data)", file=sys.stderr)
        return exit_code(InvalidRequest(""))
    folder = Path(folders[0] if folders else "demo-data")
    try:
        for line in show(folder):
            print(line, flush=True)
        if stays:
            _keep_serving(folder / "lake")
    except UnderlayError as error:
        print(f"error: {error}", file=sys.stderr)
        return exit_code(error)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
