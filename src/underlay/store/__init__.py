"""Object stores behind one synchronous interface: a local directory, S3 and compatibles, GCS, Azure, memory.

`open_store(url)` opens one, `probe_store(store)` refuses one on which a commit would not be safe. `CountingStore` and
`FaultyStore` wrap any store for tests and benchmarks. The names below are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from underlay.store.open import open_store
    from underlay.store.probe import probe_store
    from underlay.store.store import Outcome, Store, StoredObject
    from underlay.store.testing.counting import CountingStore
    from underlay.store.testing.faulty import FaultyStore

__all__ = [
    "CountingStore",
    "FaultyStore",
    "Outcome",
    "Store",
    "StoredObject",
    "open_store",
    "probe_store",
]

_HOMES = {
    "CountingStore": "testing.counting",
    "FaultyStore": "testing.faulty",
    "Outcome": "store",
    "Store": "store",
    "StoredObject": "store",
    "open_store": "open",
    "probe_store": "probe",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
