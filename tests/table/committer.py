"""A process that appends made-up files to a table, each with a token, and prints what was acknowledged.

python -m tests.table.committer ROOT TABLE WRITER COUNT
"""

from __future__ import annotations

import atexit
import sys

from tests.table.entries import append
from underlay.store.local import LocalStore
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.catalog.lifecycle import open_active
from underlay.table.versions.environment import wait_for_background


def run(root: str, table: str, writer: str, count: int) -> None:
    atexit.unregister(wait_for_background)
    atexit.register(wait_for_background, 120)  # as ever at the end, but a slow machine has time for the hint
    revision = open_active(LakeCatalog(LocalStore(root)), table)
    print("ready", flush=True)
    for number in range(count):
        committed = append(revision, f"{writer}-{number:04}", token=f"{writer}-{number:04}")
        print(f"{writer}-{number:04} {committed.version}", flush=True)


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
