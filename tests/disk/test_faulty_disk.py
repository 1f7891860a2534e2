"""A disk that fails, is full, or turns read-only at any call: no acknowledged change is lost, and the next writer goes
on. `program.py` says what is checked at each point; `faulty_disk.c` fails the calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.disk.faulty_disk import build, start
from tests.disk.program import FAILURES, VERBS
from tests.gate import IS_ALL, SEED, part, some


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("library"))


@pytest.mark.parametrize("failure", some(list(FAILURES), 3))
def test_a_disk_that_fails_loses_no_commit_and_the_next_writer_goes_on(library: Path, tmp_path: Path, failure: str):
    verbs = part(list(VERBS), list(FAILURES).index(failure), of=len(FAILURES))
    step = 1 if IS_ALL else 5 if "read" not in failure else 20
    ended = start(library, "tests.disk.program", str(tmp_path), str(step), str(SEED % step), failure, *verbs)
    assert ended.returncode == 0, ended.stderr[-3000:]
    counts = json.loads(ended.stdout)
    assert set(counts) == set(verbs)
    assert any(found for found in counts.values()), "no call failed"


@pytest.mark.parametrize("failure", some(list(FAILURES), 8))
def test_a_registry_whose_disk_fails_is_in_nobodys_way(library: Path, tmp_path: Path, failure: str):
    step = 1 if IS_ALL else 16
    ended = start(library, "tests.disk.registry_program", str(tmp_path), str(step), str(SEED % step), failure)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert int(ended.stdout) > 0, "no call failed"
