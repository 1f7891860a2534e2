"""Ctrl-C and SIGTERM for commands that hold claims or leases: the first unwinds, the second ends the process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

_STDERR = 2
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 130
"""The exit code of an interrupted command."""


@contextmanager
def stoppable(words: str) -> Iterator[None]:
    """The first signal prints `words` and raises KeyboardInterrupt here; the next one ends the process at once.

    Threads other than the main one get no signals.
    """
    if current_thread() is not main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        for one in _SIGNALS:
            signal.signal(one, signal.SIG_DFL)
        os.write(_STDERR, f"\n{words}\n".encode())  # the signal may have interrupted a print
        raise KeyboardInterrupt

    before = {one: signal.signal(one, stop) for one in _SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
