"""Makes calls into C++ interruptible by Ctrl-C: the main thread waits in Python meanwhile, and a signal ends the
wait.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread, current_thread, main_thread
from typing import TypeVar

_INTERRUPT_SECONDS = 0.1
_T = TypeVar("_T")


class Worker:
    """One thread, started by the first call, that makes the main thread's calls; other threads make their own."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="underlay-sql")
        self._has_thread = False

    def call(self, function: Callable[[], _T], interrupt: Callable[[], None]) -> _T:
        """What the function returns or raises. When a signal ends the wait, the function is interrupted first, and has
        ended.
        """
        if current_thread() is not main_thread():
            return function()
        future: Future[_T] = Future()  # our own future: a signal during submit would lose the executor's
        over = SimpleQueue[None]()  # a signal ends this wait too, and it is cheaper than waiting for a future
        try:
            if not self._begin(future, function, over):
                return function()
            while not _is_over(over):
                pass
        except BaseException:
            _stop(future, interrupt)
            raise
        try:
            return future.result()
        finally:
            del future  # its error references this frame

    def close(self) -> None:
        """End the thread after its call."""
        self._executor.shutdown(wait=False)

    def _begin(self, future: Future[_T], function: Callable[[], _T], over: SimpleQueue[None]) -> bool:
        try:
            if not self._has_thread:
                # A signal between the start of the executor's thread and the note it takes of it would leave a thread
                # that nobody ends, and the interpreter would wait for it at exit. Signals reach only the main thread.
                starter = Thread(target=self._start, name="underlay-sql-start", daemon=True)
                starter.start()
                starter.join()
                self._has_thread = True
            self._executor.submit(_fulfil, future, function, over)
        except RuntimeError:  # the interpreter is exiting: no new threads
            return False
        return True

    def _start(self) -> None:
        with suppress(RuntimeError):  # the interpreter is exiting
            self._executor.submit(_nothing)


class NoWorker(Worker):
    """Makes every call where it is asked for: for calls that take no time."""

    def __init__(self) -> None:
        pass

    def call(self, function: Callable[[], _T], interrupt: Callable[[], None]) -> _T:
        """What the function returns or raises."""
        return function()

    def close(self) -> None:
        """There is no thread."""


def _is_over(over: SimpleQueue[None]) -> bool:
    """Wait a while. A signal that comes just before the wait does not end it: Python sees it when the wait is over."""
    try:
        over.get(timeout=_INTERRUPT_SECONDS)
    except Empty:
        return False
    return True


def _nothing() -> None:
    pass


def _fulfil(future: Future[_T], function: Callable[[], _T], over: SimpleQueue[None]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = function()
    except BaseException as error:  # noqa: BLE001  # not caught: the thread that waits raises it
        future.set_exception(error)
    else:
        future.set_result(result)
    finally:
        over.put(None)


def _stop(future: Future[_T], interrupt: Callable[[], None]) -> None:
    """Interrupt until the call has ended. An interrupt that arrives before the query begins is lost, so it is
    repeated.
    """
    future.cancel()
    while not future.done():
        try:
            interrupt()
            wait([future], timeout=_INTERRUPT_SECONDS)
        except KeyboardInterrupt:  # the exception being raised says it already
            continue
