"""A soak: processes, threads and forks change a local lake and one on S3 for minutes, while the table is compacted,
expired and swept, processes are killed, the wire cuts requests and responses, the registries are killed, frozen and
deleted, clocks are an hour off, and the disk is filled. Nothing is lost, nothing is doubled, and what a process holds
of the machine stays as it was.

`UNDERLAY_SOAK_SECONDS` says how long; 20 minutes in `make test-all`.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

import pytest

import underlay as ul
from tests.gate import SEED
from tests.maintain.audit import audit
from tests.registry.servers import PostgresServer
from tests.soak.actor import DIFFERENT, NAME, PROPERTIES, SCHEMA, Owner, Role
from tests.soak.stored import check_chain, read_rows
from tests.store.proxy import Action, Answer, DropRequest, DropResponse, Forward, Seen, proxy
from tests.store.servers import S3Server
from underlay.store.open import open_store
from underlay.store.store import Store

REPOSITORY = Path(__file__).parents[2]
SECONDS = float(os.environ.get("UNDERLAY_SOAK_SECONDS", "1200"))
FAULTS: tuple[Action, ...] = (DropResponse(), DropRequest(), Answer(503, "<Code>SlowDown</Code>"))
DISK_BYTES = 3 << 30
HOUR = 3600


@dataclass
class Actor:
    """A process of `tests.soak.actor`, which is started again after a kill unless it is to live."""

    role: Role
    log: Path
    lives: bool = False
    process: subprocess.Popen[bytes] | None = None
    kills: int = 0

    def start(self) -> None:
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.soak.actor", json.dumps(asdict(self.role))],
                cwd=REPOSITORY,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def kill(self) -> None:
        """As a crash would, and start it again."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.kills += 1
        self.start()

    def samples(self) -> list[dict[str, int]]:
        lines = self.log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith('{"descriptors"')]

    def text(self) -> str:
        return "\n".join(line for line in self.log.read_text().splitlines() if not line.startswith('{"descriptors"'))


