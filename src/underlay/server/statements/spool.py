"""The folder of kept results: one of this server's own, locked, so that what dead servers left is told from it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from underlay.errors import from_os_error

_PREFIX = "server-"
_LOCK = "lock"


class SpoolFolder:
    """Made when a server starts, removed when it ends; if it is killed, by the next one that starts."""

    def __init__(self, parent: Path) -> None:
        parent = parent.absolute()  # workers have folders of their own: a relative path would be another one there
        try:
            parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            sweep_spools(parent)
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
            self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        except OSError as error:
            raise from_os_error(error, str(parent), hint="Give --spool a folder on a local disk.") from None

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def sweep_spools(parent: Path) -> None:
    """Remove the folders of servers that are dead: nobody holds their locks."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # it begins or ends just now
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(lock)
