"""How much does a sweep cost, against the size of its listing?

A table of a hundred versions, in whose folder lie `--objects` files and sidecars that no version references, on the
memory store: requests are those that a store would see, and the seconds are processor time. The result is checked by a
listing: what no version references is gone, and all else is there.

    python -m bench.care.sweep --objects 100000
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from underlay.api.lake import connect
from underlay.store import Store, open_store
from underlay.store.testing import CountingStore, StoreMethod

_PAGE = 1000
"""Objects in one page of a listing, and in one request that deletes."""
_GRACE = timedelta(days=1)


class _Later(CountingStore):
    """A store whose clock is two days ahead of what was put first."""

    late = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.late


def make(store: Store, object_count: int) -> int:
    """A table, and objects that died writers left; how many objects are referenced or young."""
    lake = connect(store, registry="none")
    table = lake.create_table("shop.sales", "id bigint")
    for number in range(100):
        table.append(pa.table({"id": [number]}))
    folder = table.snapshot().keys.folder
    for number in range(object_count // 2):
        name = f"{number:09}-{number + 1:016x}"
        store.put(f"{folder}/{name}.parquet", b"x" * 100)
        store.put(f"{folder}/_pm/{name}", b"x")
    lake.close()
    return sum(1 for _ in store.list_objects()) - object_count // 2 * 2


def measure(object_count: int) -> dict[str, object]:
    """One dry run, and one sweep."""
    inner = open_store(f"memory://{uuid4()}")
    kept = make(inner, object_count)
    store = _Later(inner)
    store.late = timedelta(days=2)
    found: dict[str, object] = {"objects": object_count // 2 * 2}
    with connect(store, registry="none") as lake:
        tracemalloc.start()
        lake.sweep(_GRACE)
        found["peak megabytes of a dry run"] = round(tracemalloc.get_traced_memory()[1] / 1e6, 1)
        tracemalloc.stop()
    for name, dry_run in (("dry run", True), ("sweep", False)):
        store.reset()
        begun = time.process_time()
        with connect(store, registry="none") as lake:
            done = lake.sweep(_GRACE, dry_run=dry_run)
        seconds = time.process_time() - begun
        assert done.object_count == object_count // 2 * 2, done
        pages = -(-done.listed_count // _PAGE)
        requests = store.request_count() - store.request_count(StoreMethod.LIST_OBJECTS) + pages
        found[name] = {
            "listed": done.listed_count,
            "pages of the listing": pages,
            "requests": requests,
            "requests that delete": store.request_count(StoreMethod.DELETE),
            "cpu seconds": round(seconds, 3),
            "microseconds for an object": round(seconds / done.listed_count * 1e6, 1),
        }
    left = sum(1 for _ in inner.list_objects())
    assert kept <= left <= kept + 5, (kept, left)
    return found


def main() -> None:
    """Print the result as JSON, and write it where the others are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    text = json.dumps(measure(chosen.objects), indent=2)
    print(text)
    if chosen.out is not None:
        chosen.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
