"""A process that changes a table at random, and knows at every moment which rows of it must be there.

Each thread owns the rows of one number and is the only one that changes them, so that their state follows from what it
did. It writes down what it is about to do, with a token, then does it until it is acknowledged, then writes that down:
a process that takes over from one that was killed does the last, unacknowledged step again, by the same token. Every
now and then a thread reads its rows; that they differ ends the process with DIFFERENT.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread, active_count
from typing import Any

import pyarrow as pa

import underlay as ul
from underlay.errors import (
    Busy,
    CommitUnknown,
    InvalidRequest,
    SchemaMismatch,
    SnapshotExpired,
    Unavailable,
    UnderlayError,
)
from underlay.registry.registry import open_registry
from underlay.store.open import open_store
from underlay.table.versions.environment import Surroundings, now_us

NAME = "soak.rows"
SCHEMA = "id bigint not null, owner bigint, value bigint, note string"
DIFFERENT = 3
IDS = 1_000_000
"""Ids of one owner."""
MOST_ROWS = 400
PAUSE_SECONDS = 0.02
FORK_SECONDS = 600
"""A forked child that takes longer hangs."""
PROPERTIES = {"care.reader_age": "1m"}
SWEEP_GRACE = "1m"
"""An upload that takes longer meets a sweep's horizon, and is done again."""
VERBS = ("append", "append", "upsert", "upsert", "delete", "delete keys", "update")

Step = dict[str, Any]
State = dict[int, int]
"""Value by id."""


@dataclass(frozen=True)
class Role:
    """What a process is told: where the lake is, whose rows it changes, and how far off its clock is."""

    url: str
    options: dict[str, str]
    registry: str
    owners: tuple[int, ...]
    journals: str
    seed: int
    clock_seconds: int = 0
    forks: bool = False
    cares: bool = False
    """Whether it compacts, expires and sweeps."""
    stop: str = ""
    """A file whose presence ends the process."""


@dataclass
class Owner:
    """The rows of one number, and the journal of what was done to them."""

    number: int
    journal: Path
    state: State = field(default_factory=dict)
    steps: int = 0
    pending: Step | None = None

    def __post_init__(self) -> None:
        for line in self.journal.read_text().splitlines() if self.journal.exists() else ():
            if not line.endswith("}"):
                continue  # the end of a line that a kill cut off; its step was not begun
            entry = json.loads(line)
            if "done" in entry:
                assert self.pending is not None
                apply(self.state, self.pending)
                self.pending = None
            else:
                self.pending, self.steps = entry, entry["number"] + 1

    def do(self, table: ul.Table, step: Step) -> None:
        """Do the step, however often the store fails; its token makes it happen once."""
        if self.pending is None:
            self._write(step)
            self.pending, self.steps = step, self.steps + 1
        while True:
            try:
                version = perform(table, step, f"{self.number}-{step['number']}")
                break
            except (InvalidRequest, SchemaMismatch):
                raise
            except (UnderlayError, OSError):
                time.sleep(0.2)
        self._write({"done": step["number"], "version": version})
        apply(self.state, step)
        self.pending = None

    def check(self, table: ul.Table) -> None:
        """That a scan finds just the rows of this owner, and a count as many."""
        where = f"owner = {self.number}"
        try:
            rows = table.scan(["id", "value"], where=where).to_arrow()
            count = table.count(where)
        except (UnderlayError, OSError):
            return  # the store or the disk is away: no answer is no wrong answer
        found = dict(zip(rows["id"].to_pylist(), rows["value"].to_pylist(), strict=True))
        if (found, rows.num_rows, count) != (self.state, len(self.state), len(self.state)):
            missing = sorted(self.state.keys() - found.keys())[:5]
            surplus = sorted(found.keys() - self.state.keys())[:5]
            print(f"owner {self.number}: {rows.num_rows} rows of {len(self.state)}, lacks {missing}, surplus {surplus}")
            sys.stdout.flush()
            os._exit(DIFFERENT)

    def _write(self, entry: Step) -> None:
        with self.journal.open("a") as out:
            out.write(f"{json.dumps(entry)}\n")


def apply(state: State, step: Step) -> None:
    """What the step makes of the rows."""
    match step["verb"]:
        case "append" | "upsert":
            state |= {int(number): value for number, value in step["rows"].items()}
        case "delete" | "delete keys":
            for number in step["ids"]:
                state.pop(number, None)
        case "update":
            for number in step["ids"]:
                if number in state:
                    state[number] += step["by"]


def perform(table: ul.Table, step: Step, token: str) -> int:
    """Change the table. Returns the version."""
    owner = step["owner"]
    match step["verb"]:
        case "append":
            return table.append(rows_of(step["rows"], owner), token=token).version
        case "upsert":
            return table.upsert(rows_of(step["rows"], owner), token=token).version
        case "delete keys":
            keys = pa.table({"id": pa.array(step["ids"], pa.int64())})
            return table.delete(rows=keys, key=["id"], token=token).version
        case "delete":
            return table.delete(f"owner = {owner} and id in ({_listed(step['ids'])})", token=token).version
        case "update":
            where = f"id in ({_listed(step['ids'])})"
            return table.update({"value": f"value + {step['by']}"}, where=where, token=token).version
    raise AssertionError(step)


def _listed(ids: list[int]) -> str:
    return ", ".join(map(str, ids)) or "-1"


