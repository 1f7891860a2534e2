"""A disk that fails on demand: `faulty_disk.c`, compiled and preloaded into a process of its own.

This module is used on both sides: `start` is for the test, `Disk` for the program that it starts.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("faulty_disk.c")
REPOSITORY = Path(__file__).parents[2]
ALWAYS = 1 << 40


class Kind(IntFlag):
    """Calls of the operating system, as in `faulty_disk.c`."""

    OPEN = 1
    CREATE = 2
    """Opening a file that is written to."""
    WRITE = 4
    SYNC = 8
    LINK = 16
    """Links and renames."""
    FOLDER = 32
    REMOVE = 64
    READ = 128


CHANGES = Kind.CREATE | Kind.WRITE | Kind.SYNC | Kind.LINK | Kind.FOLDER | Kind.REMOVE


@dataclass(frozen=True)
class Failure:
    """What goes wrong: calls of these kinds, once or from then on, and whether they were made nevertheless."""

    error: int
    kinds: Kind
    is_lasting: bool = False
    is_done: bool = False


class Disk:
    """The calls of this process below one folder."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ["LD_PRELOAD"])

    @contextmanager
    def failing(self, folder: Path, failure: Failure, skip: int) -> Iterator[None]:
        """Calls fail inside, after so many that do not."""
        times = ALWAYS if failure.is_lasting else 1
        path = os.fsencode(folder)
        fail = self._library.disk_fail
        fail(path, failure.kinds, failure.error, ctypes.c_long(skip), ctypes.c_long(times), failure.is_done)
        try:
            yield
        finally:
            self.failed = self._library.disk_work()

    def quick(self, folder: Path) -> None:
        """Make no syncs below this folder."""
        self._library.disk_fail(os.fsencode(folder), 0, 0, ctypes.c_long(0), ctypes.c_long(0), 0)

    failed = 0
    """How many calls failed the last time."""


def build(folder: Path) -> Path:
    """The compiled library. Skips the test where there is no C compiler, or none that makes one."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler, cc, on Linux")
    library = folder / "faulty_disk.so"
    made = subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl", "-lpthread"],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"cc cannot make a library here: {made.stderr[-300:]}")
    return library


def start(library: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a module of the tests with the library preloaded."""
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
    )
