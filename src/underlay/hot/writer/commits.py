"""Commits to one hot table: rows into partitions, all of them in one version of `_txn`. For one thread at a time.

The order on the disk, so that a crash or a power cut at any point leaves the version before or the one after, whole:

1. the new bytes of `data.parquet` and `_pm`, and new directories: written and synced;
2. the sizes of sidecars, and the record of `_txn` in the slot that is not in use: written and synced;
3. the version of `_txn`: written and synced. This is the commit.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from underlay.errors import CommitUnknown, UnderlayError, from_os_error
from underlay.hot.files.layout import HotLayout, Times
from underlay.hot.files.partition import HotPartition
from underlay.hot.files.version import StagedVersion
from underlay.hot.txn.disk import HotDisk
from underlay.hot.txn.file import TXN_NAME, TxnWriter, create_txn, read_txn
from underlay.hot.txn.identity import HotIdentity
from underlay.hot.txn.layout import NO_MAXIMUM, NO_MINIMUM
from underlay.hot.txn.partition_names import Granularity, begins_of, directory_name, partition_name
from underlay.hot.txn.record import TxnPartition, TxnRecord
from underlay.hot.writer.lock import WriterLock
from underlay.hot.writer.purge import purge, retire

_THREAD_SECONDS = 0.0003
"""About what it takes to wake a thread."""
_MOST_OPEN = 16
"""Partitions whose files are kept open."""

Stage = Callable[[HotPartition, int], StagedVersion]


class HotCommits:
    """The committed state of a hot table, and the only one who changes it while its lock is held."""

    def __init__(self, folder: Path, identity: HotIdentity, disk: HotDisk | None = None) -> None:
        """Take the lock, and open what is committed, or begin with nothing. Raises LeaseHeld, Damaged, Unavailable."""
        self.folder = folder
        self.identity = identity
        self.granularity = Granularity(identity.partition)
        self._disk = disk or HotDisk()
        self._open: OrderedDict[int, HotPartition] = OrderedDict()
        self._broken: UnderlayError | None = None
        self._pool = ThreadPoolExecutor(4, "hot sync")
        self._sync_seconds = 0.0
        path = folder / TXN_NAME
        least = read_txn(path).writer_epoch if path.exists() else 0
        self.lock = WriterLock(folder, self._disk, least)
        try:
            if not path.exists():
                create_txn(path, TxnRecord(version=0, writer_epoch=self.lock.epoch), self._disk)
            self._txn = TxnWriter(path, self._disk)
        except BaseException:
            self.lock.release()
            raise

    @property
    def state(self) -> TxnRecord:
        """What is committed."""
        return self._txn.newest

    def close(self) -> None:
        """Close all files, and release the lock."""
        for partition in self._open.values():
            partition.close()
        self._open.clear()
        self._txn.close()
        self._pool.shutdown()
        self.lock.release()

    def append(self, rows: pa.Table, times: Times, layout: HotLayout) -> TxnRecord:
        """Commit these rows. Raises Unavailable, and nothing was committed; CommitUnknown, and the writer is over."""
        if not len(times):
            return self.state
        begins = begins_of(times, self.granularity, self.identity.unit)
        stages: dict[int, Stage] = {}
        for begin in np.unique(begins).tolist():
            chosen = begins == begin
            some, moments = (rows, times) if bool(chosen.all()) else (rows.filter(pa.array(chosen)), times[chosen])
            stages[begin] = _append_to(some, moments, layout)
        if any(one.timestamp in stages for one in self.state.sealing):
            raise AssertionError("rows for a partition that is being sealed must wait")
        low, high = int(times.min()), int(times.max())

        def changed(record: TxnRecord) -> TxnRecord:
            return replace(
                record,
                min_timestamp=min(record.min_timestamp, low),
                max_timestamp=max(record.max_timestamp, high),
            )

        return self._commit(stages, layout, changed)

    def compact(self, begins: Iterable[int], layout: HotLayout) -> TxnRecord:
        """Write these partitions anew, without dead bytes."""
        stages: dict[int, Stage] = {}
        for begin in begins:
            stages[begin] = lambda partition, txn: partition.stage_compacted(layout, txn)
        return self._commit(stages, layout, lambda record: record) if stages else self.state

    def mark(self, begins: Sequence[int]) -> TxnRecord:
        """Mark exactly these partitions as being sealed."""
        chosen = set(begins)

        def changed(record: TxnRecord) -> TxnRecord:
            marked = tuple(replace(one, is_sealing=one.timestamp in chosen) for one in record.partitions)
            return replace(record, partitions=marked)

        return self._commit({}, None, changed)

    def drop_sealed(self, epoch: int, layout: HotLayout | None) -> TxnRecord:
        """Drop the partitions that are marked: the root says by this epoch that they are files of the table."""
        gone = self.state.sealing

        def changed(record: TxnRecord) -> TxnRecord:
            left = tuple(one for one in record.partitions if not one.is_sealing)
            low, high = (NO_MINIMUM, NO_MAXIMUM) if not left else (record.min_timestamp, record.max_timestamp)
            if left and layout is not None:
                first, last = (self._partition(one.timestamp, layout).state for one in (left[0], left[-1]))
                low = first.blocks[0].low if first is not None and first.blocks else low
                high = last.blocks[-1].high if last is not None and last.blocks else high
            return replace(
                record,
                partitions=left,
                sealed_epoch=epoch,
                min_timestamp=low,
                max_timestamp=high,
                data_version=record.data_version + 1,
                partition_table_version=record.partition_table_version + 1,
            )

        found = self._commit({}, layout, changed)
        for one in gone:
            self._forget(one.timestamp)
            retire(self.folder / directory_name(self.name_of(one.timestamp), one.name_txn))
        return found

    def set_sealed_epoch(self, epoch: int) -> TxnRecord:
        """Begin to count seals where the root does."""
        return self._commit({}, None, lambda record: replace(record, sealed_epoch=epoch))

    def name_of(self, begin: int) -> str:
        """The name of a partition."""
        return partition_name(begin, self.granularity, self.identity.unit)

    def directory_of(self, one: TxnPartition) -> Path:
        """The directory of a partition."""
        return self.folder / directory_name(self.name_of(one.timestamp), one.name_txn)

    def purge(self, age_seconds: float) -> list[str]:
        """Remove directories that no reader can want any longer."""
        in_use = {directory_name(self.name_of(one.timestamp), one.name_txn) for one in self.state.partitions}
        return purge(self._disk, self.folder, in_use, age_seconds)

    def partition(self, begin: int, layout: HotLayout) -> HotPartition:
        """A committed partition, to read its blocks."""
        return self._partition(begin, layout)

    def _partition(self, begin: int, layout: HotLayout) -> HotPartition:
        found = self._open.get(begin)
        if found is not None:
            self._open.move_to_end(begin)
            return found
        made = HotPartition(self._disk, self.folder, self.name_of(begin), begin)
        known = self.state.find(begin)
        if known is not None:
            try:
                made.open(known.name_txn, known.size_bytes or 0, layout)
            except OSError as error:
                made.close()
                raise from_os_error(error, str(self.directory_of(known))) from error
            made.cut()
        self._open[begin] = made
        while len(self._open) > _MOST_OPEN:
            oldest = next(iter(self._open))
            if oldest == begin:
                break
            self._forget(oldest)
        return made

    def _forget(self, begin: int) -> None:
        found = self._open.pop(begin, None)
        if found is not None:
            found.close()

    def _commit(
        self, stages: dict[int, Stage], layout: HotLayout | None, changed: Callable[[TxnRecord], TxnRecord]
    ) -> TxnRecord:
        if self._broken is not None:
            raise self._broken
        self.lock.check()
        before = self.state
        version = before.version + 1
        done: list[tuple[HotPartition, StagedVersion]] = []
        pending: list[HotPartition] = []
        try:
            for begin, stage in stages.items():
                if layout is None:
                    raise AssertionError("rows are staged with a layout")
                partition = self._partition(begin, layout)
                pending.append(partition)
                done.append((partition, stage(partition, version)))
            record = changed(self._record(before, version, done))
            self._write(record, [staged for _, staged in done], [partition for partition, _ in done])
        except BaseException as error:
            self._abandon(done, pending)
            if isinstance(error, OSError):
                raise from_os_error(error, str(self.folder), hint="Nothing was committed.") from error
            raise
        try:
            self._txn.publish(record)
            self._txn.sync()
        except OSError as error:
            self._broken = CommitUnknown(
                f"it is not known whether version {version} was committed ({error.strerror or error})",
                place=str(self.folder),
                hint="Open a new writer: it continues behind what is committed.",
            )
            raise self._broken from error
        for partition, staged in done:
            if layout is not None:
                partition.applied(staged, layout)
            if staged.retired is not None:
                retire(staged.retired)
        return record

    def _write(self, record: TxnRecord, staged: Sequence[StagedVersion], partitions: Sequence[HotPartition]) -> None:
        self._sync(dict.fromkeys(one for some in staged for one in some.descriptors))
        for path in dict.fromkeys(one for some in staged for one in some.directories):
            self._disk.sync_directory(path)
        for partition, some in zip(partitions, staged, strict=True):
            partition.publish_sidecar(some)
        self._txn.prepare(record)
        grown = [some.sidecar for some in staged if some.sidecar_size is not None]
        self._sync([*grown, self._txn.descriptor])

    def _sync(self, descriptors: Iterable[int]) -> None:
        """Sync files, side by side where the disk is slower than a thread that has to be woken: a journal then takes
        them together."""
        first, *rest = [*descriptors] or [-1]
        if first < 0:
            return
        if not rest or self._sync_seconds < _THREAD_SECONDS:
            begin = time.perf_counter()
            for descriptor in (first, *rest):
                self._disk.sync(descriptor)
            self._sync_seconds = (time.perf_counter() - begin) / (1 + len(rest))
            return
        syncing = [self._pool.submit(self._disk.sync, one) for one in rest]
        begin = time.perf_counter()
        try:
            self._disk.sync(first)
        finally:
            wait(syncing)
        self._sync_seconds = time.perf_counter() - begin
        for one in syncing:
            one.result()

    def _record(self, before: TxnRecord, version: int, done: Sequence[tuple[HotPartition, StagedVersion]]) -> TxnRecord:
        partitions = {one.timestamp: one for one in before.partitions}
        is_changed = False
        for partition, staged in done:
            known = partitions.get(partition.timestamp)
            is_changed |= known is None or known.name_txn != staged.state.name_txn
            partitions[partition.timestamp] = TxnPartition(
                timestamp=partition.timestamp,
                row_count=staged.state.row_count,
                name_txn=staged.state.name_txn,
                size_bytes=staged.state.size_bytes,
                is_sealing=known is not None and known.is_sealing,
            )
        return replace(
            before,
            version=version,
            partitions=tuple(partitions[begin] for begin in sorted(partitions)),
            partition_table_version=before.partition_table_version + is_changed,
            writer_epoch=self.lock.epoch,
        )

    def _abandon(self, done: Sequence[tuple[HotPartition, StagedVersion]], pending: Sequence[HotPartition]) -> None:
        """Forget what was staged. Partitions are opened again from the disk, where a sidecar may be ahead by now."""
        for partition, staged in done:
            partition.abandoned(staged)
        for partition in pending:
            partition.cut()
            self._forget(partition.timestamp)
            if partition.state is None:
                with suppress(OSError):
                    path = partition.directory(self.state.version + 1)
                    if path.exists():
                        self._disk.remove_partition(path)


def _append_to(rows: pa.Table, times: Times, layout: HotLayout) -> Stage:
    return lambda partition, txn: partition.stage(rows, times, layout, txn)


def make_folder(folder: Path, disk: HotDisk) -> None:
    """Make a hot table's directory and those above it, durably."""
    missing = []
    path = folder
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    try:
        for one in reversed(missing):
            with suppress(FileExistsError):
                disk.make_directory(one)
            disk.sync_directory(one.parent)
    except OSError as error:
        raise from_os_error(error, os.fspath(folder)) from error
