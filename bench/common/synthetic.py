"""Tables of any number of files that do not exist: index entries alone, which is all that planning looks at."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from bench.common.questions import ROWS_PER_FILE
from bench.common.trips import BLOCKS, ROWS, START_US, STEP_US, write_files
from bench.systems.ours import TABLE, Underlay
from underlay.change.files.add_files import add_files
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.operation import Operation
from underlay.store import Store
from underlay.table.catalog.lake import LakeCatalog
from underlay.table.commit.commit import commit
from underlay.table.commit.transaction import Transaction
from underlay.table.open_table import OpenTable
from underlay.table.versions.environment import wait_for_background


def make_synthetic(store: Store, file_count: int) -> None:
    """A table of trips with so many files, in one commit."""
    Underlay(Path(), store).create()
    entry, layouts = _example()
    head = OpenTable(LakeCatalog(store), TABLE).head()
    transaction = Transaction(head.revision, head.root, Operation.REGISTER)
    add_files(transaction, list(_entries(entry, file_count)), layouts)
    commit(transaction)


def _example() -> tuple[FileEntry, Sequence[FileLayout]]:
    """The entry of a real file of trips."""
    with tempfile.TemporaryDirectory() as folder:
        system = Underlay(Path(folder))
        system.place(write_files(Path(folder, "made"), 1))
        system.import_files()
        snapshot = system.table.snapshot()
        wait_for_background()  # the folder goes away
        return next(iter(snapshot.files())), snapshot.root.layouts


def _entries(example: FileEntry, count: int) -> Iterator[FileEntry]:
    """Copies of the example, each with the times that the file of its number has."""
    times, *others = example.columns
    first_rows = np.arange(count * BLOCKS, dtype="<i8").reshape(count, BLOCKS) * ROWS
    lows = START_US + first_rows * STEP_US
    highs = lows + (ROWS - 1) * STEP_US
    if lows[0].tobytes() != times.low or ROWS_PER_FILE != BLOCKS * ROWS:
        raise AssertionError("the first column of the example is not the time of its rows")
    for number in range(count):
        column = replace(times, low=lows[number].tobytes(), high=highs[number].tobytes())
        yield replace(example, location=f"./files/trips-{number:06}.parquet", columns=(column, *others))
