"""Processes of a run share the work of compiling: else each compiles all modules of a fresh clone, all at once."""

from __future__ import annotations

import compileall
import importlib
from contextlib import suppress
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
SOURCE = ROOT / "src" / "underlay"


def compile_share(number: int, of: int) -> None:
    """Compile one in so many modules of the package, and import one in so many test modules, which has pytest write
    what it makes of them."""
    for path in sorted(SOURCE.rglob("*.py"))[number::of]:
        compileall.compile_file(str(path), quiet=1)
    for path in sorted(TESTS.rglob("test_*.py"))[number::of]:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        with suppress(Exception, pytest.skip.Exception):  # collecting imports it again, and says what is wrong with it
            importlib.import_module(name)
