from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from underlay.runtime import fork
from underlay.runtime.fork import close_before_fork, undivided
from underlay.runtime.locks import ProcessLock, cached_property


def in_child(work: Callable[[], bool]) -> bool:
    """What `work` returns in a forked child, which has a minute."""
    child = os.fork()
    if not child:
        code = 2
        try:
            import signal

            signal.alarm(60)
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


@contextmanager
def held_by_a_thread(block: Callable[[Event, Event], None]) -> Iterator[None]:
    """Run the body while a thread is in `block`, which sets the first event and waits for the second."""
    begun, over = Event(), Event()
    thread = Thread(target=block, args=(begun, over))
    thread.start()
    assert begun.wait(60)
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_fork_waits_until_an_undivided_block_is_over():
    state = ["whole"]
    begun = Event()

    def change() -> None:
        with undivided():
            state.append("half")
            begun.set()
            Event().wait(0.3)  # the fork comes in this time, or later
            state.append("whole")

    thread = Thread(target=change)
    thread.start()
    assert begun.wait(60)
    assert in_child(lambda: state == ["whole", "half", "whole"])
    thread.join()


def test_a_fork_waits_for_a_block_only_so_long(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fork, "FORK_SECONDS", 0.05)

    def block(begun: Event, over: Event) -> None:
        with undivided():
            begun.set()
            over.wait()

    def child() -> bool:
        with undivided(), undivided():
            return True

    with held_by_a_thread(block):
        assert in_child(child)


def test_a_thread_that_forks_in_a_block_of_its_own_does_not_wait_for_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fork, "FORK_SECONDS", 10_000)
    with undivided():
        assert in_child(lambda: True)
    with undivided():
        pass


def test_what_is_to_be_closed_is_closed_in_the_parent():
    class Door:
        is_open = True

        def close_before_fork(self) -> None:
            self.is_open = False

    door = Door()
    close_before_fork(door)
    assert in_child(lambda: not door.is_open)
    assert not door.is_open


def test_a_fork_waits_until_a_module_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "slowly_imported.py").write_text(
        "import threading, tests.runtime.test_fork as test\n"
        "test.importing.set()\nthreading.Event().wait(0.3)\nlast = 'line'\n"
    )
    thread = Thread(target=_import_slowly)
    thread.start()
    assert importing.wait(60)
    assert in_child(_import_slowly)
    thread.join()


importing = Event()


def _import_slowly() -> bool:
    import slowly_imported

    return bool(slowly_imported.last == "line")


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_lock_that_another_thread_holds_is_free_in_a_child(reentrant: bool):
    lock = ProcessLock(reentrant=reentrant)

    def block(begun: Event, over: Event) -> None:
        with lock:
            begun.set()
            over.wait()

    def child() -> bool:
        with lock:
            return True

    with held_by_a_thread(block):
        assert in_child(child)


def test_a_property_that_another_thread_is_working_out_is_worked_out_by_a_child():
    class Slow:
        def __init__(self, begun: Event, over: Event) -> None:
            self.begun, self.over = begun, over

        @cached_property
        def value(self) -> int:
            self.begun.set()
            self.over.wait()
            return 1

    def block(begun: Event, over: Event) -> None:
        assert Slow(begun, over).value == 1

    done = Event()
    done.set()
    with held_by_a_thread(block):
        assert in_child(lambda: Slow(Event(), done).value == 1)


PROGRAM = """
import os, sys
from underlay.runtime.fork import leave_to_parent

class Loud:
    def __del__(self):
        os.write(1, b"destroyed by %s\\n" % (b"the child" if os.getpid() != parent else b"the parent"))

parent, loud = os.getpid(), Loud()
child = os.fork()
if not child:
    leave_to_parent(loud)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_what_is_left_to_the_parent_is_not_destroyed_when_a_child_ends():
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=240, stdout=subprocess.PIPE)
    assert done.stdout == b"destroyed by the parent\n"
