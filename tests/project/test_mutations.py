"""The tests are awake: with a rule of pruning taken out of the source, a named test turns red."""

from __future__ import annotations

import pytest

from tests.gate import some
from tests.mutations import FAILED, MUTATIONS, PASSED, apply, copy_source, run_tests

CHOSEN = some(list(MUTATIONS), 5)
"""Each runs tests in a process of its own."""


def test_the_chosen_tests_pass_on_an_unchanged_copy(tmp_path):
    done = run_tests(copy_source(tmp_path), sorted({MUTATIONS[name].test for name in CHOSEN}))
    assert done.returncode == PASSED, done.stdout


def test_every_rule_is_in_the_source(tmp_path):
    folder = copy_source(tmp_path)
    for mutation in MUTATIONS.values():
        apply(mutation, folder)


@pytest.mark.parametrize("name", CHOSEN)
def test_a_rule_taken_out_is_noticed(name, tmp_path):
    mutation = MUTATIONS[name]
    folder = copy_source(tmp_path)
    apply(mutation, folder)
    done = run_tests(folder, [mutation.test])
    assert done.returncode == FAILED, done.stdout
    assert "AssertionError" in done.stdout or "assert " in done.stdout, done.stdout
