"""Processes that ingest the same folder into the same lake, as users do it.

python -m tests.ingest.run_process race URL FOLDER    ingests in small batches, and prints how many rows came of it
python -m tests.ingest.run_process stop URL FOLDER    stops (SIGSTOP) before it commits rows, and prints the same then
python -m tests.ingest.run_process die URL FOLDER     ingests into one lake after another, killed (SIGKILL) at the first
                                                      request of the lake's store, at the second and so on (at every
                                                      third, unless all tests are run); after each, another process
                                                      ingests at once, and prints what it finds
python -m tests.ingest.run_process much URL FOLDER    prints how many rows came, and by how many bytes the process grew
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable
from threading import Lock
from typing import TypeVar

import pyarrow as pa

from tests.gate import every_third
from tests.ingest.lakes import COLUMNS, NAME, ids, lake_at, rejected
from underlay.ingest.run.ingest import ingest
from underlay.ingest.run.summary import Summary
from underlay.ingest.work.settings import make_settings
from underlay.ingest.work.workers import LocalWorkers
from underlay.store import Store, open_store
from underlay.store.testing.wrapper import Request, StoreMethod, StoreWrapper
from underlay.table.catalog.lake import LakeCatalog

T = TypeVar("T")


class SignallingStore(StoreWrapper):
    """Sends this process a signal before a request that is meant."""

    def __init__(self, inner: Store, number: int, is_meant: Callable[[Request, int], bool]) -> None:
        super().__init__(inner)
        self._number = number
        self._is_meant = is_meant
        self._count = 0
        self._lock = Lock()

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        with self._lock:
            self._count += 1
            if self._is_meant(request, self._count):
                os.kill(os.getpid(), self._number)
        return call()


def in_child(work: Callable[[], object]) -> int:
    """How a process ends that does this. The parent has no threads, so that it may be forked."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    work()  # an error ends the process with its traceback
    os._exit(0)


def ingest_all(store: Store, folder: str, batch: int) -> Summary:
    """With the surroundings of a real process: nobody's clock is turned."""
    lake = LakeCatalog(store)
    settings = make_settings(f"{folder}/*", columns=COLUMNS, batch_sources=batch)
    return ingest(lake, NAME, settings, workers=lambda size, count: LocalWorkers(store))


def race(url: str, folder: str) -> None:
    print(ingest_all(open_store(url), folder, 20).row_count)


def stop(url: str, folder: str) -> None:
    roots: list[str] = []

    def is_third_root(request: Request, count: int) -> bool:
        """The roots of the table: made, claimed, and with rows."""
        if request.op is StoreMethod.CREATE and request.keys[0].endswith(".root"):
            roots.append(request.keys[0])
            return len(roots) == 3
        return False

    print(ingest_all(SignallingStore(open_store(url), signal.SIGSTOP, is_third_root), folder, 1000).row_count)


def die(url: str, folder: str) -> None:
    pa.array([0])  # or each child would load pandas, for which Arrow looks when it first meets a list
    part = every_third()
    number, ended = part["begin"] + 1 - part["step"], -signal.SIGKILL
    while ended == -signal.SIGKILL:
        number += part["step"]
        place = f"{url}/{number}"
        ended = in_child(lambda place=place, number=number: ingest_until(place, folder, number))
        assert in_child(lambda place=place: ingest_again(place, folder)) == 0
    assert ended == 0
    print(number)


def ingest_until(place: str, folder: str, last: int) -> None:
    store = SignallingStore(open_store(place), signal.SIGKILL, lambda request, count: count == last)
    ingest_all(store, folder, 2)


def ingest_again(place: str, folder: str) -> None:
    store = open_store(place)
    done = ingest_all(store, folder, 2)
    lake = lake_at(store)
    print(done.claimed, ids(lake), rejected(lake), flush=True)


def much(url: str, folder: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = ingest_all(open_store(url), folder, 1000)
    print(done.row_count, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10)


if __name__ == "__main__":
    {"race": race, "stop": stop, "die": die, "much": much}[sys.argv[1]](*sys.argv[2:])
