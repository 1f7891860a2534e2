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

RULES = "tests/interop/iceberg/test_rules.py"
DELTA = "tests/interop/delta/test_export.py"
_LAYOUTS = "interop/iceberg/columns/layouts.py"
_BOUNDS = "interop/iceberg/objects/bounds.py"
MUTATIONS |= {
    "X1 files with milliseconds are not exported": Mutation(
        file=_LAYOUTS,
        rule='if found.unit == "ms":',
        without='if found.unit == "s":',
        test=f"{RULES}::test_x1_files_with_milliseconds_are_refused",
    ),
    "X2 files with ids of others are not exported": Mutation(
        file=_LAYOUTS,
        rule="if walk.id_count and (walk.wrong_ids or walk.without_id):",
        without="if walk.id_count and walk.without_id:",
        test=f"{RULES}::test_x2_files_with_ids_of_others_are_refused",
    ),
    "X3 the name mapping lists columns that the table lacks": Mutation(
        file=_LAYOUTS,
        rule="[_mapped(one, numbers) for one in tops]",
        without="[_mapped(one, numbers) for one in tops if one.id is not None]",
        test=f"{RULES}::test_x3_the_name_mapping_lists_every_column",
    ),
    "X4 bounds of numbers are values": Mutation(
        file=_BOUNDS,
        rule="found: BoolArray = has_flag(statistics.flags, exact)",
        without="found: BoolArray = has_flag(statistics.flags, exact) | True",
        test=f"{RULES}::test_x4_bounds_of_numbers_are_values",
    ),
    "X5 unsigned integers are not exported": Mutation(
        file=_LAYOUTS,
        rule="if found.kind in _UNSIGNED:",
        without="if found.kind in ():",
        test=f"{RULES}::test_x5_unsigned_integers_are_refused",
    ),
    "X6 a default needs format 3": Mutation(
        file="interop/iceberg/choose.py",
        rule="elif leaf.default is not None and any(",
        without="elif leaf.default is not None and not any(",
        test=f"{RULES}::test_x6_a_default_that_files_lack_needs_format_3",
    ),
    "X7 UUIDs have no bounds": Mutation(
        file=_BOUNDS,
        rule=" or scalar.kind is TypeKind.UUID",
        without="",
        test=f"{RULES}::test_x7_uuids_have_no_bounds",
    ),
    "X8 there are no bounds where NaN may be": Mutation(
        file=_BOUNDS,
        rule="is_nan_free = has_column & _all(~bounds.may_hold_nan, arrays)",
        without="is_nan_free = has_column",
        test=f"{RULES}::test_x8_there_are_no_bounds_where_nan_may_be",
    ),
    "X9 registered files are not exported to Delta": Mutation(
        file="interop/delta/columns.py",
        rule="if not is_own(location) and",
        without="if not location and",
        test=f"{DELTA}::test_x9_registered_files_are_refused_and_none_is_skipped",
    ),
    "X10 buckets by another hash are no partitions": Mutation(
        file="interop/iceberg/columns/partition_specs.py",
        rule="is_same = field.hash == MURMUR3 and",
        without="is_same =",
        test=f"{RULES}::test_x10_buckets_by_another_hash_are_no_partitions",
    ),
    "X11 columns that Spark cannot open are noted": Mutation(
        file="interop/iceberg/choose.py",
        rule="if any(one.kind is TypeKind.TIME or",
        without="if any(one.kind is TypeKind.UUID or",
        test=f"{RULES}::test_x11_columns_that_spark_cannot_open_are_noted",
    ),
    "X12 required columns are declared in Delta": Mutation(
        file="interop/delta/export.py",
        rule="writers |= {_INVARIANTS} if choice.has_required else set()",
        without="",
        test=f"{DELTA}::test_x12_required_columns_are_declared",
    ),
    "X13 no bound is zero": Mutation(
        file=_BOUNDS,
        rule=" or (scalar.kind in _FLOATS and value == 0)",
        without="",
        test=f"{RULES}::test_x13_no_bound_is_zero",
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