def rows_of(values: dict[str, int], owner: int) -> pa.Table:
    count = len(values)
    return pa.table(
        {
            "id": pa.array([int(number) for number in values], pa.int64()),
            "owner": pa.array([owner] * count, pa.int64()),
            "value": pa.array(list(values.values()), pa.int64()),
            "note": pa.array([f"row {number}" for number in values]),
        }
    )


def choose(owner: Owner, chance: random.Random) -> Step:
    """A step at random, which keeps the number of rows bounded."""
    base = {"number": owner.steps, "owner": owner.number}
    known = list(owner.state)
    first = owner.number * IDS + owner.steps * 8
    fresh = {str(first + place): chance.randrange(1000) for place in range(chance.randint(1, 8))}
    some = chance.sample(known, min(len(known), chance.randint(1, 8)))
    if len(known) > MOST_ROWS:
        return {**base, "verb": "delete", "ids": chance.sample(known, MOST_ROWS // 2)}
    match chance.choice(VERBS) if known else "append":
        case "append":
            return {**base, "verb": "append", "rows": fresh}
        case "upsert":
            changed = {str(number): chance.randrange(1000) for number in some}
            return {**base, "verb": "upsert", "rows": changed | dict(list(fresh.items())[:2])}
        case "update":
            return {**base, "verb": "update", "ids": some, "by": chance.randrange(1, 9)}
        case verb:
            return {**base, "verb": verb, "ids": some}


def open_lake(role: Role) -> ul.Lake:
    """The lake, with a clock that is off."""
    store = open_store(role.url, role.options or None)
    registry = None if role.registry == "none" else open_registry(role.registry, store)
    clock = Surroundings(now_us=lambda: now_us() + role.clock_seconds * 1_000_000)
    return ul.Lake(store, options=role.options, surroundings=clock, registry=registry)


def open_table(lake: ul.Lake) -> ul.Table:
    """The table, however often the store or the disk is away."""
    while True:
        try:
            return lake.table(NAME)
        except (Unavailable, OSError):
            time.sleep(0.2)


def work(lake: ul.Lake, owner: Owner, chance: random.Random, stop: Path) -> None:
    """Steps until the file is there."""
    table = open_table(lake)
    if owner.pending is not None:
        owner.do(table, owner.pending)
    owner.check(table)
    while not stop.exists():
        owner.do(table, choose(owner, chance))
        if chance.random() < 0.2:
            owner.check(table)
        if chance.random() < 0.05:
            table = open_table(lake)
        time.sleep(PAUSE_SECONDS * chance.random())
    owner.check(table)


def care(lake: ul.Lake, chance: random.Random, stop: Path) -> None:
    """Compact, expire and sweep while others write. What the weather does is no reason to end, what is stored is."""
    while not stop.exists():
        time.sleep(3 * chance.random())
        try:
            match chance.choice(("compact", "expire", "sweep")):
                case "compact":
                    lake.table(NAME).compact(dry_run=False)
                case "expire":
                    lake.table(NAME).expire("30s", 20, dry_run=False)
                case "sweep":
                    lake.sweep(SWEEP_GRACE, dry_run=False)
        except (Unavailable, CommitUnknown, Busy, SnapshotExpired, OSError):
            continue
        except UnderlayError:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(DIFFERENT)


def fork_one(lake: ul.Lake, owner: Owner, chance: random.Random) -> None:
    """A step of this owner in a forked child, with the lake that it inherits."""
    child = os.fork()
    if child:
        end = time.monotonic() + FORK_SECONDS
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > end:
                os.kill(child, signal.SIGABRT)  # faulthandler says where it hangs
            time.sleep(0.05)
        status = ended[1]
        owner.__init__(owner.number, owner.journal)  # type: ignore[misc]  # what the child wrote down
        if status:
            print(f"a forked child ended with {status}")
            sys.stdout.flush()
            os._exit(DIFFERENT)
        return
    code = 1
    try:
        table = open_table(lake)
        owner.do(table, owner.pending or choose(owner, chance))
        owner.check(table)
        code = 0
    except BaseException:  # noqa: BLE001  # whatever it is, the child must not go on with its parent's program
        traceback.print_exc()
    finally:
        os._exit(code)


def measure() -> dict[str, int]:
    """What the process holds of the machine."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": active_count(),
        "megabytes": pages * os.sysconf("SC_PAGE_SIZE") >> 20,
    }


def main(role: Role) -> None:
    chance = random.Random(role.seed)
    stop = Path(role.stop)
    lake = open_lake(role)
    owners = [Owner(number, Path(role.journals) / f"{number}.jsonl") for number in role.owners]
    forked = owners.pop() if role.forks else None
    ended: list[Owner] = []

    def run(owner: Owner, seed: int) -> None:
        work(lake, owner, random.Random(seed), stop)
        ended.append(owner)

    threads = [Thread(target=run, args=(owner, chance.randrange(1 << 30))) for owner in owners]
    for thread in threads:
        thread.start()
    carer = Thread(target=care, args=(lake, random.Random(role.seed), stop), daemon=True) if role.cares else None
    if carer is not None:
        carer.start()
    while any(thread.is_alive() for thread in threads):
        if forked is not None and not stop.exists():
            fork_one(lake, forked, chance)
        print(json.dumps(measure()))
        sys.stdout.flush()
        time.sleep(1)
    for thread in threads:
        thread.join()
    if carer is not None:
        carer.join()  # a lake that is closed under it would look like a fault
    lake.close()
    sys.exit(0 if len(ended) == len(owners) else 1)


if __name__ == "__main__":
    faulthandler.enable()
    told = json.loads(sys.argv[1])
    main(Role(**{**told, "owners": tuple(told["owners"])}))
