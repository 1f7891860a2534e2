"""Are clean files brought into a table exactly once as fast as Spark writes them as plain Parquet without that?

`spark.read` and `write.parquet` of the same files, and appends of Delta Lake and Iceberg, are measured in one run, each
system in a JVM of its own with two cores, turn by turn in an order that rotates, on a Spark that all support (see
`bench.spark.environment`; without a network the peers are left out). All write zstd of level 1. Underlay makes
its table, remembers each source, and writes sidecars meanwhile; it reads few bytes in threads of the driver, the rest
in Spark's tasks. Warm: some rounds were run before, and files lie in the page cache. After every round the rows are
counted, and sums of their hashes compared with those of plain Parquet. Bytes read are those of the JVM, which reads no
source for Underlay; requests are those of our driver.

What no peer has is measured by itself: a second run over sources that are all known, which must make no Spark job, and
one new source among very many. Needs Linux.

    python -m bench.ingest [--scale tiny|small|full] [--repeat N] [--only csv quoted … one]

Writes bench/out/ingest.json and prints a table; ratios are to plain Parquet.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from msgspec.structs import replace as replace_in

from bench.common.timing import save
from bench.ingest.files import Sources, make_sources
from bench.ingest.known import Cost, add_some, ingest_again
from bench.ingest.worker import Check, Load
from bench.spark.__main__ import describe_run
from bench.spark.arguments import open_environment, parse_arguments
from bench.spark.cases import compare
from bench.spark.environment import Environment
from bench.spark.report import PLAIN, Compared, Target
from bench.spark.systems import PEERS, SYSTEMS
from bench.spark.worker import Remove, Reply
from bench.spark.workers import Workers, take_turns

_RATIO = 1.15
AGAIN, ONE = "again", "one"
CASES = ("csv", "quoted", "gzip", "json", "parquet", "many", AGAIN, ONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured."""

    sources: tuple[Sources, ...]
    known: Sources
    """Of a second run."""
    most_known: int
    rounds: int
    warm_ups: int


def _size(files: int, rows: int, part: int, *, many: int, known: int, most_known: int, rounds: int) -> Size:
    """So many files of CSV; of the other kinds, as many rows divided by `part`."""
    fewer = max(files // part, 1)
    return Size(
        sources=(
            Sources(name="csv", kind="csv", files=files, rows=rows),
            Sources(name="quoted", kind="csv", files=fewer, rows=rows, is_quoted=True),
            Sources(name="gzip", kind="csv.gz", files=fewer, rows=rows),
            Sources(name="json", kind="jsonl", files=fewer, rows=rows),
            Sources(name="parquet", kind="parquet", files=fewer, rows=rows),
            Sources(name="many", kind="csv", files=many, rows=500),
        ),
        known=Sources(name="known", kind="csv", files=known, rows=10),
        most_known=most_known,
        rounds=rounds,
        warm_ups=1 if rounds > 1 else 0,
    )


SIZES = {
    "tiny": _size(4, 40_000, 2, many=20, known=50, most_known=10_000, rounds=1),
    "small": _size(8, 100_000, 2, many=400, known=1_000, most_known=100_000, rounds=3),
    "full": _size(20, 500_000, 4, many=2_000, known=10_000, most_known=1_000_000, rounds=3),
}


def run(
    size: Size, environment: Environment, *, root: Path, only: Collection[str] = CASES
) -> Iterator[Compared | Cost]:
    """The chosen cases, as they are done. Source files are kept below `root`."""
    systems = tuple(name for name in SYSTEMS if environment.jars or name not in PEERS)
    with tempfile.TemporaryDirectory(dir=root, ignore_cleanup_errors=True) as written:
        workers = Workers(systems, environment, root, Path(written), module="bench.ingest.worker")
        try:
            for sources in size.sources:
                if sources.name in only:
                    size_bytes = _made(sources, root)
                    yield load(workers, sources, size_bytes, size)
            if AGAIN in only:
                _made(size.known, root)
                yield ingest_again(workers, size.known, rounds=size.rounds)
        finally:
            workers.close()
        if ONE in only:
            _say(f"measuring {ONE}")
            yield add_some(Path(written), size.most_known)


def load(workers: Workers, sources: Sources, size_bytes: int, size: Size) -> Compared:
    """Sources into a new table each time."""
    numbers = count()

    def bring(system: str, _: int) -> Reply:
        name = f"{sources.name}{next(numbers)}"
        reply = workers.ask(system, Load(name=name, sources=sources))
        found = workers.ask(system, Check(name=name))
        if found.values[0] != sources.row_count:
            raise AssertionError(f"{system}: {found.values[0]} rows of {sources.folder}")
        workers.ask(system, Remove(name=name))
        return replace_in(reply, values=found.values)

    ways = {system: partial(bring, system) for system in workers.systems}
    return compare(
        sources.name,
        f"{sources.row_count:,} rows of {sources.files:,} {sources.kind} files, {size_bytes >> 20:,} MiB, into a table",
        take_turns(ways, warm_ups=size.warm_ups, rounds=size.rounds),
        lambda medians: Target(words=f"{_RATIO:g} of plain", limit_seconds=_RATIO * medians[PLAIN]),
    )


def _made(sources: Sources, root: Path) -> int:
    _say(f"files of {sources.folder}")
    size_bytes = make_sources(sources, root)
    _say(f"measuring {sources.name}")
    return size_bytes


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def main() -> None:
    chosen = parse_arguments(__doc__, scales=SIZES, cases=CASES, folder="ingest")
    size = SIZES[chosen.scale]
    if chosen.repeat:
        size = replace(size, rounds=chosen.repeat)
    environment = open_environment(chosen.environment)
    chosen.source.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    for one in run(size, environment, root=chosen.source, only=chosen.only):
        print("\n".join(one.lines()), flush=True)
        found.append(one.to_dict())
        # After each case, so that a long run that is interrupted leaves what it found.
        path = save("ingest", describe_run(chosen.scale, asdict(size), environment, found))
    print(f"written to {path}")


if __name__ == "__main__":
    main()
