"""How long from a process that knows nothing to the first answer, in a world that may be far away?

    python -m bench.cold.world world.json "underlay sqlite" 10000 [--do ask|count|prepare]

Imports first, then times opening the table and asking for half a block by time. Prints JSON: the seconds of both and a
digest of the answer; with `count` what it asked of store and registry; `prepare` fills the registry from the store.
`bench.registry` starts it, once for each measurement.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench.common.questions import Question, digest, make_questions
from bench.systems.placed import PLACED, load_placed
from bench.systems.world import World

if TYPE_CHECKING:
    from bench.systems.placed_ours import PlacedUnderlay

ASK, COUNT, PREPARE = "ask", "count", "prepare"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a process says."""

    digest: list[float]
    """Of its answer."""
    seconds: float = 0.0
    import_seconds: float = 0.0
    work: dict[str, int] = {}
    """What it asked of the store."""
    statements: int = 0
    """What it asked of the registry."""


def run_cold(world: Path, system: str, files: int, *, cache: Path, do: str = ASK) -> Told:
    """What a fresh process says whose disk cache is below `cache`."""
    command = [sys.executable, "-m", "bench.cold.world", str(world), system, str(files), "--do", do]
    environment = {**os.environ, "UNDERLAY_CACHE_DIR": str(cache)}
    done = subprocess.run(command, capture_output=True, cwd=Path(__file__).parents[2], env=environment)
    if done.returncode:
        raise RuntimeError(f"{system}, {do}:\n{done.stderr.decode()[-4000:]}")
    return msgspec.json.decode(done.stdout, type=Told)


def ask(world: World, name: str, question: Question) -> Told:
    """The first answer, timed, by the first of the system's ways."""
    begin = time.perf_counter()
    system = load_placed(name)(world)
    imported = time.perf_counter()
    answer = next(iter(system.ways().values()))(question)
    answered = time.perf_counter()
    return Told(digest=digest(answer), seconds=answered - imported, import_seconds=imported - begin)


def count(world: World, name: str, question: Question) -> Told:
    """What the first answer asks of the store and of the registry."""
    from bench.common.measured import Work  # imports our store, which the peers' processes do not need
    from underlay.registry.follow import follower

    follower.READER_DELAY_SECONDS = inf  # a slow machine would count what is asked for the registry's sake later
    system = _ours(name)(world, is_counted=True)
    answer = system.scan(question)
    registry = system.lake.registry
    if system.counting is None:
        raise AssertionError("nothing is counted")
    statements = 0 if registry is None else registry.statement_count
    return Told(digest=digest(answer), work=asdict(Work.of(system.counting)), statements=statements)


def prepare(world: World, name: str, question: Question) -> Told:
    """Fill the registry from the store and ask once, as another machine would have before."""
    system = _ours(name)(world)
    registry = system.lake.registry
    if registry is not None:
        registry.restore()
    answer = system.scan(question)
    if registry is not None:
        registry.wait()
    return Told(digest=digest(answer))


def _ours(name: str) -> type[PlacedUnderlay]:
    from bench.systems.placed_ours import PlacedUnderlay  # imports Underlay

    found = load_placed(name)
    if not (isinstance(found, type) and issubclass(found, PlacedUnderlay)):
        raise AssertionError(f"{name} has no registry")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("world", type=Path)
    parser.add_argument("system", choices=PLACED)
    parser.add_argument("files", type=int)
    parser.add_argument("--do", choices=(ASK, COUNT, PREPARE), default=ASK)
    chosen = parser.parse_args()
    world = msgspec.json.decode(chosen.world.read_bytes(), type=World)
    question = make_questions(chosen.files)["time"]
    if chosen.do == COUNT:
        found = count(world, chosen.system, question)
    elif chosen.do == PREPARE:
        found = prepare(world, chosen.system, question)
    else:
        found = ask(world, chosen.system, question)
    sys.stdout.buffer.write(msgspec.json.encode(found))


if __name__ == "__main__":
    main()
