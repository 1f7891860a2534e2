"""A process whose threads commit while it forks; each child appends, scans, asks SQL and ends as a program does.

    python -m tests.forks.storm_program LAKE REGISTRY ROUNDS SEED

Nothing but Underlay is loaded before the threads begin, so that the first forks meet threads that import modules. It
prints how many children ended well, and the warnings that are logged go to its stderr.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from threading import Event, Thread

import underlay as ul

NAME = "shop.numbers"
HANGS_SECONDS = 400


def append(table: ul.Table, number: int) -> None:
    import pyarrow as pa

    table.append(pa.table({"id": [number]}))


def count(lake: ul.Lake, number: int) -> object:
    return lake.sql(f"select count(*) as n from {NAME} where id = {number}").to_arrow()["n"][0].as_py()


def child(lake: ul.Lake, table: ul.Table, number: int) -> None:
    signal.alarm(HANGS_SECONDS)
    append(table, number)
    assert number in table.scan(["id"]).to_arrow()["id"].to_pylist()
    assert count(lake, number) == 1
    assert lake.registry is not None
    assert lake.registry.wait(HANGS_SECONDS), "the registry of the child does not answer"
    assert lake.registry.statement_count > 0


def main(url: str, registry: str, rounds: int, seed: int) -> None:
    lake = ul.connect(url, registry=registry)
    table = lake.create_table(NAME, "id bigint not null")
    if seed % 2:
        count(lake, 0)  # else the first child loads DuckDB
    done, counts = Event(), [0, 0]

    def work(thread: int) -> None:
        while not done.wait(0.05):  # so seldom that a child wins a race too
            append(table, -(counts[thread] * 2 + thread) - 1)
            counts[thread] += 1

    threads = [Thread(target=work, args=(at,)) for at in range(2)]
    for thread in threads:
        thread.start()
    chance = random.Random(seed)
    ended = []
    for number in range(rounds):
        Event().wait(chance.random() * 0.15)  # somewhere in the work of the threads
        forked = os.fork()
        if not forked:
            child(lake, table, number)
            sys.exit(0)
        ended.append(os.waitpid(forked, 0)[1])
    done.set()
    for thread in threads:
        thread.join()
    append(table, rounds)
    assert lake.registry is not None
    assert lake.registry.wait(HANGS_SECONDS)
    expected = sorted([*range(rounds + 1), *(-(n * 2 + at) - 1 for at in range(2) for n in range(counts[at]))])
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == expected
    assert lake.registry.differences() == []
    lake.close()
    print(ended.count(0), sorted(set(ended)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
