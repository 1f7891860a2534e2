"""Make a store fail where a test wants it to.

store = FaultyStore(inner, at(3, Fault.LOST_RESPONSE))       # the fourth request
store = FaultyStore(inner, on(StoreMethod.CREATE, Fault.LATE, key=".root"))

for store in at_every_request(make_store, [Fault.CRASH_BEFORE, Fault.CRASH_AFTER]):
    ...                                                       # once for each fault at each request, and once without
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from threading import Lock
from typing import TypeVar

from underlay.errors import Unavailable
from underlay.store.store import Data, Outcome, Store
from underlay.store.testing.wrapper import Request, StoreMethod, StoreWrapper

T = TypeVar("T")


class Fault(Enum):
    """What goes wrong with a request."""

    LOST_REQUEST = "lost request"
    """Nothing happens: a 503, or S3's 409. A create is UNKNOWN, all else Unavailable."""
    LOST_RESPONSE = "lost response"
    """It happens, but the caller is not told. A create is UNKNOWN, all else Unavailable."""
    OWN_REFUSAL = "own refusal"
    """A create happens and is REFUSED: obstore repeated it after a lost response. Else as LOST_RESPONSE."""
    LATE = "late"
    """A write is held back until `release`, and looks like a lost one. A read is LOST_REQUEST."""
    CRASH_BEFORE = "crash before"
    """The process dies as it sends the request."""
    CRASH_AFTER = "crash after"
    """The process dies after the request was carried out, before it learns of it."""


class Crashed(BaseException):
    """The simulated death of the process: no handler of errors catches it, and every later request raises it too."""


Plan = Callable[[int, Request], Fault | None]
"""The fault of a request, given how many were made before it."""

_WRITES = {StoreMethod.CREATE, StoreMethod.PUT, StoreMethod.DELETE}


class FaultyStore(StoreWrapper):
    """Passes requests on, except those for which `plan` names a fault. Requests of all threads are numbered as they
    arrive."""

    def __init__(self, inner: Store, plan: Plan) -> None:
        super().__init__(inner)
        self._plan = plan
        self._lock = Lock()
        self._late: list[Callable[[], object]] = []
        self.request_count = 0
        """Requests so far."""
        self.fault_count = 0
        """Requests that went wrong so far."""
        self.is_crashed = False
        """Whether the process is dead. Continue with another store around `inner`."""

    def release(self) -> list[object]:
        """Let the held writes land in order; returns the store's answer to each."""
        with self._lock:
            late, self._late = self._late, []
        return [write() for write in late]

    def create(self, key: str, data: Data) -> Outcome:
        """See Store and Fault."""
        held = bytes(data)
        request = Request(op=StoreMethod.CREATE, keys=(key,), sent_bytes=len(held))
        fault = self._next_fault(request)
        if fault is None:
            return self.inner.create(key, held)
        self._suffer(fault, request, lambda: self.inner.create(key, held))
        return Outcome.REFUSED if fault is Fault.OWN_REFUSAL else Outcome.UNKNOWN

    def put(self, key: str, data: Data) -> None:
        """See Store and Fault."""
        super().put(key, bytes(data))

    def around(self, request: Request, call: Callable[[], T], received_bytes: Callable[[T], int]) -> T:
        """Make the call, and let it go wrong as planned."""
        fault = self._next_fault(request)
        if fault is None:
            return call()
        self._suffer(fault, request, call)
        place = f"{self.url}/{','.join(request.keys)}"
        raise Unavailable(f"planned fault: {fault.value} of {request.op}", place=place)

    def _suffer(self, fault: Fault, request: Request, call: Callable[[], object]) -> None:
        """Do what the fault does to the store; raise Crashed if it ends the process, else return without a result."""
        if fault in {Fault.LOST_RESPONSE, Fault.OWN_REFUSAL, Fault.CRASH_AFTER}:
            call()
        elif fault is Fault.LATE and request.op in _WRITES:
            with self._lock:
                self._late.append(call)
        if fault in {Fault.CRASH_BEFORE, Fault.CRASH_AFTER}:
            self.is_crashed = True
            raise Crashed(f"{fault.value} {request.op} {', '.join(request.keys)}")

    def _next_fault(self, request: Request) -> Fault | None:
        with self._lock:
            if self.is_crashed:
                raise Crashed(f"{request.op} after the crash")
            fault = self._plan(self.request_count, request)
            self.request_count += 1
            self.fault_count += fault is not None
            return fault


def at(number: int, fault: Fault) -> Plan:
    """`fault` at request `number`, counted from 0."""
    return script({number: fault})


def script(faults: Mapping[int, Fault]) -> Plan:
    """A fault for each of these request numbers, counted from 0."""
    return lambda number, _: faults.get(number)


def on(op: StoreMethod, fault: Fault, *, key: str = "", skip: int = 0, times: int = 1) -> Plan:
    """`fault` at the requests of this method whose key contains `key`: `times` of them, after the first `skip`."""
    seen = itertools.count()

    def plan(_: int, request: Request) -> Fault | None:
        if request.op is op and any(key in name for name in request.keys):
            return fault if skip <= next(seen) < skip + times else None
        return None

    return plan


def seeded(seed: int, rate: float, faults: Sequence[Fault]) -> Plan:
    """One of `faults` at about `rate` of all requests. The same seed gives the same faults at the same numbers."""

    def plan(number: int, _: Request) -> Fault | None:
        chance = random.Random(f"{seed}:{number}")
        return chance.choice(faults) if chance.random() < rate else None

    return plan


def at_every_request(
    make_store: Callable[[], Store], faults: Sequence[Fault], *, begin: int = 0, step: int = 1
) -> Iterator[FaultyStore]:
    """A faulty store around a new one for each fault at each request, until the work no longer gets that far.

    The caller does the same work with each; the last store of each fault never fails. `begin` and `step` choose the
    requests, numbered from 0, where every one would take too long.
    """
    for fault in faults:
        for number in itertools.count(begin, step):
            store = FaultyStore(make_store(), at(number, fault))
            yield store
            if store.fault_count == 0:
                break
