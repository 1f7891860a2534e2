"""For tests of stores and of what uses them: a store that counts requests, one that fails on demand, and a contract.

The names below are loaded when they are first used; only `StoreContract` needs pytest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from underlay.store.testing.contract import StoreContract
    from underlay.store.testing.counting import CountingStore, Served
    from underlay.store.testing.faulty import Crashed, Fault, FaultyStore, at, at_every_request, on, script, seeded
    from underlay.store.testing.wrapper import Request, StoreMethod, StoreWrapper

__all__ = [
    "CountingStore",
    "Crashed",
    "Fault",
    "FaultyStore",
    "Request",
    "Served",
    "StoreContract",
    "StoreMethod",
    "StoreWrapper",
    "at",
    "at_every_request",
    "on",
    "script",
    "seeded",
]

_HOMES = {
    "CountingStore": "counting",
    "Crashed": "faulty",
    "Fault": "faulty",
    "FaultyStore": "faulty",
    "Request": "wrapper",
    "Served": "counting",
    "StoreContract": "contract",
    "StoreMethod": "wrapper",
    "StoreWrapper": "wrapper",
    "at": "faulty",
    "at_every_request": "faulty",
    "on": "faulty",
    "script": "faulty",
    "seeded": "faulty",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
