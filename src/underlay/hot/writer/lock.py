"""One writer for each hot table: a lock of the operating system, and an epoch that each writer raises.

The lock ends with the process, however that ends. The epoch stands in each record of `_txn`. A writer whose lock file
was deleted, so that another one could take a new one, notices at its next commit that the file is not its own.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

from underlay.errors import JobTakenOver, LeaseHeld, Malformed, from_os_error
from underlay.hot.txn.disk import HotDisk
from underlay.runtime.fork import start_afresh_after_fork
from underlay.runtime.posix import need_posix

LOCK_NAME = "_lock"
_MOST_BYTES = 64
_ATTEMPTS = 3
_WAIT_SECONDS = 0.02


def is_locked(folder: Path) -> bool:
    """Whether a writer holds the lock now. Takes it for a moment; a writer that opens then waits for that."""
    import fcntl  # which Windows lacks

    try:
        descriptor = os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


class WriterLock:
    """The lock, held until `release`. Not inherited by a forked child."""

    def __init__(self, folder: Path, disk: HotDisk, least_epoch: int) -> None:
        """Take it. Raises LeaseHeld when another process, or another writer of this one, has it."""
        need_posix("hot partitions")
        self.path = folder / LOCK_NAME
        self._process = os.getpid()
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise from_os_error(error, str(self.path)) from error
        try:
            self._take()
            self.epoch = max(self._read(), least_epoch) + 1
            disk.write(self._descriptor, f"{self.epoch:020} {self._process:010}\n".encode(), 0)
            disk.sync(self._descriptor)
        except OSError as error:
            os.close(self._descriptor)
            raise from_os_error(error, str(self.path)) from error
        except LeaseHeld:
            os.close(self._descriptor)
            raise
        start_afresh_after_fork(self)

    def _take(self) -> None:
        import fcntl  # which Windows lacks

        for attempt in range(_ATTEMPTS):
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
            if attempt + 1 < _ATTEMPTS:
                time.sleep(_WAIT_SECONDS)  # `is_locked` takes it for a moment
        holder = os.pread(self._descriptor, _MOST_BYTES, 0).split()
        raise LeaseHeld(
            "another writer has the hot partitions of this table",
            place=str(self.path),
            found=f"process {int(holder[1])}" if len(holder) == 2 and holder[1].isdigit() else None,
            hint="There is one writer for each table. Close the other one, or append through it.",
        )

    def _read(self) -> int:
        words = os.pread(self._descriptor, _MOST_BYTES, 0).split()
        if not words:
            return 0
        if not words[0].isdigit():
            raise Malformed("the lock file does not hold an epoch", place=str(self.path), found=repr(words[0]))
        return int(words[0])

    def check(self) -> None:
        """Raise JobTakenOver unless the lock is still this writer's."""
        try:
            is_same = os.path.samestat(os.stat(self.path), os.fstat(self._descriptor)) and self._read() == self.epoch
        except OSError:
            is_same = False
        if not is_same or os.getpid() != self._process:
            raise JobTakenOver(
                "this writer does not hold the lock of the hot partitions any longer",
                place=str(self.path),
                expected=f"epoch {self.epoch}",
                hint="Nothing was written. Open a new writer.",
            )

    def release(self) -> None:
        """Let another writer take it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def start_afresh(self) -> None:
        """In a forked child: the lock belongs to the open file, which a child shares, and would outlive its owner."""
        self.release()
