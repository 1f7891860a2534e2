from __future__ import annotations

import subprocess
import sys

import pytest

from underlay.runtime.threads import side_by_side

AT_EXIT = """
import atexit
from underlay.runtime.threads import side_by_side
atexit.register(lambda: print(side_by_side(lambda n: n * n, range(5), 3)))
"""


@pytest.mark.parametrize("count", [1, 3, 50])
def test_results_come_in_order(count: int):
    assert side_by_side(lambda number: number * number, range(20), count) == [n * n for n in range(20)]
    assert side_by_side(lambda number: number, [], count) == []


def test_an_error_of_the_work_is_raised():
    def work(number: int) -> int:
        raise RuntimeError(f"no {number}")

    with pytest.raises(RuntimeError, match="no 0"):
        side_by_side(work, [0, 1], 2)


def test_work_goes_on_in_the_caller_while_the_interpreter_ends():
    done = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, check=True)
    assert done.stdout == "[0, 1, 4, 9, 16]\n", done.stderr
