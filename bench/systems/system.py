"""What a measured system can do. Each keeps one table, of trips, below a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

import pyarrow as pa

from bench.common.questions import Answer, Question

Way = Callable[[Question], Answer]
"""One way to ask."""


class System(Protocol):
    """One table below a folder. A second object on the same folder finds what the first one left there."""

    name: ClassVar[str]

    def __init__(self, folder: Path) -> None: ...

    def place(self, files: Sequence[Path]) -> None:
        """Get files to where they can be imported. Not timed."""

    def import_files(self) -> None:
        """Make a table of the placed files, in place."""

    def create(self) -> None:
        """Make a table without rows."""

    def append(self, rows: pa.Table) -> None:
        """Add rows and commit."""

    def ways(self) -> Mapping[str, Way]:
        """The natural ways to ask, over a table that is opened at the first question and stays open."""


def link_files(files: Sequence[Path], folder: Path) -> None:
    """The same files in another folder, without copying."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        os.link(file, folder / file.name)
