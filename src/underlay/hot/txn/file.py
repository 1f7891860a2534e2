"""`_txn` on a local disk: readers without a lock, and one writer.

A reader takes the version, the slot of its parity and the record that the slot names, then the version again. If that
changed, or the record is of another version or torn, it tries again for at most `wait_ms`. So it needs no memory fence,
which Python lacks. The writer puts the record of the next version where neither slot's current record lies, syncs it,
publishes the version in one aligned write of eight bytes, and syncs again: a crash before that write changes nothing.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from underlay.errors import Damaged, Inconsistent, Truncated, Unavailable, UnderlayError, from_os_error
from underlay.hot.txn.disk import HotDisk
from underlay.hot.txn.layout import EXTENSION, HEADER_BYTES, MAX_EXTENSION_BYTES, SLOT, SLOT_STRIDE, SLOTS_OFFSET
from underlay.hot.txn.record import TxnRecord, decode_record, encode_record, record_bytes
from underlay.runtime.posix import need_posix, open_flags

TXN_NAME = "_txn"
WAIT_MS = 1000
"""QuestDB's own limit."""
_I64 = struct.Struct("<q")
_READ = open_flags("O_RDONLY", "O_CLOEXEC", "O_NONBLOCK")
_MOST_BYTES = 1 << 30


class Slot(NamedTuple):
    """Where the record of a version lies."""

    offset: int
    symbols_bytes: int
    partitions_bytes: int

    @property
    def size_bytes(self) -> int:
        """The size of its record."""
        return record_bytes(self.symbols_bytes, self.partitions_bytes)


def read_txn(path: str | os.PathLike[str], *, wait_ms: int = WAIT_MS) -> TxnRecord:
    """The newest committed state. Takes no lock: one open and four reads.

    Raises NotFound, Truncated, ChecksumMismatch and Malformed when the file stays unreadable for `wait_ms`.
    """
    need_posix("hot partitions")
    try:
        descriptor = os.open(path, _READ)
    except OSError as error:
        raise from_os_error(error, os.fspath(path)) from error
    try:
        return read_committed_txn(descriptor, wait_ms=wait_ms)
    except UnderlayError as error:
        raise error.at(os.fspath(path)) from None
    except OSError as error:
        raise from_os_error(error, os.fspath(path)) from error
    finally:
        os.close(descriptor)


def read_committed_txn(descriptor: int, *, wait_ms: int = WAIT_MS) -> TxnRecord:
    """The same from an open file."""
    deadline: float | None = None
    while True:
        try:
            found = _read_once(descriptor)
            if found is not None:
                return found
            problem: Damaged | None = None
        except Damaged as error:
            problem = error
        now = time.monotonic()
        deadline = now + wait_ms / 1000 if deadline is None else deadline
        if now >= deadline:
            raise problem or Unavailable(
                f"the writer commits faster than this process can read for {wait_ms} ms", hint="Try again."
            )
        time.sleep(0)


def _read_once(descriptor: int) -> TxnRecord | None:
    """The newest state; None when a commit came in between. Raises Damaged, which a second look may not find."""
    header = os.pread(descriptor, HEADER_BYTES, 0)
    if len(header) < HEADER_BYTES:
        raise Truncated(
            "too short for a transaction file", place="byte 0", expected=f"{HEADER_BYTES} bytes", found=len(header)
        )
    (version,) = _I64.unpack_from(header)
    slot = slot_of(header, version)
    limit = os.fstat(descriptor).st_size
    problem: Damaged | None = None
    record: TxnRecord | None = None
    if slot.offset < HEADER_BYTES or slot.size_bytes > _MOST_BYTES or slot.offset + slot.size_bytes > limit:
        problem = Truncated(
            "the slot points outside the file",
            place=f"version {version}, slot {'AB'[version & 1]}",
            expected=f"{HEADER_BYTES} to {limit}",
            found=f"{slot.offset} + {slot.size_bytes}",
        )
    else:
        data = os.pread(descriptor, slot.size_bytes + MAX_EXTENSION_BYTES, slot.offset)
        try:
            record = decode_record(data, version, slot.symbols_bytes, slot.partitions_bytes)
        except Damaged as error:
            error.place = f"version {version}, record at byte {slot.offset}"
            problem = error
    if os.pread(descriptor, _I64.size, 0) != header[: _I64.size]:
        return None
    if problem is not None:
        raise problem
    return record


