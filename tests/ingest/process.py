"""Processes that ingest the same folder into the same table.

python -m tests.ingest.process race URL FOLDER      ingests in small claims, and prints how many rows it committed
python -m tests.ingest.process pause URL FOLDER     stops before its commit until its input says so; what came of it
python -m tests.ingest.process die URL FOLDER       ingests into a table for each step of an ingest: is killed there
                                                    (SIGKILL), and then again by a process that comes later
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from tests.ingest.worlds import STEPS, ids_in, ingest, new_table, opened, rows_in
from tests.leases.owners import LaterStore
from underlay.errors import UnderlayError
from underlay.store import open_store
from underlay.table.heartbeat import HEARTBEAT


def race(url: str, folder: str) -> None:
    done = ingest(opened(open_store(url)), [f"{folder}/*"], most=25, heartbeat=HEARTBEAT)
    print(sum(one.row_count for one in done))


def pause(url: str, folder: str) -> None:
    def at(step: str) -> None:
        if step == "commit":
            print("working", flush=True)
            sys.stdin.readline()

    try:
        done = ingest(opened(open_store(url)), [f"{folder}/*"], at=at, heartbeat=HEARTBEAT)
    except UnderlayError as error:
        print(type(error).__name__)
    else:
        print(sum(one.row_count for one in done))


def die(url: str, folder: str) -> None:
    for number, step in enumerate(STEPS):
        place = f"{url}/{number}"
        assert in_child(lambda place=place: new_table(open_store(place))) == 0
        assert in_child(lambda place=place, step=step: ingest_until(place, folder, step)) == -signal.SIGKILL
        assert in_child(lambda place=place: ingest_later(place, folder)) == 0
        print(step, flush=True)


def ingest_until(place: str, folder: str, last: str) -> None:
    def at(step: str) -> None:
        if step == last:
            os.kill(os.getpid(), signal.SIGKILL)

    ingest(opened(open_store(place)), [f"{folder}/*"], at=at, heartbeat=HEARTBEAT)


def ingest_later(place: str, folder: str) -> None:
    store = open_store(place)
    ingest(opened(LaterStore(store)), [f"{folder}/*"])
    print(ids_in(opened(store)), len(rows_in(opened(store, "taxi.trips_rejected"))), end=" ", flush=True)


def in_child(work: Callable[[], object]) -> int:
    """How a process ends that does this. The parent has no threads, so that it may be forked."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    work()  # an error ends the process with its traceback
    os._exit(0)


if __name__ == "__main__":
    {"race": race, "pause": pause, "die": die}[sys.argv[1]](*sys.argv[2:])
