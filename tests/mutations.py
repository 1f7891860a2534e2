"""Rules taken out of a copy of the source, and the tests that must notice.

A mutation replaces one piece of text in one file. It is looked for exactly, so that a rule that moved is an error here
and no mutation that does nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
SOURCE = REPOSITORY / "src" / "underlay"
TRAPS = "tests/contract/pruning/test_traps.py"
TRAPS_OF_SHAPE = "tests/contract/pruning/test_traps_of_shape.py"
FAILED, PASSED = 1, 0
"""Exit codes of pytest: tests ran and some failed; all passed. Others say that it could not run."""


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """One rule, the text without it, and a test that finds it missing."""

    file: str
    rule: str
    without: str
    test: str


MUTATIONS: dict[str, Mutation] = {
    "T1 NaN is above every number": Mutation(
        file="prune/domains/floats.py",
        rule="nan=op in (Op.GT, Op.GE, Op.NE)",
        without="nan=False",
        test=f"{TRAPS}::test_t1_nan_is_not_in_the_bounds",
    ),
    "T5 a zero bound is of both zeros": Mutation(
        file="index/intake/stored_bounds.py",
        rule="np.where(values == 0.0, _ZEROS, values)",
        without="values",
        test="tests/index/intake/test_statistics.py::test_t5_zero_bounds_are_of_both_zeros",
    ),
    "T9 a cut upper bound is rounded up": Mutation(
        file="index/segment/packed.py",
        rule="return _text_above(value[: _boundary(value)].decode())",
        without="return value[: _boundary(value)]",
        test=f"{TRAPS}::test_t9_bounds_that_were_cut",
    ),
    "T24 a block with nulls does not match in full": Mutation(
        file="prune/blocks/finding.py",
        rule="found & bounds.is_null_free if",
        without="found if",
        test=f"{TRAPS_OF_SHAPE}::test_t24_nulls",
    ),
    "T26 a file has a bound only if all blocks have": Mutation(
        file="plan/leaf_bounds.py",
        rule="has_maximum[files] = np.logical_and.reduceat(",
        without="has_maximum[files] = np.logical_or.reduceat(",
        test=f"{TRAPS_OF_SHAPE}::test_t26_one_row_group_without_statistics",
    ),
    "T34 deleted rows are not counted": Mutation(
        file="plan/answers.py",
        rule=" - plan.deleted_counts.sum()",
        without="",
        test=f"{TRAPS_OF_SHAPE}::test_t34_deleted_rows_are_in_no_answer",
    ),
}


def copy_source(folder: Path) -> Path:
    """A copy of the package in `folder`, which then goes on the path; with what is compiled, which holds for all files
    but the one that is changed."""
    shutil.copytree(SOURCE, folder / "underlay")
    return folder


def apply(mutation: Mutation, folder: Path) -> None:
    """Take the rule out of the copy. Raises ValueError unless it is there exactly once."""
    path = folder / "underlay" / mutation.file
    text = path.read_text()
    if text.count(mutation.rule) != 1:
        raise ValueError(f"{mutation.file} has {text.count(mutation.rule)} times: {mutation.rule}")
    path.write_text(text.replace(mutation.rule, mutation.without))


def run_tests(folder: Path, tests: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run tests against the copy, in a process of their own; all that they ask, since any of it may be what notices."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "UNDERLAY_TESTS": "all",
        },
        capture_output=True,
        text=True,
        check=False,
    )