def slot_of(header: bytes, version: int) -> Slot:
    """The slot of a version: A for an even one, B for an odd one."""
    return Slot(*SLOT.struct.unpack_from(header, SLOTS_OFFSET + SLOT_STRIDE * (version & 1)))


def create_txn(path: str | os.PathLike[str], record: TxnRecord, disk: HotDisk | None = None) -> None:
    """Put a new file in place, whole and durable or not at all; it must not exist. The version is any."""
    path = Path(path)
    data = encode_record(record)
    header = bytearray(HEADER_BYTES)
    _I64.pack_into(header, 0, record.version)
    sizes = (4 * len(record.symbol_counts), 32 * len(record.partitions))
    SLOT.struct.pack_into(header, SLOTS_OFFSET + SLOT_STRIDE * (record.version & 1), HEADER_BYTES, *sizes)
    disk = disk or HotDisk()
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.unlink(missing_ok=True)
        descriptor = disk.open(temporary, create=True)
        try:
            disk.write(descriptor, bytes(header) + data, 0)
            disk.sync(descriptor)
        finally:
            os.close(descriptor)
        disk.link(temporary, path)
        disk.sync_directory(path.parent)
    except OSError as error:
        raise from_os_error(error, str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


class TxnWriter:
    """Commits versions, one after the other. The caller holds the table's lock."""

    def __init__(self, path: str | os.PathLike[str], disk: HotDisk | None = None) -> None:
        self.path = Path(path)
        self._disk = disk or HotDisk()
        try:
            self._descriptor = self._disk.open(self.path)
        except OSError as error:
            raise from_os_error(error, str(path)) from error
        try:
            self.newest = read_committed_txn(self._descriptor)
        except UnderlayError as error:
            os.close(self._descriptor)
            raise error.at(str(path)) from None
        except OSError as error:
            os.close(self._descriptor)
            raise from_os_error(error, str(path)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def descriptor(self) -> int:
        """The open file, to be synced with others."""
        return self._descriptor

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def prepare(self, record: TxnRecord) -> None:
        """Write the record of the next version, which nobody sees yet, into the slot that is not in use.

        Raises Inconsistent when the file is not as this writer left it: there is another writer.
        """
        if record.version != self.newest.version + 1:
            raise Inconsistent("versions follow each other", expected=self.newest.version + 1, found=record.version)
        header = os.pread(self._descriptor, HEADER_BYTES, 0)
        (version,) = _I64.unpack_from(header)
        if version != self.newest.version:
            raise Inconsistent(
                "another writer commits to this table",
                place=str(self.path),
                expected=f"version {self.newest.version}",
                found=f"version {version}",
                hint="Nothing was written. Open the table again.",
            )
        current = slot_of(header, version)
        data = encode_record(record)
        # Never over the record that readers use now: below it if there is room, else behind it and its extension.
        is_below = HEADER_BYTES + len(data) <= current.offset
        offset = HEADER_BYTES if is_below else current.offset + current.size_bytes + self._extension_bytes
        slot = Slot(offset, 4 * len(record.symbol_counts), 32 * len(record.partitions))
        self._disk.write(self._descriptor, data, offset)
        self._disk.write(self._descriptor, SLOT.struct.pack(*slot), SLOTS_OFFSET + SLOT_STRIDE * (record.version & 1))

    @property
    def _extension_bytes(self) -> int:
        return EXTENSION.size_bytes if self.newest.is_ours else 0

    def sync(self) -> None:
        """Sync what was written."""
        self._disk.sync(self._descriptor)

    def publish(self, record: TxnRecord) -> None:
        """Make the prepared and synced record the newest: this is the commit. It is durable after `sync`."""
        self._disk.write(self._descriptor, _I64.pack(record.version), 0)
        self.newest = record
