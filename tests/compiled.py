"""Processes of a run share the work of compiling: else each compiles all modules of a fresh clone, all at once."""

from __future__ import annotations

import compileall
from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "underlay"


def compile_share(number: int, of: int) -> None:
    """Compile one in so many modules of the package, unless that was done before."""
    for path in sorted(SOURCE.rglob("*.py"))[number::of]:
        compileall.compile_file(str(path), quiet=1)
