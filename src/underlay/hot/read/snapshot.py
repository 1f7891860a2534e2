"""A table with its hot partitions, at one moment (R15): a snapshot like any other, with a few files more.

The order makes it consistent. `_txn` is pinned first, and the root read after it. The root counts, in a fence, how
often partitions of this hot table were sealed; the record of `_txn` has the count of the last seal that is done, and
marks the partitions that the next one takes. So

| the root's count | what is read |
|---|---|
| the same | sealed files, and all partitions |
| one more, and partitions are marked | the marked ones are files of the table by now: only the others are read |
| more | partitions were sealed since `_txn` was pinned: it is pinned again |
| less | the root is older than what was pinned: it is read again |
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from underlay.errors import Inconsistent, NotFound, Unavailable
from underlay.hot.read.entries import HotEntries
from underlay.hot.txn.file import TXN_NAME, read_txn
from underlay.hot.txn.identity import IDENTITY_NAME, HotIdentity, read_identity
from underlay.hot.txn.partition_names import Granularity, directory_name, partition_name
from underlay.hot.txn.record import TxnPartition, TxnRecord
from underlay.index.entry import FileEntry, FileLayout
from underlay.index.keys import HOT_FENCE
from underlay.index.root import Root
from underlay.runtime.locks import ProcessLock
from underlay.table.open_table import Head, OpenTable
from underlay.table.versions.snapshot import Snapshot

_ATTEMPTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedHot:
    """A committed state of a hot table. Its bytes do not change, and stay for the age that readers may have."""

    folder: Path
    identity: HotIdentity
    record: TxnRecord

    def directory(self, partition: TxnPartition) -> Path:
        """Where a partition lies."""
        name = partition_name(partition.timestamp, Granularity(self.identity.partition), self.identity.unit)
        return self.folder / directory_name(name, partition.name_txn)

    def unsealed(self, root: Root) -> tuple[TxnPartition, ...] | None:
        """The partitions whose rows this root does not have; None when they cannot be told from these two."""
        if not self.record.sealed_epoch:
            return ()  # a writer has just begun, and the root may not know it yet
        ahead = root.fences.get(self.identity.fence, 0) - self.record.sealed_epoch
        if ahead == 0:
            return self.record.partitions
        if ahead == 1 and self.record.sealing:
            return tuple(one for one in self.record.partitions if not one.is_sealing)
        return None


class HotSnapshot(Snapshot):
    """A version of a table together with a state of its hot partitions. Its root is not one of the store: its tail has
    the hot files too."""

    def __init__(self, sealed: Snapshot, hot: PinnedHot, files: Sequence[tuple[FileEntry, FileLayout]]) -> None:
        super().__init__(sealed.store, sealed.keys, with_hot_files(sealed.root, files), sealed.load_segment)
        self.sealed = sealed
        self.hot = hot
        self.hot_files = tuple(files)


def with_hot_files(root: Root, files: Sequence[tuple[FileEntry, FileLayout]]) -> Root:
    """The root with these files in its tail. It is not one of the store, and is never written."""
    layouts = {layout.id: layout for layout in (*root.layouts, *(layout for _, layout in files))}
    rows = sum(int(np.frombuffer(entry.block_rows, "<i8").sum()) for entry, _ in files)
    return replace(
        root,
        tail=(*root.tail, *(entry for entry, _ in files)),
        layouts=tuple(layouts.values()),
        row_count=root.row_count + rows,
        file_count=root.file_count + len(files),
        data_bytes=root.data_bytes + sum(entry.size_bytes for entry, _ in files),
    )


class HotReader:
    """Reads the hot partitions below one directory. Safe for many threads, and for forks."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).expanduser().absolute()
        self._entries = HotEntries()
        self._identities: dict[Path, tuple[tuple[int, int], HotIdentity]] = {}
        self._newest: dict[Path, tuple[Root, int, HotSnapshot]] = {}
        self._lock = ProcessLock()

    def folder(self, table_folder: str) -> Path:
        """Where the hot partitions of a table lie; its folder in the lake stays the same when it is renamed."""
        return self.root.joinpath(*table_folder.split("/"))

    def pin(self, table_folder: str) -> PinnedHot | None:
        """What is committed now; None when the table has no hot partitions here. Takes no lock."""
        folder = self.folder(table_folder)
        identity = self._identity(folder)
        if identity is None:
            return None
        try:
            record = read_txn(folder / TXN_NAME)
        except NotFound:
            return None  # a writer has just begun
        if not record.is_ours:
            raise Inconsistent(
                "the transaction file was not written by Underlay", place=str(folder / TXN_NAME), expected="a checksum"
            )
        return PinnedHot(folder=folder, identity=identity, record=record)

    def snapshot(self, table: OpenTable, head: Head, max_staleness_seconds: float) -> Snapshot:
        """The newest version and all rows that are hot. `head` says which table it is; it may be outdated.

        Raises Unavailable when partitions are sealed faster than they can be read; Inconsistent when the lake is older
        than the hot partitions.
        """
        for _ in range(_ATTEMPTS):
            pinned = self.pin(head.revision.table_folder)
            head = table.head(max_staleness_seconds)
            if pinned is None or pinned.identity.revision != head.revision.id:
                return table.snapshot(head)
            if head.root.fences.get(pinned.identity.fence, 0) < pinned.record.sealed_epoch:
                head = table.head()
                _check_not_older(pinned, head)
            partitions = pinned.unsealed(head.root)
            if partitions is not None:
                try:
                    return self._snapshot(table, head, pinned, partitions)
                except NotFound:
                    continue  # the directory was replaced, and purged since
        raise Unavailable("hot partitions are sealed faster than they can be read", place=table.name, hint="Try again.")

    def _snapshot(
        self, table: OpenTable, head: Head, pinned: PinnedHot, partitions: Sequence[TxnPartition]
    ) -> HotSnapshot:
        with self._lock:
            known = self._newest.get(pinned.folder)
        if known is not None and known[0] is head.root and known[2].hot == pinned:
            return known[2]
        sealed = table.snapshot(head)
        files = [
            self._entries.entry(pinned.identity.id, pinned.directory(one), one.size_bytes or 0, sealed.schema)
            for one in partitions
            if one.row_count
        ]
        found = HotSnapshot(sealed, pinned, files)
        with self._lock:
            self._newest[pinned.folder] = (head.root, pinned.record.version, found)
        return found

    def _identity(self, folder: Path) -> HotIdentity | None:
        try:
            status = os.stat(folder / IDENTITY_NAME)
        except OSError:
            return None
        stamp = (status.st_mtime_ns, status.st_ino)
        with self._lock:
            known = self._identities.get(folder)
        if known is not None and known[0] == stamp:
            return known[1]
        found = read_identity(folder)
        if found is not None:
            with self._lock:
                self._identities[folder] = (stamp, found)
        return found


def hot_fences(root: Root) -> list[str]:
    """The fences of hot tables that this version knows: their rows may lie on some machine's disk."""
    return sorted(name for name in root.fences if name.startswith(HOT_FENCE))


def _check_not_older(pinned: PinnedHot, head: Head) -> None:
    found = head.root.fences.get(pinned.identity.fence, 0)
    if found < pinned.record.sealed_epoch:
        raise Inconsistent(
            "the lake is older than the hot partitions: rows that were sealed are in neither",
            place=str(pinned.folder),
            expected=f"seal {pinned.record.sealed_epoch}",
            found=f"seal {found}",
            hint="The lake was restored from an older copy. Restore the hot directory too, or move it away.",
        )
