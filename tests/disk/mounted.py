"""File systems that tests mount, where they may."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def mount(*arguments: str) -> str:
    """What went wrong, or nothing."""
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True)
    return done.stderr if done.returncode else ""


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A tmpfs with these options in a new folder. Skips the test where none can be mounted."""
    folder.mkdir()
    if os.geteuid():
        pytest.skip("needs root, to mount a file system")
    if problem := mount("-t", "tmpfs", "-o", options, "tmpfs", str(folder)):
        pytest.skip(f"this machine may not mount a tmpfs: {problem}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
