"""The folder of kept results. Each server locks its own, which tells it apart from folders that dead servers left."""

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
    """Made when a server starts, removed when it ends; if the server is killed, the next one removes it."""

    def __init__(self, parent: Path) -> None:
        parent = parent.absolute()  # workers run in folders of their own, where a relative path would lead elsewhere
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
            continue  # that server is just starting or ending
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(lock)
