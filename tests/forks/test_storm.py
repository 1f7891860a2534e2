"""Forks while commits are made and applied to the registry."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import gate
from tests.registry.servers import PostgresServer

REPOSITORY = Path(__file__).parents[2]
ROUNDS = gate.sized(5, 40)
SEEDS = gate.sized([gate.SEED], [gate.SEED + at for at in range(6)])


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("seed", SEEDS)
def test_children_forked_in_the_midst_of_commits_append_scan_and_have_a_registry(
    kind: str, seed: int, tmp_path: Path, request: pytest.FixtureRequest
):
    lake = tmp_path / "lake"
    registry = f"sqlite:///{lake / '_registry' / 'registry.sqlite'}"
    if kind == "postgresql":
        server = request.getfixturevalue("postgres")
        assert isinstance(server, PostgresServer)
        registry = server.create_database()
    command = [sys.executable, "-m", "tests.forks.storm_program", str(lake), registry, str(ROUNDS), str(seed)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=850, env=os.environ)
    assert (done.stdout, done.stderr) == (f"{ROUNDS} [0]\n", "")
