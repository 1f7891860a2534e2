"""A process that uses a lake on S3, and starts others. Each prints what came of it, as one line of JSON.

python -m tests.forks.remote_program used|unused ENDPOINT URL
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.context import BaseContext

import underlay as ul
from tests.end_to_end.lakes import NAME, SCHEMA, ids, rows
from tests.store.servers import S3Server
from underlay.errors import UnderlayError

Address = tuple[str, dict[str, str]]


def connected(address: Address) -> ul.Lake:
    return ul.connect(address[0], options=address[1])


def append_by(address: Address, number: int) -> list[int]:
    """In a child: the ids of the table after a row was appended by a lake that is opened there."""
    table = connected(address).table(NAME)
    table.append(rows([number]))
    return [one for one in ids(table) if one == number]


def forked(work: Callable[[], object]) -> object:
    """What `work` returns in a forked child, or the code and the hint of its error."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.write(into, json.dumps(said(work)).encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text)


def said(work: Callable[[], object]) -> object:
    try:
        return work()
    except UnderlayError as error:
        return {"code": error.code, "hint": error.hint or "", "text": str(error)}


def in_pool(context: BaseContext, address: Address, numbers: list[int]) -> object:
    with context.Pool(1) as pool:
        return pool.starmap(append_by, [(address, number) for number in numbers])


def in_executor(context: BaseContext, address: Address, numbers: list[int]) -> object:
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return list(pool.map(append_by, [address] * len(numbers), numbers))


def after_requests(address: Address) -> dict[str, object]:
    """The parent has appended and scanned before it starts others."""
    lake = connected(address)
    table = lake.create_table(NAME, SCHEMA)
    table.append(rows([1]))
    reading = iter(table.scan().to_batches())
    next(reading)
    found: dict[str, object] = {
        "inherited append": forked(lambda: table.append(rows([99])).version),
        "inherited scan": forked(lambda: ids(table)),
        "inherited sql": forked(lambda: lake.sql('select count(*) from "some"."table"').to_arrow().num_rows),
        "inherited listing": forked(lambda: [one.name for one in lake.tables()]),
        "new connection": forked(lambda: append_by(address, 99)),
        "lake in memory": forked(lambda: len(ul.connect("memory://other").tables())),
        "grandchild": forked(lambda: forked(lambda: append_by(address, 99))),
    }
    fork = multiprocessing.get_context("fork")
    found["forked pool"] = said(lambda: in_pool(fork, address, [99]))
    found["forked executor"] = said(lambda: in_executor(fork, address, [99]))
    found["spawned pool"] = in_pool(multiprocessing.get_context("spawn"), address, [2])
    found["spawned executor"] = in_executor(multiprocessing.get_context("spawn"), address, [3])
    found["forkserver pool"] = in_pool(multiprocessing.get_context("forkserver"), address, [4])
    found["forkserver executor"] = in_executor(multiprocessing.get_context("forkserver"), address, [5])
    table.append(rows([6]))
    found["parent"] = ids(table)
    return found


def before_requests(address: Address, local: str) -> dict[str, object]:
    """The parent has opened the lake, and used a local one, but asked the store for nothing."""
    near = ul.connect(local)
    near.create_table(NAME, SCHEMA).append(rows([1]))
    lake = connected(address)

    def create() -> list[int]:
        table = lake.create_table(NAME, SCHEMA)
        table.append(rows([1]))
        return ids(table)

    found: dict[str, object] = {"inherited": forked(create)}
    fork = multiprocessing.get_context("fork")
    found["forked pool"] = in_pool(fork, address, [2, 3])
    found["forked executor"] = in_executor(fork, address, [4])
    found["local"] = forked(lambda: ids(near.table(NAME)))
    found["parent"] = ids(lake.table(NAME))
    return found


if __name__ == "__main__":
    kind, endpoint, url, local = sys.argv[1:]
    options = {name: str(value) for name, value in S3Server(endpoint).options.items()}
    place = (url, options)
    print(json.dumps(after_requests(place) if kind == "used" else before_requests(place, local)))
