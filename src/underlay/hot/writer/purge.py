"""Removes directories of partitions that no committed state names, once readers that began before have had their time.

A reader holds no lock and leaves no trace. It names the directories of the state that it pinned, and may open them
later. So a directory stays for `reader_age_seconds` after it was replaced, as its marker's time says: by the clock of
the file system, and if that goes back, longer.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from underlay.hot.txn.disk import HotDisk
from underlay.hot.txn.partition_names import parse_directory

RETIRED_NAME = "_retired"
READER_AGE_SECONDS = 300.0


def retire(path: Path) -> None:
    """Mark a directory that a newer state does not name. If this fails, the next purge marks it."""
    with suppress(OSError):
        (path / RETIRED_NAME).touch()


def purge(disk: HotDisk, folder: Path, in_use: Collection[str], age_seconds: float) -> list[str]:
    """Remove directories that are not in use and were retired long enough ago. Returns their names."""
    gone = []
    now = time.time()
    for path in sorted(folder.iterdir()):
        if path.name in in_use or parse_directory(path.name) is None or not path.is_dir():
            continue
        marker = path / RETIRED_NAME
        with suppress(OSError):
            if not marker.exists():  # a writer died before it marked it, or before it was ever committed
                marker.touch()
            if now - marker.stat().st_mtime >= age_seconds:
                disk.remove_partition(path)
                gone.append(path.name)
    return gone
