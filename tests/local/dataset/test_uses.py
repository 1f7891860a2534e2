"""Each use by another library, in a process of its own: what has no C++ object in it crashes the interpreter."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.local.dataset.uses import USES


@pytest.fixture(scope="module")
def answers():
    done = subprocess.run(
        [sys.executable, "-m", "tests.local.dataset.uses"], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("use", USES)
def test_a_use_is_answered(answers, use):
    assert answers[use] == USES[use][1]


ABANDON = """
import pyarrow as pa, underlay as ul
table = ul.connect("memory://m").create_table("a.b", "i bigint", properties={"block_rows": 1000})
table.append(pa.table({"i": range(200_000)}))
from underlay.local.dataset import scanner
scanner.FILE_BYTES = 1
kept = []
for _ in range(4):
    batches = table.dataset().scanner().to_batches()
    next(batches)
    kept.append(batches)
reader = table.dataset().scanner().to_reader()
reader.read_next_batch()
print("left")
"""


def test_a_scan_left_in_the_middle_does_not_disturb_the_exit():
    done = subprocess.run([sys.executable, "-c", ABANDON], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "left\n"), done.stderr[-2000:]
