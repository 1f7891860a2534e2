"""A disk that records what is written to it, and what a crash at any point of that record could leave.

A kill of the process leaves everything that was written. A power cut leaves what was synced, and of the rest any part:
of a write any of its sectors, of a directory's new names any, whatever came first.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from underlay.hot.txn.disk import HotDisk

SECTOR = 512
Crash = Literal["kill", "power cut", "power cut that keeps some"]


@dataclass(frozen=True)
class Op:
    """One call; `file` numbers an inode."""

    kind: str
    file: int = -1
    path: Path = Path()
    other: Path = Path()
    data: bytes = b""
    at: int = 0


class Stopped(OSError):
    """The disk fails from here on."""


@dataclass
class RecordingDisk(HotDisk):
    """Records every call that changes something. `fail` is asked before each and may raise."""

    ops: list[Op] = field(default_factory=list)
    fail: Callable[[int, Op], None] = lambda number, op: None
    _numbers: dict[tuple[int, int], int] = field(default_factory=dict)

    def _file(self, descriptor: int) -> int:
        found = os.fstat(descriptor)
        return self._numbers.setdefault((found.st_dev, found.st_ino), len(self._numbers))

    def _note(self, op: Op) -> None:
        self.fail(len(self.ops), op)
        self.ops.append(op)

    def acknowledge(self, number: int) -> None:
        self.ops.append(Op("ack", at=number))

    def open(self, path: Path, *, create: bool = False) -> int:
        if create:
            self.fail(len(self.ops), Op("create", path=path))
        descriptor = super().open(path, create=create)
        if create:
            # an inode's number may be used again: this is another file
            found = os.fstat(descriptor)
            self._numbers[found.st_dev, found.st_ino] = max(self._numbers.values(), default=-1) + 1
            self.ops.append(Op("create", self._file(descriptor), path))
        return descriptor

    def write(self, descriptor: int, data: bytes | memoryview, at: int) -> None:
        self._note(Op("write", self._file(descriptor), data=bytes(data), at=at))
        super().write(descriptor, data, at)

    def sync(self, descriptor: int) -> None:
        self._note(Op("sync", self._file(descriptor)))

    def truncate(self, descriptor: int, size: int) -> None:
        self._note(Op("truncate", self._file(descriptor), at=size))
        super().truncate(descriptor, size)

    def make_directory(self, path: Path) -> None:
        self._note(Op("mkdir", path=path))
        super().make_directory(path)

    def link(self, old: Path, new: Path) -> None:
        self._note(Op("link", path=old, other=new))
        super().link(old, new)

    def replace(self, old: Path, new: Path) -> None:
        self._note(Op("replace", path=old, other=new))
        super().replace(old, new)

    def sync_directory(self, path: Path) -> None:
        self._note(Op("sync directory", path=path))

    def remove_partition(self, path: Path) -> None:
        self._note(Op("remove", path=path))
        super().remove_partition(path)


class Disk:
    """What a record leaves: the contents of files and the names of directories, durable and not."""

    def __init__(self, ops: list[Op], root: Path) -> None:
        self.root = root
        self.names: dict[Path, int] = {}
        self.kept_names: dict[Path, int] = {}
        self.folders: set[Path] = {root}
        self.kept_folders: set[Path] = {root}
        self.files: dict[int, bytearray] = {}
        self.kept_files: dict[int, bytes] = {}
        self.loose: dict[int, list[Op]] = {}
        """Writes since a file was last synced."""
        self.acknowledged = 0
        for op in ops:
            self._apply(op)

    def _apply(self, op: Op) -> None:
        match op.kind:
            case "ack":
                self.acknowledged = op.at
            case "create":
                self.files[op.file], self.kept_files[op.file], self.names[op.path] = bytearray(), b"", op.file
            case "write" | "truncate":
                data = self.files.setdefault(op.file, bytearray())
                self.kept_files.setdefault(op.file, b"")
                written(data, op)
                self.loose.setdefault(op.file, []).append(op)
            case "sync":
                self.kept_files[op.file] = bytes(self.files.get(op.file, b""))
                self.loose.pop(op.file, None)
            case "mkdir":
                self.folders.add(op.path)
            case "link":
                self.names[op.other] = self.names[op.path]
            case "replace":
                self.names[op.other] = self.names.pop(op.path)
            case "sync directory":
                for path in set(self.names) | set(self.kept_names):
                    if path.parent == op.path:
                        if path in self.names:
                            self.kept_names[path] = self.names[path]
                        else:
                            self.kept_names.pop(path, None)
                self.kept_folders |= {path for path in self.folders if path.parent == op.path}
            case "remove":
                self.names = {path: file for path, file in self.names.items() if path.parent != op.path}
                self.kept_names = {path: file for path, file in self.kept_names.items() if path.parent != op.path}
                self.folders.discard(op.path)
                self.kept_folders.discard(op.path)

    def restore(self, target: Path, crash: Crash, rng: random.Random) -> None:
        """Make files as the crash leaves them."""
        if crash == "kill":
            folders, names, files = self.folders, self.names, {n: bytes(data) for n, data in self.files.items()}
        else:
            is_kept = (lambda: rng.random() < 0.5) if crash == "power cut that keeps some" else (lambda: False)
            folders = self.kept_folders | {path for path in self.folders if is_kept()}
            names = self.kept_names | {path: file for path, file in self.names.items() if is_kept()}
            files = {number: self._some(number, is_kept) for number in self.files}
        for path in sorted(folders):
            if all(above in folders for above in path.parents if above.is_relative_to(self.root)):
                (target / path.relative_to(self.root)).mkdir(parents=True, exist_ok=True)
        made: dict[int, Path] = {}
        for path, number in names.items():
            new = target / path.relative_to(self.root)
            if not new.parent.is_dir():
                continue
            if number in made:
                new.hardlink_to(made[number])
            else:
                new.write_bytes(files.get(number, b""))
                made[number] = new

    def _some(self, number: int, is_kept: Callable[[], bool]) -> bytes:
        data = bytearray(self.kept_files.get(number, b""))
        for op in self.loose.get(number, []):
            if op.kind == "truncate":
                if is_kept():
                    written(data, op)
                continue
            for begin in range(0, max(len(op.data), 1), SECTOR):
                if is_kept():
                    written(data, Op("write", data=op.data[begin : begin + SECTOR], at=op.at + begin))
        return bytes(data)


def written(data: bytearray, op: Op) -> None:
    """A write, or a cut."""
    if op.kind == "truncate":
        del data[op.at :]
        return
    data += bytes(max(0, op.at + len(op.data) - len(data)))
    data[op.at : op.at + len(op.data)] = op.data
