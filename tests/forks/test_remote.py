"""Forked and spawned processes that use a lake on S3."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import underlay as ul
from tests.end_to_end.lakes import NAME, SCHEMA, ids, rows
from tests.store.servers import SECRET_KEY, S3Server

REPOSITORY = Path(__file__).parents[2]
SECONDS = 600


def outcomes(kind: str, server: S3Server, local: Path) -> dict[str, object]:
    url = f"s3://lake/{os.urandom(6).hex()}"
    command = [sys.executable, "-m", "tests.forks.remote_program", kind, server.endpoint, url, str(local)]
    done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, timeout=SECONDS, check=True)
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_children_of_a_process_that_used_s3_are_refused_at_once_and_spawned_ones_work(moto: S3Server, tmp_path: Path):
    found = outcomes("used", moto, tmp_path / "lake")
    expected = {
        "spawned pool": [[2]],
        "spawned executor": [[3]],
        "forkserver pool": [[4]],
        "forkserver executor": [[5]],
        "parent": [1, 2, 3, 4, 5, 6],
    }
    assert {name: found.pop(name) for name in expected} == expected
    assert len(found) == 9
    for name, refused in found.items():
        assert isinstance(refused, dict), name
        assert refused["code"] == "invalid_request", name
        assert 'get_context("spawn")' in refused["hint"], name
        assert "://" in refused["text"], name
        assert SECRET_KEY not in refused["text"], name


def test_children_of_a_process_that_made_no_request_use_s3(moto: S3Server, tmp_path: Path):
    assert outcomes("unused", moto, tmp_path / "lake") == {
        "inherited": [1],
        "forked pool": [[2], [3]],
        "forked executor": [[4]],
        "local": [1],
        "parent": [1, 2, 3, 4],
    }


def test_workers_of_xdist_use_s3_after_the_process_that_started_them_did(moto: S3Server, tmp_path: Path):
    options = {name: str(value) for name, value in moto.options.items()}
    url = f"s3://lake/{os.urandom(6).hex()}"
    opened = f"import pyarrow as pa, pytest\nimport underlay as ul\nLAKE = ul.connect({url!r}, options={options!r})\n"
    (tmp_path / "conftest.py").write_text(
        f"{opened}def pytest_configure(config):\n    assert [one.name for one in LAKE.tables()] == [{NAME!r}]\n"
    )
    (tmp_path / "test_it.py").write_text(
        f"{opened}@pytest.mark.parametrize('number', [2, 3])\ndef test_append(number):\n"
        f"    rows = {{'id': [number], 'name': [f'name {{number}}'], 'value': [number / 2]}}\n"
        f"    LAKE.table({NAME!r}).append(pa.table(rows))\n"
    )
    table = ul.connect(url, options=options).create_table(NAME, SCHEMA)
    table.append(rows([1]))
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", str(tmp_path)]
    subprocess.run(command, cwd=tmp_path, timeout=SECONDS, check=True, capture_output=True)
    assert ids(table) == [1, 2, 3]
