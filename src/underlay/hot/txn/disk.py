"""The disk as a hot writer uses it: each call that changes it, in one place, so that tests can record and fail them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

_sync_data: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)
"""The length of a file counts as its data; only its times need not be durable. macOS has none."""
_COPY_BYTES = 8 << 20


class HotDisk:
    """Writes, syncs and names files. Raises OSError."""

    def open(self, path: Path, *, create: bool = False) -> int:
        """A descriptor for writing and reading; with `create` of a new, empty file."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if create else 0)
        return os.open(path, flags, 0o666)

    def write(self, descriptor: int, data: bytes | memoryview, at: int) -> None:
        """Write all of it."""
        view = memoryview(data)
        while view:
            written = os.pwrite(descriptor, view, at)
            at += written
            view = view[written:]

    def sync(self, descriptor: int) -> None:
        """Make what was written durable."""
        _sync_data(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        """Cut a file: what lies behind `size` was never committed."""
        os.ftruncate(descriptor, size)

    def make_directory(self, path: Path) -> None:
        """A new directory; durable after `sync_directory` of its parent."""
        path.mkdir()

    def link(self, old: Path, new: Path) -> None:
        """A second name for a file. Where the file system has no links, a copy."""
        try:
            os.link(old, new)
        except PermissionError:
            self.copy(old, new)

    def copy(self, old: Path, new: Path) -> None:
        """A durable copy of a file."""
        source, target = os.open(old, os.O_RDONLY | os.O_CLOEXEC), self.open(new, create=True)
        try:
            at = 0
            while data := os.pread(source, _COPY_BYTES, at):
                self.write(target, data, at)
                at += len(data)
            self.sync(target)
        finally:
            os.close(source)
            os.close(target)

    def replace(self, old: Path, new: Path) -> None:
        """Give a file another name, in place of what has it."""
        os.replace(old, new)

    def sync_directory(self, path: Path) -> None:
        """Make the names in a directory durable."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove_partition(self, path: Path) -> None:
        """Remove a partition's directory with its files. Those who have them open can still read them."""
        for inner in list(path.iterdir()):
            inner.unlink()
        path.rmdir()
