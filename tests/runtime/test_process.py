from __future__ import annotations

import os
import subprocess
import sys

from underlay.runtime.process import is_gone, own_process

SAY = "from underlay.runtime.process import own_process; print(own_process(), flush=True); input()"


def test_a_process_is_there_until_it_ends_whether_it_was_waited_for_or_not():
    assert own_process()
    assert not is_gone(own_process())
    with subprocess.Popen(
        [sys.executable, "-c", SAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        name = child.stdout.readline().strip()
        assert not is_gone(name)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it ended, and is there to be asked about
        assert is_gone(name)
    assert is_gone(name)


def test_another_process_with_the_same_number_is_not_taken_for_it():
    place, pid, started = own_process().split("/")
    assert is_gone(f"{place}/{pid}/{int(started) - 1}")


def test_nothing_is_known_of_processes_elsewhere():
    place, _, started = own_process().split("/")
    assert not is_gone(f"other{place}/{2**22}/{started}")
    assert is_gone(f"{place}/{2**22}/{started}")
    assert not any(is_gone(name) for name in ("", "/", "//", place, f"{place}/-1/0", f"{place}/x/0"))
