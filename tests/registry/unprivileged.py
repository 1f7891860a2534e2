"""A user who may not write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def unprivileged(*folders: Path) -> Iterator[None]:
    """Be a user who may read but not write in the folders. Root may write everywhere."""
    for folder in folders:
        folder.chmod(0o555)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        for folder in folders:
            folder.chmod(0o755)
