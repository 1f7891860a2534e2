"""Appends by token over HTTP, through a proxy that cuts requests and responses: the rows of each token exactly once."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import underlay
from tests.end_to_end.lakes import NAME, SCHEMA, ids, rows
from tests.gate import sized
from tests.store.proxy import Action, Answer, DropRequest, DropResponse, Forward, Seen, proxy
from tests.store.servers import S3Server
from tests.store.servers import moto as moto
from tests.table.checker import Checker
from underlay.errors import CommitUnknown, Unavailable

WRITERS = 3
TRIES = 200
FAULTS = (DropRequest(), DropResponse(), DropResponse(), Answer(503), Answer(500))


def test_the_rows_of_each_token_are_there_once(moto: S3Server):
    store = moto.open()
    underlay.connect(store).create_table(NAME, SCHEMA)
    lock, seen_before, cut = Lock(), Counter[str](), list[str]()

    def choose(seen: Seen) -> Action:
        """The fifth request of each method goes wrong, and some of the others, whatever the order of writers."""
        with lock:
            number = seen_before[seen[0]]
            seen_before[seen[0]] += 1
        chance = random.Random(f"{seen[0]} {number}")
        if number != 4 and chance.random() >= 0.06:
            return Forward()
        cut.append(seen[0])
        return chance.choice(FAULTS)

    tokens = sized(2, 30)

    def write(writer: int) -> int:
        """Append each token until it is acknowledged; then once more, as a caller does who did not hear that."""
        inner = moto.through(front.endpoint).open(store.url.rsplit("/", 1)[1], max_retries=0)
        failures = 0
        for number in range(tokens):
            first = 100 * writer + 2 * number
            for _ in range(2):
                for _ in range(TRIES):
                    try:
                        # A lake of its own for each try, as a process that starts again has.
                        underlay.connect(inner).table(NAME).append(rows([first, first + 1]), token=f"{writer}-{number}")
                        break
                    except (Unavailable, CommitUnknown):
                        failures += 1
                else:
                    raise AssertionError(f"not acknowledged after {TRIES} tries")
        return failures

    with proxy(moto.endpoint, choose) as front, ThreadPoolExecutor(WRITERS) as pool:
        failures = sum(pool.map(write, range(WRITERS)))
    assert failures
    assert {"GET", "PUT"} <= set(cut)
    table = underlay.connect(store).table(NAME)
    assert ids(table) == sorted(100 * w + n for w in range(WRITERS) for n in range(2 * tokens))
    assert table.version == WRITERS * tokens
    Checker(store).check()