@dataclass
class World:
    """One lake, its processes, and what may happen to it."""

    name: str
    store: Store
    actors: list[Actor] = field(default_factory=list)
    disasters: list[Callable[[random.Random], None]] = field(default_factory=list)

    def watch(self) -> None:
        """That no process ended by itself."""
        for actor in self.actors:
            assert actor.process is not None
            code = actor.process.poll()
            assert code is None, f"{self.name}: {'wrong rows' if code == DIFFERENT else code}\n{actor.text()[-3000:]}"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path | None]:
    """A file system of its own that can be filled; None where this user may not mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        yield None
        return
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.storm
@pytest.mark.timeout(SECONDS + 3600)
def test_nothing_is_lost_doubled_or_leaked(
    tmp_path: Path, small_disk: Path | None, seaweedfs: S3Server, postgres: PostgresServer
):
    chance = random.Random(SEED)
    stop = tmp_path / "stop"

    def choose(seen: Seen) -> Action:
        return chance.choice(FAULTS) if chance.random() < 0.03 and not stop.exists() else Forward()

    with proxy(seaweedfs.endpoint, choose) as front:
        worlds = [
            local_world(tmp_path, small_disk, stop),
            s3_world(tmp_path, seaweedfs, front.endpoint, postgres, stop),
        ]
        try:
            for world in worlds:
                ul.connect(world.store).create_table(NAME, SCHEMA, key=["id"], properties=PROPERTIES)
                for actor in world.actors:
                    actor.start()
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                time.sleep(chance.random() * 2)
                world = chance.choice(worlds)
                world.watch()
                chance.choice(world.disasters)(chance)
            stop.touch()
            for world in worlds:
                for actor in world.actors:
                    assert actor.process is not None
                    assert actor.process.wait() == 0, f"{world.name}\n{actor.text()[-3000:]}"
        finally:
            for world in worlds:
                for actor in world.actors:
                    if actor.process is not None:
                        actor.process.kill()
                        actor.process.wait()
    for world in worlds:
        check_rows(world)
        for actor in world.actors:
            if actor.lives:
                check_flat(actor.samples())
    print({world.name: [actor.kills for actor in world.actors] for world in worlds})


def local_world(tmp_path: Path, small_disk: Path | None, stop: Path) -> World:
    folder = (small_disk or tmp_path) / "lake"
    world = World("local", open_store(folder))
    registry = f"sqlite:///{folder}/_registry/registry.sqlite"
    add_actors(world, tmp_path, stop, str(folder), {}, registry, forks=True)

    def lose_registry(chance: random.Random) -> None:
        for file in (folder / "_registry").glob("registry.sqlite*"):
            with suppress(FileNotFoundError):
                file.unlink()

    def fill_disk(chance: random.Random) -> None:
        assert small_disk is not None
        ballast = small_disk / "ballast"
        with suppress(OSError), ballast.open("wb") as out:
            while True:
                out.write(bytes(1 << 22))
                out.flush()
        time.sleep(chance.random() * 3)
        ballast.unlink()

    world.disasters.append(lose_registry)
    if small_disk is not None:
        world.disasters.append(fill_disk)
    return world


def s3_world(tmp_path: Path, server: S3Server, endpoint: str, postgres: PostgresServer, stop: Path) -> World:
    folder = os.urandom(6).hex()
    world = World("s3", server.open(folder))
    options = {name: str(value) for name, value in server.through(endpoint).options.items() if name != "max_retries"}
    add_actors(world, tmp_path, stop, f"s3://lake/{folder}", options, postgres.create_database())

    def kill_postgres(chance: random.Random) -> None:
        postgres.kill()
        time.sleep(chance.random())
        postgres.start()

    def freeze_postgres(chance: random.Random) -> None:
        postgres.freeze()
        time.sleep(chance.random() * 5)
        postgres.thaw()

    world.disasters += [kill_postgres, freeze_postgres]
    return world


def add_actors(
    world: World, tmp_path: Path, stop: Path, url: str, options: dict[str, str], registry: str, *, forks: bool = False
) -> None:
    """Three processes with two owners each: one that lives, and two that are killed, with clocks that are off. In one
    of the two worlds a clock is an hour ahead of the store's, so that no version is old enough to expire."""
    is_ahead = (world.name == "local") == bool(SEED % 2)
    journals = tmp_path / f"{world.name} journals"
    journals.mkdir()
    for number, clock in enumerate((0, HOUR if is_ahead else -HOUR // 2, -HOUR)):
        lives = number == 0
        first = 10 * number + 1
        role = Role(
            url=url,
            options=options,
            registry=registry,
            owners=(first, first + 1, first + 2) if forks and lives else (first, first + 1),
            journals=str(journals),
            seed=SEED + number,
            clock_seconds=clock,
            forks=forks and lives,
            cares=lives,
            stop=str(stop),
        )
        actor = Actor(role, tmp_path / f"{world.name} {number}.log", lives=lives)
        world.actors.append(actor)
        if not lives:
            world.disasters.append(lambda chance, actor=actor: actor.kill())


def check_rows(world: World) -> None:
    """That the table has the rows which its owners say, each once, and that every version is the child of another."""
    folder, roots = check_chain(world.store)
    expected = []
    for actor in world.actors:
        for number in actor.role.owners:
            owner = Owner(number, Path(actor.role.journals) / f"{number}.jsonl")
            assert owner.pending is None, f"owner {number} ended in the middle of {owner.pending}"
            expected += [(one, number, value) for one, value in owner.state.items()]
    found = read_rows(world.store, folder, len(roots) - 1)
    assert sorted(found) == sorted(expected)
    assert not audit(world.store).missing
    assert len(roots) > 20, f"{world.name}: too few commits for a test"


def check_flat(samples: list[dict[str, int]]) -> None:
    """That the process that lived held no more in the last third of its life than in the one before. In the first one
    it loads libraries and fills caches.

    The median of a third counts, not the most: requests wait for each other, with a connection and a thread each, while
    the machine is busy. What leaks is held at every moment.
    """
    third = len(samples) // 3
    assert third, "too few samples"
    for name, slack in {"descriptors": 15, "threads": 8, "megabytes": 150}.items():
        middle = median(sample[name] for sample in samples[third : 2 * third])
        last = median(sample[name] for sample in samples[2 * third :])
        assert last <= middle + slack, f"{name}: {middle} in the second third of the time, {last} in the last"


def holding(descriptors: list[int]) -> list[dict[str, int]]:
    return [{"descriptors": number, "threads": 20, "megabytes": 200} for number in descriptors]


def test_a_busy_moment_is_no_leak_and_growth_is_one():
    check_flat(holding([40] * 250 + [129] * 20 + [45] * 30))
    with pytest.raises(AssertionError, match="descriptors"):
        check_flat(holding([40 + at // 5 for at in range(300)]))
